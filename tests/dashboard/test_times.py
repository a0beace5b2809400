"""How time is written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from cloudsched.dashboard.times import BLANK, ClockChange, find_clock_changes, find_zone, make_moment, write_duration
from cloudsched.domain.recurrence.time_zones import find_zone as find_table
from cloudsched.domain.recurrence.time_zones import zone_names

PARIS = ZoneInfo("Europe/Paris")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.46, "0.4 s"),
        (59, "59 s"),
        (173, "2 min 53 s"),
        (600, "10 min"),
        (659, "10 min"),
        (62_220, "17 h 17 min"),
        (7 * 86_400 + 16 * 3600 + 3599, "7 d 16 h"),
        (31 * 86_400 + 3600, "31 d"),
        (3600, "1 h"),
    ],
)
def test_a_duration_has_two_units_that_are_cut(seconds: float, text: str) -> None:
    """Nothing is rounded up; minutes stand alone from 10, days from 30."""
    assert write_duration(timedelta(seconds=seconds)).replace(BLANK, " ") == text


def test_a_moment_always_says_its_offset() -> None:
    """The same instant in the zone, with its name, and in UTC; relative with "in" or "ago"."""
    now = datetime(2027, 3, 24, 14, 42, 7, tzinfo=UTC)
    moment = make_moment(datetime(2027, 4, 1, 7, tzinfo=UTC), now, PARIS)
    assert moment.text.replace(BLANK, " ") == "Thu 01 Apr 2027 09:00 +0200"
    assert moment.short.replace(BLANK, " ") == "Thu 01 Apr 09:00 +0200"
    assert moment.relative.replace(BLANK, " ") == "in 7 d 16 h"
    assert moment.both.replace(BLANK, " ") == "Thu 01 Apr 2027 09:00 +0200 Europe/Paris = 07:00:00 UTC"
    assert make_moment(now - timedelta(seconds=3), now, PARIS).relative.replace(BLANK, " ") == "3 s ago"


def test_clock_changes_are_found_to_the_second() -> None:
    """Both of a year in Paris, and none in UTC."""
    start, end = datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
    changes = find_clock_changes(start, end, PARIS)
    assert [change.at for change in changes] == [
        datetime(2027, 3, 28, 1, tzinfo=UTC),
        datetime(2027, 10, 31, 1, tzinfo=UTC),
    ]
    assert [change.describe(PARIS) for change in changes] == [
        "clocks go forward on 28 Mar",
        "clocks go back on 31 Oct",
    ]
    assert find_clock_changes(start, end, ZoneInfo("UTC")) == []


def read_clock(text: str) -> tuple[int, int]:
    """Return what a clock shows, and its offset, in seconds."""
    clock, offset = text.split(BLANK)
    shown = sum(int(part) * unit for part, unit in zip(clock.split(":"), (3600, 60, 1), strict=False))
    parts = [int(offset[at : at + 2]) for at in range(1, len(offset), 2)]
    size = sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
    return shown, -size if offset[0] == "-" else size


def offset_at(seconds: int, zone: ZoneInfo) -> int:
    found = datetime.fromtimestamp(seconds, zone).utcoffset()
    assert found is not None
    return int(found.total_seconds())


def test_every_clock_change_is_said_rightly() -> None:
    """Of all zones, in all years up to 2040, in both directions.

    What the clock would have shown and what it shows are the same instant, that of the change, each at its own offset,
    and differ by the shift.
    """
    until, checked = 2_208_988_800, 0
    for name in zone_names():
        zone, table = ZoneInfo(name), find_table(name).table_for(until)
        for at in table.changes:  # the machine's own data may differ from ours: theirs are what pages show
            before, after = (offset_at(each, zone) for each in (at - 1, at))
            if before == after or at > until:
                continue
            change = ClockChange(datetime.fromtimestamp(at, UTC), timedelta(seconds=after - before))
            old, new = map(read_clock, change.write_clocks(zone).split(" becomes "))
            assert [(shown - offset - at) % 86_400 for shown, offset in (old, new)] == [0, 0], (name, change)
            assert (old[1], new[1]) == (before, after), (name, change)
            checked += 1
    assert checked > 30_000


@pytest.mark.parametrize("name", ["", None, "../../etc/passwd", "/etc/passwd", "Mars/Base", "a" * 1000, "Europe"])
def test_what_is_no_zone_is_none(name: str | None) -> None:
    """Zones come from addresses and cookies, so anything may stand there."""
    assert find_zone(name) is None
