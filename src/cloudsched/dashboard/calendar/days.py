"""The days of a calendar with what is known of each: its occurrences and its numbers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.dashboard.calendar.entries import (
    Bin,
    DayTotals,
    Entry,
    add_bins,
    count_entries,
    find_busy,
    read_entries,
)
from cloudsched.dashboard.times import DAY, WallDay, find_instant, find_start, parse_instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit


@dataclass(frozen=True, slots=True)
class Part:
    """The numbers of a part of a day."""

    start: datetime
    end: datetime
    found: Bin


@dataclass(frozen=True, slots=True)
class DayFacts:
    """A day as it is drawn."""

    day: WallDay
    entries: Sequence[Entry]
    busy: set[str]
    """The tasks that have no marks of their own then."""
    totals: DayTotals
    parts: Sequence[Part]
    is_due_listed: bool
    """False if the list of what is due ends within this day or before it."""

    @property
    def has_bars(self) -> bool:
        """Return whether more happens than its marks show."""
        found = self.totals.found
        return bool(self.busy) or sum(found.numbers) > sum(each.count for each in self.entries)


def gather(answer: Json, days: Sequence[WallDay], visit: Visit) -> dict[date, DayFacts]:
    """Return what is known of each day."""
    entries: dict[date, list[Entry]] = {each.day: [] for each in days}
    for entry in read_entries(answer, visit.now):
        entries.get(entry.at.astimezone(visit.zone).date(), []).append(entry)
    parts = read_parts(answer, visit)
    complete = find_instant(answer, "dueUntil")
    listed_until = find_instant(answer, "dueListedUntil")
    is_counted = answer.get("counts") is not None
    sampled = {each["taskId"] for each in answer.get("busyDue", ())}

    facts = {}
    for each in days:
        mine = parts.get(each.day, [])
        listed = count_entries(entries[each.day])
        counted = add_bins(part.found for part in mine)
        past = counted if is_counted else listed
        late = counted.late if answer.get("lateCounts") is not None else listed.late
        due = counted.due if answer.get("dueCounts") is not None else listed.due
        found = replace(past, late=late, due=due, open=listed.open, offered=listed.offered)
        end = find_start(each.day + DAY, visit.zone)
        totals = DayTotals(
            found,
            is_past_whole=is_counted or not answer["moreRan"] or find_start(each.day, visit.zone) >= visit.now,
            is_future_whole=complete is None or end <= complete,
            is_open_whole=not answer.get("moreOpen"),
        )
        facts[each.day] = DayFacts(
            day=each,
            entries=entries[each.day],
            busy=find_busy(entries[each.day]) | sampled,
            totals=totals,
            parts=mine,
            is_due_listed=listed_until is None or end <= listed_until,
        )
    return facts


def read_parts(answer: Json, visit: Visit) -> dict[date, list[Part]]:
    """Return the numbers that the API has counted, part by part of each day."""
    found: defaultdict[tuple[datetime, datetime], list[Bin]] = defaultdict(list)
    for each in answer.get("counts") or ():
        past = Bin(ran=each["ran"], failed=each["failed"], skipped=each["skipped"])
        found[parse_instant(each["start"]), parse_instant(each["end"])].append(past)
    for name in ("late", "due"):
        for each in answer.get(f"{name}Counts") or ():
            if each["due"]:
                found[parse_instant(each["start"]), parse_instant(each["end"])].append(Bin(**{name: each["due"]}))
    days: defaultdict[date, list[Part]] = defaultdict(list)
    for (start, end), bins in sorted(found.items()):
        middle = start + min(end - start, timedelta(hours=12)) / 2  # its day, also if clocks change at midnight
        days[middle.astimezone(visit.zone).date()].append(Part(start, end, add_bins(bins)))
    return days
