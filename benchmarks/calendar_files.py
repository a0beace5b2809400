"""Read the calendar files of other projects, and compare their days with those that `recurring-ical-events` finds.

    python -m benchmarks.calendar_files FOLDER

Fetch the files yourself: those of icalendar, ical.js, libical, recurring-ical-events and node-ical are in their
repositories. Files that only define zones are left out. Three years are compared, from the first DTSTART of a file on.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter, defaultdict
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import recurring_ical_events  # type: ignore[import-untyped]  # it has no stubs
from icalendar import Calendar

from cloudsched.errors import InvalidInput
from cloudsched.features.calendars.ics_days import decode_ics, read_ics_days

YEARS = 3


def list_days(first: date, last: date) -> set[date]:
    """Return the days from one to another, both included."""
    return {first + timedelta(days=number) for number in range((last - first).days + 1)}


def find_expected(text: str, begin: date, end: date) -> set[date]:
    """Return the days that `recurring-ical-events` finds, of events that are not cancelled."""
    found = set[date]()
    calendars: Any = Calendar.from_ical(text, multiple=True)
    for calendar in calendars:
        for event in recurring_ical_events.of(calendar).between(begin - timedelta(days=40), end):
            start, stop = event["DTSTART"].dt, event["DTEND"].dt
            if event.get("STATUS") != "CANCELLED":
                is_time = isinstance(stop, datetime)
                last = (stop - timedelta(seconds=1)).date() if is_time else stop - timedelta(days=1)
                first = start.date() if isinstance(start, datetime) else start
                found |= list_days(first, max(first, last))
    return found


def compare(path: Path) -> tuple[str, str]:
    """Return what becomes of a file, and why."""
    text = decode_ics(path.read_bytes())
    years = sorted(map(int, re.findall(r"^DTSTART[^\n]*:(19[7-9]\d|20\d\d)\d{4}", text, re.MULTILINE | re.IGNORECASE)))
    year = years[-1] if years else 2027
    begin, end = date(year, 1, 1), date(year + YEARS, 1, 1)
    try:
        intervals = read_ics_days(text, date(year + 1, 1, 1))
    except InvalidInput as error:
        problem = re.sub(r"line \d+|'[^']*'|\"[^\"]*\"|\d+", "…", error.problem)
        return "refused", problem
    found = set[date]()
    for first, last, _ in intervals:
        found |= list_days(max(first, begin), min(last, end - timedelta(days=1)))
    try:
        expected = find_expected(text, begin, end) & list_days(begin, end - timedelta(days=1))
    except Exception as error:  # noqa: BLE001 - whatever it raises
        return "read, the other program fails", type(error).__name__
    if found == expected:
        return "read, same days" if found else "read, no days", ""
    lost, more = sorted(map(str, expected - found)), sorted(map(str, found - expected))
    return "read, other days", f"{path.name}: without {', '.join(lost[:4]) or '-'}, with {', '.join(more[:4]) or '-'}"


def main(folder: Path) -> None:
    """Print a table of what becomes of the files of each project, and then the reasons."""
    warnings.simplefilter("ignore")
    table: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted(folder.rglob("*.ics")):
        project = path.relative_to(folder).parts[0]
        content = path.read_bytes()
        if b"BEGIN:VTIMEZONE" not in content or b"VEVENT" in content:
            outcome, reason = compare(path)
            table[project][outcome] += 1
            reasons[outcome][reason] += 1
    outcomes = sorted({outcome for counts in table.values() for outcome in counts})
    print(" | ".join(["project", "files", *outcomes]))
    for project, counts in table.items():
        print(" | ".join([project, str(counts.total()), *(str(counts[outcome]) for outcome in outcomes)]))
    for outcome, counts in sorted(reasons.items()):
        print(f"\n{outcome}:")
        for reason, number in counts.most_common():
            print(f"{number:5} {reason}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
