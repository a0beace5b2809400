"""Every instant that is written can be read again, up to the end of the calendar."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cloudsched import App
from cloudsched.domain.documents.task import Task
from cloudsched.domain.recurrence.iso8601 import LAST_INSTANT, add_duration
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidInput
from cloudsched.testing import Simulation

LAST_DAY = datetime(9998, 12, 31, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def work(app: App) -> None:
    """Register the handler that `create` names."""
    app.handler("work")(lambda: None)


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("jitter", {"jitter": timedelta(days=1)}),
        ("expiration", {"expiration": timedelta(days=1)}),
        ("expiration", {"expiration": timedelta(hours=8), "jitter": timedelta(hours=8)}),
        ("expiration", {"expiration": timedelta(days=2_900_000), "schedule": None}),
        ("expiration", {"expiration": timedelta(days=2_900_000), "schedule": None, "pull": "gpu"}),
    ],
)
def test_a_task_whose_instants_exceed_the_calendar_is_refused(
    sim: Simulation, create: Callable[..., Task], field: str, fields: dict[str, Any]
) -> None:
    """Jitter or an expiration past the year 9998 is an error of that field, and nothing is stored."""
    with pytest.raises(InvalidInput) as caught:
        create(**{"schedule": Schedule.once(LAST_DAY), **fields})
    assert caught.value.field == field
    assert not sim.app.tasks().items


@pytest.mark.parametrize("rrule", [None, "FREQ=DAILY"])
def test_an_edit_whose_instants_exceed_the_calendar_is_refused(
    sim: Simulation, create: Callable[..., Task], rrule: str | None
) -> None:
    """The edit of a one-time or recurring task is refused, and the task stays as it was."""
    recurring = Schedule(rrule=rrule, dtstart="9998-12-31T12:00:00") if rrule else Schedule.once(LAST_DAY)
    task = create(schedule=recurring)
    with pytest.raises(InvalidInput, match="jitter"):
        sim.app.update(task.id, jitter=timedelta(days=1))
    assert sim.app.get(task.id) == task


@pytest.mark.usefixtures("sim")
@pytest.mark.parametrize("at", ["9998-12-31T23:59:59-05:00", "1583-01-01T00:00:00+05:00"])
def test_the_year_limit_applies_to_the_instant_in_utc(create: Callable[..., Task], at: str) -> None:
    """An instant is stored in UTC, so one that is in range only in its own zone is refused."""
    with pytest.raises(InvalidInput):
        create(schedule=datetime.fromisoformat(at))
    with pytest.raises(InvalidInput, match="until"):
        create(schedule=Schedule(rrule="FREQ=DAILY"), until=at)


def test_no_occurrence_comes_after_the_calendar() -> None:
    """The evening of 9998-12-31 in New York is 9999 in UTC: it is no occurrence."""
    zone = {"timezone": "America/New_York"}
    daily = Schedule(rrule="FREQ=DAILY", dtstart="9998-12-29T20:00:00", rdates=("9998-12-31T21:00:00",), **zone)
    assert [at.day for at in daily.upcoming(datetime(9998, 12, 1, tzinfo=UTC), 9)] == [30, 31]


def test_a_document_that_could_not_be_read_is_not_written(make_task: Callable[..., Task]) -> None:
    """Writing an instant out of range is an error that names the field, on every store and wherever it was computed."""
    late = datetime(9999, 1, 1, tzinfo=UTC)
    for write in (Task.to_stored, Task.to_stored_json):
        with pytest.raises(InvalidInput, match=r"wakeAt.*9999"):
            write(make_task().model_copy(update={"wake_at": late}))


def test_add_duration_stops_at_the_end_of_the_calendar() -> None:
    """`add_duration` returns the last instant where the sum lies beyond it, however long the duration."""
    assert add_duration(LAST_DAY, timedelta(hours=1)) == LAST_DAY + timedelta(hours=1)
    assert add_duration(LAST_DAY, timedelta(days=1)) == LAST_INSTANT
    assert add_duration(LAST_DAY, timedelta.max) == LAST_INSTANT
