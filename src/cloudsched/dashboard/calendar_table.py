"""The chosen day of the calendar as a table: each occurrence, and busy tasks once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING
from urllib.parse import quote

from cloudsched.dashboard.status import Status, show_status
from cloudsched.dashboard.times import BLANK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.dashboard.calendar_entries import Entry
    from cloudsched.dashboard.times import Moment
    from cloudsched.dashboard.visit import Visit


@dataclass(frozen=True, slots=True)
class TableRow:
    """A line of the chosen day's table: one occurrence, or all of a busy task's."""

    at: Moment
    utc: str
    title: str
    href: str
    status: Status
    note: str
    change: str
    key: str


def make_table(entries: Sequence[Entry], busy: set[str], visit: Visit) -> list[TableRow]:
    """Return a day's lines, the earliest first."""
    groups: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda each: (each.at, each.task_id)):
        name = entry.task_id if entry.task_id in busy else f"{entry.at.isoformat()} {entry.href}"
        groups[name].append(entry)
    rows = []
    for key, group in groups.items():
        first = group[0]
        seen = replace(visit, zone=first.zone)
        last = group[-1].at.astimezone(first.zone)
        bad = sum(each.kind == "failed" for each in group)
        note = f"and {len(group) - 1:,} more until {last:%H:%M}" if len(group) > 1 else ""
        utc = first.at.astimezone(UTC)
        rows.append(
            TableRow(
                at=seen.sure(first.at),
                utc=f"{utc:%a}{BLANK}{utc:%H:%M}{BLANK}UTC",
                title=first.title,
                href=f"tasks/{quote(first.task_id, safe='')}" if len(group) > 1 else first.href,
                status=show_status("FAILED") if bad else first.status,
                note=", ".join(filter(None, [note, f"{bad:,} failed" if bad and len(group) > 1 else ""])),
                change=_describe_fold(first),
                key=key,
            )
        )
    return rows


def _describe_fold(entry: Entry) -> str:
    local = entry.at.astimezone(entry.zone)
    if local.utcoffset() == local.replace(fold=1 - local.fold).utcoffset():
        return ""
    other = local.replace(fold=1 - local.fold)
    if other.astimezone(UTC).astimezone(entry.zone).replace(tzinfo=None) != local.replace(tzinfo=None):
        return ""  # a time next to a gap, not one that comes twice
    return f"the {'second' if local.fold else 'first'} {local:%H:%M} of two"
