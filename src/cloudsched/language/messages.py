"""What the reader says to a person, in the language of the phrase."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Self

from cloudsched.domain.schedules.words import English

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date


class Said(str):
    """A sentence in English that also knows its template, so that it can be said in another language."""

    __slots__ = ("template", "values")

    template: str
    values: Mapping[str, Any]

    @classmethod
    def of(cls, template: str, values: Mapping[str, Any]) -> Self:
        """Return the sentence of a template with names in braces."""
        said = cls(template.format(**values))
        said.template, said.values = template, values
        return said


def say(template: str, **values: Any) -> Said:
    """Return a sentence with values: ``say("at {time}", time=time)``."""
    return Said.of(template, values)


def tell(code: str, template: str, **values: Any) -> str:
    """Return a sentence with values in a language."""
    return translate(say(template, **values), load_messages(code))


def say_day(day: date) -> Said:
    """Return a day with its weekday: ``Friday, 2027-06-11``."""
    return say("{weekday}, {day:%Y-%m-%d}", weekday=say(English.weekdays[day.weekday()]), day=day)


def say_all(items: Sequence[Said]) -> Said:
    """Return a list: ``Friday and Saturday``."""
    return reduce(lambda first, then: say("{first} and {then}", first=first, then=then), items)


def load_messages(code: str) -> Mapping[str, str]:
    """Return what the reader says in a language, by its English sentences. Empty for English."""
    if code.partition("-")[0].lower() != "de":
        return {}
    from cloudsched.language.german_messages import GERMAN_MESSAGES  # noqa: PLC0415 - only German needs it

    return GERMAN_MESSAGES


def translate(text: str, messages: Mapping[str, str]) -> str:
    """Return a sentence in the language of some messages, or as it is if they do not have it."""
    if not isinstance(text, Said):
        return messages.get(text, text)
    values = {
        name: translate(value, messages) if isinstance(value, Said) else value for name, value in text.values.items()
    }
    return messages.get(text.template, text.template).format(**values)
