"""What a preview says of clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.cases import try_each

from cloudsched import Schedule
from cloudsched.domain.schedules.preview import ClockChange, preview

PARIS = "Europe/Paris"
SPRING, AUTUMN = datetime(2027, 3, 28, tzinfo=UTC), datetime(2027, 10, 31, tzinfo=UTC)


@try_each(
    "day, time, change",
    [
        (SPRING, "01:59:59", None),
        (SPRING, "02:00:00", ClockChange.SHIFTED),
        (SPRING, "02:30:00", ClockChange.SHIFTED),
        (SPRING, "03:00:00", ClockChange.CHANGED),
        (SPRING, "03:30:00", ClockChange.CHANGED),
        (SPRING, "09:00:00", ClockChange.CHANGED),
        (AUTUMN, "01:59:59", None),
        (AUTUMN, "02:00:00", ClockChange.REPEATED),
        (AUTUMN, "02:59:59", ClockChange.REPEATED),
        (AUTUMN, "03:00:00", ClockChange.CHANGED),
    ],
)
def test_the_day_of_a_clock_change(day: datetime, time: str, change: ClockChange | None) -> None:
    """Only times in the gap are moved, only times in the fold occur twice, and later ones have another offset."""
    schedule = Schedule(rrule="FREQ=DAILY", dtstart=f"2027-01-01T{time}", timezone=PARIS)
    before, on_it, after = preview(schedule, day - timedelta(hours=26), 3)
    assert before.clock_change is None
    assert on_it.clock_change is change
    assert on_it.local.date() == day.date()
    assert after.clock_change in {None, ClockChange.CHANGED}
