"""How a draft becomes a task: defaults, refusals, and what an edit leaves unchanged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from cloudsched import Schedule, Task, TaskDraft
from cloudsched.domain.recurrence.iso8601 import LAST_INSTANT
from cloudsched.domain.transitions.edits import JUST_NOW, NO_LEAD, edit_or_restart, new_task
from cloudsched.domain.transitions.lifecycle import pause
from cloudsched.domain.transitions.task_draft import _OTHER_NAMES, apply_merge_patch, to_editable_fields
from cloudsched.errors import InvalidInput, InvalidSchedule
from cloudsched.testing import START

HOUR = timedelta(hours=1)
LEAD = NO_LEAD
HOURLY = Schedule(rrule="FREQ=HOURLY", dtstart="2026-12-01T00:30:00", timezone="Europe/Paris")


class Greeting(BaseModel):
    first_name: str


def make_draft(**more: Any) -> TaskDraft:
    return TaskDraft.of(**{"id": "t", "owner": "ada", "title": "T", "handler": "h", **more})


def make_task(lead: timedelta = LEAD, **more: Any) -> Task:
    return new_task(make_draft(**more), START, lead)


def test_without_a_schedule_a_task_runs_once_now() -> None:
    """A rule without a start begins now, too."""
    task = make_task()
    assert (task.next_execution_time, task.is_one_time) == (START, True)
    assert make_task(schedule=Schedule(rrule="FREQ=HOURLY")).next_execution_time == START


@pytest.mark.parametrize("at", [START - JUST_NOW - timedelta(microseconds=1), START - timedelta(days=9000)])
def test_an_instant_in_the_past_is_refused(at: datetime) -> None:
    """The error contains the current time, so that the caller sees whose clock is wrong."""
    with pytest.raises(InvalidSchedule, match=r"in the past: it is 2027-01-01T00:00:00Z now") as caught:
        make_task(schedule=at)
    assert caught.value.field == "schedule.at"


def test_the_minimum_lead_is_enforced() -> None:
    """A nearer instant is refused; a recurring task and what is to run now begin after the lead."""
    lead = HOUR
    with pytest.raises(InvalidSchedule, match="nearer than the minimum lead"):
        make_task(lead, schedule=START + HOUR / 2)
    assert make_task(lead, schedule=START + HOUR).next_execution_time == START + HOUR
    assert make_task(lead, schedule=HOURLY).next_execution_time == START + 1.5 * HOUR
    assert make_task(lead).next_execution_time == START + HOUR


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"schedule": HOURLY, "until": START - HOUR}, "until"),
        ({"schedule": START + HOUR, "until": START + HOUR / 2}, "until"),
        ({"schedule": Schedule(rrule="FREQ=HOURLY;COUNT=3", dtstart="2026-12-01T00:00:00")}, "schedule"),
        ({"schedule": Schedule(rrule="FREQ=DAILY;UNTIL=20261231T000000Z")}, "schedule.rrule"),
        ({"schedule": LAST_INSTANT - HOUR, "jitter": 2 * HOUR}, "jitter"),
        ({"schedule": LAST_INSTANT - HOUR, "jitter": HOUR / 2, "expiration": HOUR}, "expiration"),
    ],
)
def test_a_task_that_would_never_run_is_refused(more: dict[str, Any], field: str) -> None:
    """Its end is before the first run, its count is used up, its rule has ended, or the calendar ends before."""
    with pytest.raises(InvalidInput) as caught:
        make_task(**more)
    assert caught.value.field == field


def test_python_values_pass_through_json() -> None:
    """Models, durations and instants are converted exactly as in production."""
    payload = Greeting(first_name="Ada")
    draft = make_draft(payload=payload, expected_duration=timedelta(seconds=90), until=START + HOUR, max_runs=2)
    assert draft.payload == {"first_name": "Ada"}
    assert (draft.expected_duration, draft.until) == (timedelta(seconds=90), START + HOUR)
    with pytest.raises(InvalidInput, match="offset"):
        make_draft(until=START.replace(tzinfo=None))


WISHES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "title": st.text("abc", min_size=1),
        "description": st.text(max_size=5),
        "payload": st.dictionaries(st.text("abc", min_size=1), st.none() | st.integers(0, 9) | st.lists(st.none())),
        "jitter": st.timedeltas(timedelta(0), timedelta(hours=1)),
        "max_runs": st.none() | st.integers(1, 9),
        "until": st.none() | st.just(START + 100 * HOUR),
        "expiration": st.none() | st.timedeltas(timedelta(seconds=1), timedelta(days=1)),
        "overlap": st.sampled_from(["skip", "buffer", "allow"]),
        "delivery_channels": st.sampled_from([(), ("WEB",), ("EMAIL", "WEB")]),
        "source": st.none() | st.just({"chatId": "c", "context": {"a": None}}),
        "schedule": st.sampled_from([None, HOURLY, Schedule(rrule="FREQ=DAILY"), Schedule.once(START + HOUR)]),
    },
)


@given(wish=WISHES)
def test_a_repeated_creation_changes_nothing(wish: dict[str, Any]) -> None:
    """Creating the same task again later leaves it as it is, with the same revision and plan."""
    task = make_task(**wish)
    assert edit_or_restart(task, make_draft(**wish), START + timedelta(minutes=3), LEAD, defined_by=None).task is task


@given(wish=WISHES)
def test_an_empty_patch_changes_nothing(wish: dict[str, Any]) -> None:
    """The editable fields of a task, read back as a draft, describe the same task."""
    task = make_task(**wish)
    draft = TaskDraft.from_wire(apply_merge_patch(to_editable_fields(task), {}))
    assert edit_or_restart(task, draft, START + timedelta(minutes=3), LEAD, defined_by=None).task is task


@given(wish=WISHES, other=WISHES)
def test_an_edit_makes_the_task_as_if_it_were_new(wish: dict[str, Any], other: dict[str, Any]) -> None:
    """The edited task has the fields of the edit, whatever it had before, and a new revision only if they differ."""
    other.pop("schedule", None)
    task, later = make_task(**wish), START + timedelta(minutes=3)
    found = edit_or_restart(task, make_draft(**other), later, LEAD, defined_by=None).task
    fresh = make_task(**other)
    names = set(TaskDraft.model_fields) - {"schedule", "id", "owner"}
    assert all(getattr(found, name) == getattr(fresh, name) for name in names)
    assert found.schedule == task.schedule
    assert found.revision == task.revision + (found is not task)


def test_an_edit_of_texts_keeps_the_plan() -> None:
    """A new title moves no occurrence, not even one that is overdue."""
    task = make_task(schedule=HOURLY)
    found = edit_or_restart(
        task, make_draft(schedule=HOURLY, title="New"), START + 5 * HOUR, LEAD, defined_by=None
    ).task
    assert (found.next_execution_time, found.revision) == (task.next_execution_time, 2)


def test_an_edit_of_the_end_keeps_due_occurrences() -> None:
    """A new end or run limit does not drop an occurrence that is due and waits for its dispatch."""
    task = make_task(schedule=HOURLY)
    for change in ({"until": START + 50 * HOUR}, {"max_runs": 3}):
        found = edit_or_restart(
            task, make_draft(schedule=HOURLY, **change), START + 5 * HOUR, LEAD, defined_by=None
        ).task
        assert found.next_execution_time == task.next_execution_time


def test_a_new_schedule_begins_from_now_and_counts_from_zero() -> None:
    """The plan is that of the last edit; runs of the old plan are not counted. It fails until it has succeeded."""
    task = make_task(schedule=HOURLY, max_runs=5).model_copy(update={"run_count": 4, "consecutive_failures": 2})
    found = edit_or_restart(
        task, make_draft(schedule=START + 9 * HOUR, max_runs=5), START + 5 * HOUR, LEAD, defined_by=None
    ).task
    assert (found.next_execution_time, found.run_count, found.consecutive_failures) == (START + 9 * HOUR, 0, 2)


def test_an_instant_of_both_the_old_and_the_new_schedule_runs_once() -> None:
    """An instant that the old plan has passed is not run again; another one may be as near as it likes.

    The executor that claimed it may have had a clock that is slightly ahead.
    """
    planned = {"planned_to": START + HOUR, "next_execution_time": START + 1.5 * HOUR}
    task = make_task(schedule=HOURLY).model_copy(update=planned)
    near = START + HOUR - timedelta(seconds=1)
    assert (
        edit_or_restart(task, make_draft(schedule=near), near, LEAD, defined_by=None).task.next_execution_time == near
    )
    every_half = Schedule(rrule="FREQ=MINUTELY;INTERVAL=30", dtstart="2026-12-01T00:00:00")
    assert (
        edit_or_restart(task, make_draft(schedule=every_half), near, LEAD, defined_by=None).task.next_execution_time
        == START + 1.5 * HOUR
    )


def test_a_paused_task_stays_paused_whatever_is_edited() -> None:
    """An instant in the past is refused for it too, instead of failing when it is resumed."""
    task = pause(make_task(schedule=HOURLY), START, paused_by=None).task
    found = edit_or_restart(task, make_draft(schedule=START + HOUR), START, LEAD, defined_by=None).task
    assert (found.status, found.next_execution_time) == ("PAUSED", None)
    with pytest.raises(InvalidSchedule, match="in the past"):
        edit_or_restart(task, make_draft(schedule=START - HOUR), START, LEAD, defined_by=None)


@given(
    target=st.recursive(st.none() | st.integers(0, 3), lambda inner: st.dictionaries(st.text("ab", max_size=1), inner)),
    patch=st.recursive(st.none() | st.integers(0, 3), lambda inner: st.dictionaries(st.text("ab", max_size=1), inner)),
)
def test_a_merge_patch_works_as_in_rfc_7396(target: object, patch: object) -> None:
    """The result is that of the algorithm in RFC 7396, section 2."""

    def rfc(old: object, new: object) -> object:
        if not isinstance(new, dict):
            return new
        result = dict(old) if isinstance(old, dict) else {}
        for name, value in new.items():
            if value is None:
                result.pop(name, None)
            else:
                result[name] = rfc(result.get(name), value)
        return result

    if isinstance(target, dict) and isinstance(patch, dict):
        assert apply_merge_patch(target, patch) == rfc(target, patch)


def test_words_of_other_systems_lead_to_fields() -> None:
    """Each leads to a field that there is, however it is written; none of them hides one of our own."""
    ours = {name.replace("_", "") for name in (*TaskDraft.model_fields, *TaskDraft.beside)}
    assert {each for each in _OTHER_NAMES.values() if " " not in each} <= ours
    assert not ours & {*_OTHER_NAMES}
    for written in ("taskType", "task_type", "TASK-TYPE"):
        with pytest.raises(InvalidInput, match="Did you mean handler"):
            TaskDraft.from_wire({written: "remind"})


@pytest.mark.parametrize("owner", [None, 42, True, ["ada"]])
@pytest.mark.parametrize(
    "make", [lambda owner: make_draft(owner=owner), lambda owner: TaskDraft.from_wire({"handler": "h", "owner": owner})]
)
def test_what_is_no_text_is_no_owner(owner: object, make: Callable[[object], TaskDraft]) -> None:
    """In Python and in JSON, None too: a variable that is not set would give the task to nobody."""
    with pytest.raises(InvalidInput, match="Give text"):
        make(owner)


def test_an_empty_rule_is_none() -> None:
    """So what a table stores as one time with an empty rule is one time; within a list of rules it is a mistake."""
    once = make_task(schedule={"rrule": "", "dtstart": "2027-02-01T09:00:00"})
    assert once.schedule.upcoming(START, 2) == [datetime(2027, 2, 1, 9, tzinfo=UTC)]
    with pytest.raises(InvalidSchedule, match="is empty"):
        make_draft(schedule={"rrule": ["FREQ=DAILY", ""], "dtstart": "2027-02-01T09:00:00"})
