"""What stands over a calendar: what its days have in all, where clocks change, and what is not counted."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.calendar_entries import count_entries
from cloudsched.dashboard.status import show_status
from cloudsched.dashboard.times import BLANK, find_clock_changes
from cloudsched.dashboard.wall_clock import DAY, find_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.calendar_entries import Entry
    from cloudsched.dashboard.visit import Visit
    from cloudsched.dashboard.wall_clock import WallDay

WEEK: Final = 7
"""A span of so many days has each weekday once."""


def write_sentence(days: Sequence[WallDay], entries: Sequence[Entry], zone: str, visit: Visit) -> str:
    """Return what the days have in all, in which zone, and where clocks change."""
    first, last = days[0].day, days[-1].day
    start = f"{first.day} {first:%B}" + (f" {first.year}" if first.year != last.year else "")
    span = f"{start} to {last.day} {last:%B %Y}" if len(days) > 1 else f"{first:%A} {first.day} {first:%B %Y}"
    found = count_entries(entries)
    count = (("ran", found.ran), ("failed", found.failed), ("due", found.due))
    said = [f"{number:,} {word}" for word, number in count if number]
    sentences = [f"{span}, {zone}: {', '.join(said) or 'nothing'}."]
    start_at, end_at = find_start(first, visit.zone), find_start(last + DAY, visit.zone)
    for change in find_clock_changes(start_at, end_at, visit.zone):
        after = change.at.astimezone(visit.zone)
        before = (change.at - timedelta(seconds=1)).astimezone(visit.zone) + timedelta(seconds=1)
        direction = "forward" if change.shift > timedelta(0) else "back"
        on = f"{after:%A}" if len(days) <= WEEK else f"{after:%A} {after.day} {after:%B}"
        sentences.append(
            f"Clocks go {direction} on {on}: {before:%H:%M}{BLANK}{before:%z} becomes {after:%H:%M}{BLANK}{after:%z}."
        )
    return " ".join(sentences)


def write_notes(answer: Json, visit: Visit) -> Iterator[str]:
    """Yield what is not counted, and why."""
    if answer.get("isSearchCut"):
        yield f"At least {len(answer['ran']):,} ran: too many others were looked through to find more. Choose a day."
    elif answer["moreRan"]:
        yield f"More than {answer['bound']:,} ran: what failed and the latest are counted. Choose a day, or a filter."
    until = answer["completeUntil"]
    if answer["moreDue"] or until:
        last = answer["due"][-1]["utc"] if answer["moreDue"] and answer["due"] else until
        yield f"From {visit.sure(last).text} on, only the first {answer['bound']:,} that are due are counted."
    if status := visit.query.get("status"):
        yield f"Of what ran, only what has the status {show_status(status.upper()).word.lower()} is shown."
    if answer["paused"]:
        one = answer["paused"] == 1
        yield f"{answer['paused']:,} paused {'task is' if one else 'tasks are'} not shown."
