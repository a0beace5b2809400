"""Ask where a payload's value ends if unread words follow it: "dose: 500 mg, every day at 8"."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cloudsched.domain.responses.api_responses import Decision, DraftAnswer, DraftQuestion
from cloudsched.drafts.phrases import OpenValue, find_deliveries, quote_value, take_delivery
from cloudsched.language.english import ENGLISH
from cloudsched.language.languages import LANGUAGES
from cloudsched.language.lexicon import Token, classify, tokenise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cloudsched.drafts.request import Proposal

_STARTERS: Final = frozenset({"each", "adverb", "relday", "tonight", "at", "on", "polite"})
"""The kinds of words that begin a time, and are hardly part of a value: "city: Paris every day"."""
_SEPARATORS: Final = frozenset(",;.:!?-–—…")  # noqa: RUF001 - what people type
_MOST_ASKED: Final = 5
_RIMS: Final = " ,;.-–—"  # noqa: RUF001 - the same


def ask_ends(
    text: str,
    values: Iterable[OpenValue],
    read: Proposal | None,
    reread: Callable[[str], Proposal | None],
    more: str = "",
) -> Proposal | None:
    """Return a proposal that asks where values end whose end is uncertain. None if there is nothing to ask.

    `read` is the proposal of the text in which each value is its first word. `reread` makes one of a text
    with quotes. The text of an answer ends with `more`.
    """
    unread = _count_unread(text, values, read)
    uncertain = [each for each in values if not _ends_clearly(each.tail, unread)]
    wholes = {each.field: _find_whole(each) for each in uncertain}
    questions: list[DraftQuestion] = []
    readable: list[Proposal] = []

    for each in uncertain[:_MOST_ASKED]:
        answers: list[DraftAnswer] = []
        for value in (wholes[each.field], each.value):
            quoted = _quote(text, values, {**wholes, each.field: value})
            proposal = reread(quoted)
            if proposal is None or not _fits(proposal, each.field):
                continue
            readable.append(proposal)
            label = f"{each.field}: {quote_value(value)}"
            answers.append(_to_answer(proposal, label, f"{quoted}{more}"))
        cure = f"{each.field}: {quote_value(wholes[each.field])}"
        question = f"Where does the value of {each.field!r} end? Quotes say so, as in {cure}"
        questions.append(
            DraftQuestion(field=f"payload.{each.field}", question=question, answers=tuple(answers)),
        )

    shown = next(iter(readable), read)
    if not questions or shown is None or shown.decision is Decision.REFUSAL:
        return None
    return replace(shown, questions=tuple(questions))


def _to_answer(proposal: Proposal, label: str, text: str) -> DraftAnswer:
    when = "" if proposal.schedule is None else proposal.schedule.describe()
    context = None if proposal.task is None else {"taskId": proposal.task.id}
    return DraftAnswer(label=label, description=when, text=text, context=context)


def is_cut(values: Iterable[OpenValue], payload: Mapping[str, object]) -> bool:
    """Return whether a model's payload has only the first word of a value whose end is not certain."""
    taken = [each for each in values if payload.get(each.field) == each.value]
    unread = _count_unknown(taken)
    return not all(_ends_clearly(each.tail, unread) for each in taken)


def _fits(proposal: Proposal, field: str) -> bool:
    is_wrong = any(each.field == f"payload.{field}" for each in proposal.missing)
    return proposal.decision is not Decision.REFUSAL and not is_wrong


def _count_unread(text: str, values: Iterable[OpenValue], read: Proposal | None) -> Counter[str]:
    """Count the words behind values that became the title. If the text is refused, those in no lexicon."""
    if read is None or read.decision is Decision.REFUSAL:
        return _count_unknown(values)
    behind = Counter(word for each in values for word in _list_words(each.tail))
    return Counter(_list_words(read.purpose or "")) - (Counter(_list_words(text)) - behind)


def _count_unknown(values: Iterable[OpenValue]) -> Counter[str]:
    return Counter(token.text for each in values for token, kinds in _classify(each.tail) if not kinds)


def _classify(text: str) -> list[tuple[Token, set[str]]]:
    """Return the words of a text with their kinds in any language."""
    tokens = tokenise(text, ENGLISH)
    matches = zip(*(classify(tokens, language) for language in LANGUAGES.values()), strict=True)
    return [(token, {kind for each in found for kind in each}) for token, found in zip(tokens, matches, strict=True)]


def _list_words(text: str) -> list[str]:
    """Return the words of a text in lower case, and signs such as "%" and "€"."""
    return [word for word in re.findall(r"[^\W_]+|[^\w\s]", text.casefold()) if word not in _SEPARATORS]


def _ends_clearly(tail: str, unread: Counter[str]) -> bool:
    rest = take_delivery(tail).rest
    is_apart = not rest or rest[0] in _SEPARATORS or _begins_time(_classify(rest)[0][1])
    return is_apart and not any(unread[word] for word in _list_words(rest))


def _begins_time(kinds: set[str]) -> bool:
    return not _STARTERS.isdisjoint(kinds) and "halfday" not in kinds  # "am" is German for "on"


def _find_whole(value: OpenValue) -> str:
    """Return a value with all words behind it, up to a time or a way of delivery."""
    ends = [token.start for token, kinds in _classify(value.tail) if _begins_time(kinds)]
    ends += [each.start() for each in find_deliveries(value.tail)]
    more = value.tail[: min(ends, default=len(value.tail))].rstrip(_RIMS)
    return f"{value.value}{more or value.tail.rstrip(_RIMS)}"


def _quote(text: str, values: Iterable[OpenValue], chosen: Mapping[str, str]) -> str:
    """Return a text with quotes around its values: those that are chosen, or else their first words."""
    for each in sorted(values, key=lambda value: value.start, reverse=True):
        value = chosen.get(each.field, each.value)
        text = f"{text[: each.start]}{quote_value(value)}{text[each.start + len(value) :]}"
    return text
