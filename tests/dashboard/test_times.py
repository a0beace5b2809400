"""How time is written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.dashboard.conftest import get
from tests.web.callers import SECOND

from cloudsched.dashboard.times import BLANK, ShownInstant, find_clock_changes, find_zone, write_duration

PARIS = ZoneInfo("Europe/Paris")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.46, "0.4 s"),
        (173, "2 min 53 s"),
        (600, "10 min"),
        (62_220, "17 h 17 min"),
        (7 * 86_400 + 16 * 3600 + 3599, "7 d 16 h"),
    ],
)
def test_a_duration_has_two_units_that_are_cut(seconds: float, text: str) -> None:
    """Nothing is rounded up; minutes stand alone from 10, days from 30."""
    assert write_duration(timedelta(seconds=seconds)).replace(BLANK, " ") == text


def test_a_moment_always_says_its_offset() -> None:
    """The same instant in the zone, with its name, and in UTC; relative with "in" or "ago"."""
    now = datetime(2027, 3, 24, 14, 42, 7, tzinfo=UTC)
    moment = ShownInstant(datetime(2027, 4, 1, 7, tzinfo=UTC).astimezone(PARIS), now)
    assert moment.text.replace(BLANK, " ") == "Thu 01 Apr 2027 09:00 +0200"
    assert moment.short.replace(BLANK, " ") == "Thu 01 Apr 09:00 +0200"
    assert moment.relative.replace(BLANK, " ") == "in 7 d 16 h"
    assert moment.both.replace(BLANK, " ") == "Thu 01 Apr 2027 09:00 +0200 Europe/Paris = 07:00:00 UTC"
    assert ShownInstant((now - 3 * SECOND).astimezone(PARIS), now).relative.replace(BLANK, " ") == "3 s ago"


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


@pytest.mark.parametrize("name", ["", None, "../../etc/passwd", "/etc/passwd", "Mars/Base", "a" * 1000, "Europe"])
def test_what_is_no_zone_is_none(name: str | None) -> None:
    """Zones come from addresses and cookies, so anything may stand there."""
    assert find_zone(name) is None


@pytest.mark.parametrize(("zone", "columns"), [("UTC", 1), ("Etc/UTC", 1), ("Europe/Paris", 2), ("Europe/London", 2)])
def test_no_table_tells_the_same_times_twice(ui: str, zone: str, columns: int) -> None:
    """In UTC there is one column of what comes; elsewhere UTC stands beside it. So it is in the form's preview."""
    page = get(f"{ui}/tasks/weekday-report", tz=zone).text
    table = page[page.index("<caption>Upcoming") :].partition("</table>")[0]
    assert table.count("</th>") - 1 == columns
    row = table[table.index("<tbody>") :].partition("</tr>")[0]
    assert row.count("<td") - 1 == columns


def test_a_zone_without_a_choice_is_no_button(ui: str) -> None:
    """It would do nothing. A task in another zone offers both."""
    text = get(f"{ui}/").text
    assert 'aria-label="Show times in"' not in text
    assert "Times in UTC" in text
    assert 'aria-label="Show times in"' in get(f"{ui}/tasks/weekday-report").text
