"""Quiet hours, by the clock on the wall, against Python's own zones and across clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudsched.domain.documents.person import QuietHours
from cloudsched.domain.people.send_decision import quiet_until
from cloudsched.domain.recurrence.time_zones import load_tzinfo

ZONES = (
    *("UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu"),
    *("Pacific/Apia", "Africa/Casablanca", "America/St_Johns", "Antarctica/Troll"),
)
times = st.builds(lambda h, m: f"{h:02}:{m:02}", st.integers(0, 23), st.sampled_from([0, 1, 15, 30, 59]))
instants = st.datetimes(datetime(2010, 1, 1), datetime(2040, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001
near_changes = st.builds(
    lambda base, minutes: base + timedelta(minutes=minutes),
    st.sampled_from(
        [
            datetime(2027, 3, 28, 1, tzinfo=UTC),  # Paris forward
            datetime(2027, 10, 31, 1, tzinfo=UTC),  # Paris back
            datetime(2027, 3, 14, 7, tzinfo=UTC),  # New York forward
            datetime(2027, 11, 7, 6, tzinfo=UTC),  # New York back
            datetime(2011, 12, 30, 10, tzinfo=UTC),  # Apia skips a day
            datetime(2027, 4, 3, 15, tzinfo=UTC),  # Lord Howe back by half an hour
        ]
    ),
    st.integers(-1500, 1500),
)


def looks_quiet(hours: QuietHours, zone: str, at: datetime) -> bool:
    """Say what somebody who looks at the clock says."""
    shown = f"{at.astimezone(load_tzinfo(zone)):%H:%M}"
    if hours.start < hours.until:
        return hours.start <= shown < hours.until
    return shown >= hours.start or shown < hours.until


@given(start=times, until=times, zone=st.sampled_from(ZONES), at=instants | near_changes)
def test_the_wait_ends_at_the_first_moment_that_is_not_quiet(start: str, until: str, zone: str, at: datetime) -> None:
    """Not before the question, not in quiet hours, no wait without quiet hours; and nothing earlier would do."""
    if start == until:
        return
    hours = QuietHours(start=start, until=until)
    end = quiet_until(hours, zone, at)
    assert end >= at
    assert not looks_quiet(hours, zone, end)
    assert (end == at) == (not looks_quiet(hours, zone, at))
    step = at
    while step < end:
        assert looks_quiet(hours, zone, step), "it could have been sent here"
        step += timedelta(minutes=1)


@pytest.mark.parametrize(
    ("at", "end"),
    [
        ("2027-03-28T00:00:00+01:00", "2027-03-28T03:00:00+02:00"),  # 02:30 does not exist: the clock shows 03:00
        ("2027-10-31T02:10:00+02:00", "2027-10-31T02:30:00+02:00"),
        ("2027-10-31T02:10:00+01:00", "2027-10-31T02:30:00+01:00"),  # the clock shows quiet hours again
        ("2027-06-01T12:00:00+02:00", "2027-06-01T12:00:00+02:00"),
        ("2027-06-01T22:00:00+02:00", "2027-06-02T02:30:00+02:00"),
    ],
)
def test_quiet_hours_at_clock_changes(at: str, end: str) -> None:
    """In the gap they end at the change; in the fold they come again."""
    hours = QuietHours(start="22:00", until="02:30")
    assert quiet_until(hours, "Europe/Paris", datetime.fromisoformat(at)) == datetime.fromisoformat(end)
