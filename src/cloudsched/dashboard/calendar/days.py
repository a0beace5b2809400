"""The days of a calendar with what is known of each: its occurrences, its numbers, and what is not drawn."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.dashboard.calendar.day_chart import Unlisted
from cloudsched.dashboard.calendar.entries import DayTotals, Entry, count_entries, find_busy, read_entries
from cloudsched.dashboard.times import DAY, WallDay, find_instant, find_start, parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit


@dataclass(frozen=True, slots=True)
class DayFacts:
    """A day as it is drawn."""

    day: WallDay
    entries: Sequence[Entry]
    busy: set[str]
    """The tasks that are busy then."""
    totals: DayTotals
    unlisted: Sequence[Unlisted]
    """Its parts that are not drawn completely."""


def gather(answer: Json, days: Sequence[WallDay], visit: Visit) -> dict[date, DayFacts]:
    """Return what is known of each day."""
    entries: dict[date, list[Entry]] = {each.day: [] for each in days}
    for entry in read_entries(answer, visit.now):
        entries.get(entry.at.astimezone(visit.zone).date(), []).append(entry)
    counted = _count(answer, visit)
    past = find_instant(answer, "ranFrom")
    last = find_instant(answer, "ranUntil")
    future = find_instant(answer, "dueUntil")

    facts = {}
    for each in days:
        begin = find_start(each.day, visit.zone)
        end = find_start(each.day + DAY, visit.zone)
        is_listed = (past is None or begin >= past) and (last is None or end <= last)
        totals = DayTotals(
            count_entries(entries[each.day]),
            counted.get(each.day),
            is_past_listed=is_listed or begin >= visit.now or counted.get(each.day) == (0, 0),
            is_future_listed=future is None or end <= future,
        )
        unlisted = [*_list_past(each, totals, past, visit), *_list_future(each, totals, future)]
        facts[each.day] = DayFacts(each, entries[each.day], find_busy(entries[each.day]), totals, unlisted)
    return facts


def _count(answer: Json, visit: Visit) -> dict[date, tuple[int, int]]:
    """Return the numbers of failures and of other ends that the API has counted, by day."""
    counted: dict[date, tuple[int, int]] = {}
    for each in answer.get("counts") or ():
        middle = parse_instant(each["start"]) + timedelta(hours=6)  # its day, also if clocks change at midnight
        day = middle.astimezone(visit.zone).date()
        failed, others = counted.get(day, (0, 0))
        counted[day] = (failed + each["failed"], others + each["others"])
    return counted


def _list_past(day: WallDay, totals: DayTotals, past: datetime | None, visit: Visit) -> Iterator[Unlisted]:
    """Yield the part of a day before the complete list of ended runs, with its counts."""
    if past is None or totals.is_past_listed:
        return
    begin = find_start(day.day, day.zone)
    right = _place(day, min(past, max(visit.now, begin)))
    if right <= 0:
        return
    if totals.ended:
        yield Unlisted(0.0, right, f"not all drawn: {totals.write()}")
    else:
        yield Unlisted(0.0, right, "not all drawn")


def _list_future(day: WallDay, totals: DayTotals, future: datetime | None) -> Iterator[Unlisted]:
    """Yield the part of a day after the complete list of due occurrences."""
    if future is None or totals.is_future_listed:
        return
    left = _place(day, future)
    if left < 1:
        yield Unlisted(left, 1.0, "more is due")


def _place(day: WallDay, at: datetime) -> float:
    """Return the place of an instant in a day. One before or after it lies at its end."""
    if at <= find_start(day.day, day.zone):
        return 0.0
    if at >= find_start(day.day + DAY, day.zone):
        return 1.0
    return day.place(at)
