"""What people are told of an occurrence that a calendar left out or moved, and of where a calendar ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.calendars.days import parse_days, to_date, to_day

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from cloudsched.domain.calendars.calendar_recurrence import CalendarRecurrence
    from cloudsched.domain.calendars.calendar_rule import CalendarRule
    from cloudsched.domain.calendars.free_days import Taken


def describe_effect(recurrence: CalendarRecurrence, instant: int) -> str | None:
    """Return why an instant was left out, or from which day it was moved; None if its calendars did not change it."""
    move = recurrence.explain(instant)
    if move is not None:
        because = "" if move.taken is None else f": {_describe_taken(move.taken)}"
        return f"Moved from {to_date(move.day)}{because}."
    taken = recurrence.find_taken(instant)
    return None if taken is None else f"Left out: {_describe_taken(taken)}."


def describe_ends(rules: Sequence[CalendarRule], until: date) -> list[str]:
    """Return a sentence for each calendar whose dates end before a day: what comes later counts as free."""
    sentences = []
    for rule in rules:
        days = parse_days(rule.content or "")
        if days.intervals and days.intervals[-1].last < to_day(until):
            rest = "all later days but its days of the week" if days.weekdays else "all later days"
            since = to_date(days.intervals[-1].last + 1)
            sentences.append(f'Calendar "{rule.id}" has no dates from {since} on: {rest} count as free.')
    return sentences


def _describe_taken(taken: Taken) -> str:
    return f"{taken.name} ({taken.calendar_id})" if taken.name else taken.calendar_id
