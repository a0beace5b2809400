"""Why a phrase cannot become a schedule: codes, and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cloudsched.language.nodes import Span

HINTS = {
    "empty": "say when, such as: every weekday at 9:00",
    "too-long": "say it in at most 500 characters",
    "no-time": "say when, such as: every weekday at 9:00, or: tomorrow at 14:00",
    "not-understood": "say it in other words, or put a title in quotes; every word must belong to the one or the other",
    "incomplete": "something is missing here; say it whole, such as: every 2 weeks on Monday",
    "no-such-time": "a time of day is between 00:00 and 23:59",
    "no-such-date": "check the day and the month",
    "past": "this lies in the past; name a time that is still to come",
    "never": "this never comes; check the days, the limits and the exceptions",
    "contradiction": "these exclude each other; keep one of them",
    "no-recurrence": "say how often, such as: every Monday until June",
    "holidays": "calendars of holidays are not known; name the dates, such as: except December 25",
    "inexpressible": "no rule can say this; name the days or the dates",
    "too-vague": "name a day and a time",
    "completion": "a schedule follows the clock and not the end of the work; say every 3 hours",
    "too-many": "these are more rules than one schedule may have; say less at once",
    "date-order": "write the month as a word, or the date as 2027-01-31",
    "no-update": "say what to change, such as: make it 10 instead, not on Fridays, also Saturdays, skip the next one",
}


class Refused(Exception):
    """The phrase cannot be read."""

    def __init__(self, code: str, span: Span | None = None, hint: str | None = None) -> None:
        super().__init__(code)
        self.code, self.span, self.hint = code, span, hint or HINTS[code]


class Option(NamedTuple):
    """One answer to a question: what it is called, and the value it stands for."""

    name: str
    value: object


class Unclear(Exception):
    """A decision that the phrase leaves open, and its possible answers."""

    def __init__(self, code: str, span: Span, options: tuple[Option, ...]) -> None:
        super().__init__(code)
        self.code, self.span, self.options = code, span, options


class Choices:
    """The decisions taken so far; an open one interrupts the reading.

    Attributes:
        taken: The chosen option's number, by code and place.
        notes: What was assumed, each a sentence.
    """

    def __init__(self, taken: dict[tuple[str, Span], int] | None = None) -> None:
        self.taken = taken or {}
        self.notes: list[str] = []

    def pick(self, code: str, span: Span, options: tuple[Option, ...]) -> object:
        """Return the value of the option that was chosen.

        Raises:
            Unclear: None was chosen yet.
        """
        chosen = self.taken.get((code, span))
        if chosen is None:
            raise Unclear(code, span, options)
        return options[chosen].value

    def assume(self, sentence: str) -> None:
        """Note an assumption, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)
