"""Questions about an ambiguous phrase, with the schedule that each answer gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.schedules.describe import describe
from cloudsched.errors import InvalidSchedule
from cloudsched.language.refusals import Choices, Refused, Unclear
from cloudsched.language.result import Alternative, Problem, Reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.language.nodes import Span

MOST_READINGS = 8
QUESTIONS = {
    "nth-or-interval": "is that the nth such day of each month, or an interval in weeks?",
    "bare-hour": "is that in the morning or in the afternoon?",
    "bi": "is that once every two periods, or twice in each period?",
    "date-order": "which number is the month?",
    "this-or-next": "which day do you mean?",
    "zone": "which time zone do you mean?",
    "month-end": "what should happen in months that do not have this day?",
    "rate": "on which days or at what times should it run?",
    "midnight": "is that the midnight at the start of the day or at its end?",
    "window": "should it run once, at the start of this period, or repeatedly during it?",
    "once-or-repeat": "should it run every time, or only the next time?",
    "which-of-month": "which of these days do you mean?",
    "months-or-span": "is that every year in these months, or only this once?",
    "count-or-rate": "is that how often in total, or how often each time?",
    "slip": "is this a typo?",
    "shared-time": "should both run at the same time?",
}


def ask(unclear: Unclear, build: Callable[[Choices], Schedule], title: str | None, text: str) -> Reading:
    """Return a question that lists the schedule for each answer; a refusal if no answer gives a schedule."""
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
