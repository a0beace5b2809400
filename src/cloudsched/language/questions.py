"""Questions: a decision that a phrase leaves open, with the schedule that each answer gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.describe import describe
from cloudsched.errors import InvalidSchedule
from cloudsched.language.refusals import Choices, Refused, Unclear
from cloudsched.language.result import Alternative, Problem, Reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.recurrence.schedule import Schedule
    from cloudsched.language.nodes import Span

MOST_READINGS = 8
QUESTIONS = {
    "nth-or-interval": "is it the nth such day of each month, or every so many weeks?",
    "bare-hour": "in the morning or in the afternoon?",
    "bi": "every two, or twice in one?",
    "date-order": "which is the month?",
    "this-or-next": "which day is meant?",
    "zone": "which time zone is meant?",
    "month-end": "what about months that lack this day?",
    "rate": "on which days, or at what times?",
    "midnight": "the midnight with which the day begins, or ends?",
    "window": "once at its beginning, or again and again within it?",
    "once-or-repeat": "every time, or only the next time?",
    "which-of-month": "which of them?",
    "months-or-span": "in these months of every year, or only once?",
    "count-or-rate": "how often in all, or how often each time?",
    "slip": "is this a slip?",
    "shared-time": "at the same time?",
}


def ask(unclear: Unclear, build: Callable[[Choices], Schedule], title: str | None, text: str) -> Reading:
    """Return the question about an open decision; a refusal if no answer gives a schedule."""
    readings: list[Alternative] = []
    refused: Refused | None = None
    open_ones: list[tuple[Unclear, dict[tuple[str, Span], int], str]] = [(unclear, {}, "")]
    problems: dict[tuple[str, Span], Problem] = {}
    while open_ones and len(readings) < MOST_READINGS:
        at, taken, label = open_ones.pop(0)
        problems.setdefault((at.code, at.span), Problem(at.span, at.code, QUESTIONS[at.code]))
        for number, option in enumerate(at.options):
            chosen = {**taken, (at.code, at.span): number}
            name = f"{label}, {option.name}" if label else option.name
            try:
                schedule = build(Choices(chosen))
            except Unclear as deeper:
                open_ones.append((deeper, chosen, name))
            except Refused as error:
                refused = error
            except InvalidSchedule as error:
                refused = Refused("never", hint=str(error))
            else:
                readings.append(Alternative(schedule, describe(schedule), name))
    if not readings and refused is not None:
        span = refused.span if refused.span is not None else (0, len(text))
        return Reading("refusal", problems=(Problem(span, refused.code, refused.hint),))
    return Reading("question", None, title, (), tuple(readings[:MOST_READINGS]), tuple(problems.values()))
