"""Find where a payload's value ends, and ask if that is not certain: "dose: 500 mg, every day at 8"."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.responses.api_responses import Decision, DraftAnswer, DraftQuestion
from cloudsched.drafts.deliveries import list_languages
from cloudsched.language.covers import find_covers
from cloudsched.language.grammar import Parser
from cloudsched.language.languages import LANGUAGES
from cloudsched.language.lexicon import tokenise
from cloudsched.language.messages import tell
from cloudsched.language.reader import MAX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cloudsched.drafts.request import Proposal
    from cloudsched.language.lexicon import Language

_COMMA: Final = re.compile(r",(?!\d)\s*|,\s+")
_WORD: Final = re.compile(r"(?<=\s)\S")
_RIMS: Final = " ,;-–—\n"  # noqa: RUF001 - what people type
_MOST_ASKED: Final = 5
_MOST_ENDS: Final = 40
"""The number of places in one value at which a schedule is looked for."""


class OpenValue(NamedTuple):
    """A value without quotes whose end is not certain: the possible ones, the most likely first."""

    field: str
    values: tuple[str, ...]


def find_ends(text: str, deliveries: Sequence[int], *, is_timed: bool = False) -> list[int]:
    """Return where a value without quotes may end: the one end, or several if that is not certain.

    `text` goes to the next field. `deliveries` are the places where ways of delivery begin. If the text before
    `is_timed`, a schedule in the value may be a part of it: "every day at 8, note: call mum on Friday".
    """
    limit = min((each for each in (text.find(";"), *deliveries) if each > 0), default=len(text))
    value = text[:limit].rstrip(_RIMS)
    if not value.strip():
        return [limit]
    # A word may be a day in another language: "do" is Thursday in German, and "ma" Monday in Dutch.
    languages = list_languages(text)[:1]
    if (line := value.find("\n")) > 0:
        is_end = has_schedule(value[line:], languages, wholly=True)
        return [line] if is_end else [len(value), line]
    commas = [found.end() for found in _COMMA.finditer(value)]
    words = [found.start() for found in _WORD.finditer(value)]
    # A schedule begins behind a comma rather than at another word.
    begins = list[int]()
    for places in (commas, words[:_MOST_ENDS]):
        begins += islice((at for at in places if has_schedule(value[at:], languages, wholly=True)), 1)
    whole = [len(value)] if is_timed or not begins else []
    ends = [*whole, *(len(value[:at].rstrip(_RIMS)) for at in (*begins, *commas[:1]))]
    return [ends[0], *[each for each in ends if each < ends[0]][:1]]


def has_schedule(text: str, languages: Iterable[Language] = LANGUAGES.values(), *, wholly: bool = False) -> bool:
    """Return whether a text has a schedule in one of some languages. If `wholly`, all its words belong to it."""
    if len(text) > MAX_LENGTH:
        return False
    for language in languages:
        tokens = tokenise(text, language)
        if tokens and find_covers(Parser(tokens, language, allow_title=not wholly)):
            return True
    return False


def quote_value(value: str) -> str:
    """Return a value in quotes that do not occur in it, so that it is read to its end."""
    pairs = ('""', "“”", "''")
    pair = next((pair for pair in pairs if not set(pair) & set(value)), pairs[0])
    return f"{pair[0]}{value}{pair[1]}"


def ask_ends(
    language: str, values: Sequence[OpenValue], read: Callable[[dict[str, str]], Proposal | None]
) -> Proposal | None:
    """Return a proposal that asks where values end whose end is uncertain. None if there is nothing to ask.

    `read` reads the text of the values with some fields of the context, as if ends were answered.
    """
    likely = {name_answer(each.field): each.values[0] for each in values}
    questions: list[DraftQuestion] = []
    shown: Proposal | None = None
    for field, ends in values[:_MOST_ASKED]:
        place = f"payload.{field}"
        answers: list[DraftAnswer] = []
        for value in ends:
            answer = {name_answer(field): value}
            proposal = read({**likely, **answer})
            if proposal is None or proposal.decision is Decision.REFUSAL:
                continue
            if place in [each.field for each in proposal.missing]:
                continue
            shown = shown or proposal
            when = "" if proposal.schedule is None else proposal.schedule.describe(language)
            answers.append(DraftAnswer(label=f"{field}: {quote_value(value)}", description=when, context=answer))
        template = "Where does the value of {field!r} end? Quotes say so, as in {cure}"
        question = tell(language, template, field=field, cure=f"{field}: {quote_value(ends[0])}")
        questions.append(DraftQuestion(field=place, question=question, answers=tuple(answers)))
    return None if shown is None else replace(shown, questions=tuple(questions))


def name_answer(field: str) -> str:
    """Return the field of a request's context that says where the value of a payload's field ends."""
    return f"answer.payload.{field}"
