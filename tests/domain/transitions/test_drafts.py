"""What a caller says becomes a task: the defaults, the refusals, and what an edit leaves alone."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from cloudsched import Schedule, Task, TaskDraft
from cloudsched.domain.transitions.drafts import LeadTimes, apply_edit, new_task, to_editable_fields
from cloudsched.domain.transitions.lifecycle import pause
from cloudsched.domain.transitions.merge_patch import apply_merge_patch
from cloudsched.errors import InvalidInput, InvalidSchedule
from cloudsched.testing import START

HOUR = timedelta(hours=1)
LEAD = LeadTimes()
HOURLY = Schedule(rrule="FREQ=HOURLY", dtstart="2026-12-01T00:30:00", timezone="Europe/Paris")


class Greeting(BaseModel):
    first_name: str


def drafted(**more: Any) -> TaskDraft:
    return TaskDraft.of(**{"id": "t", "owner": "ada", "title": "T", "handler": "h", **more})


def made(lead: LeadTimes = LEAD, **more: Any) -> Task:
    return new_task(drafted(**more), START, lead).task


def test_without_a_schedule_a_task_runs_once_in_five_minutes() -> None:
    """The default lead; an unanchored rule begins then, too."""
    task = made()
    assert (task.next_execution_time, task.is_one_time) == (START + timedelta(minutes=5), True)
    assert made(schedule=Schedule(rrule="FREQ=HOURLY")).next_execution_time == START + timedelta(minutes=5)


def test_without_an_id_a_task_is_given_a_random_one() -> None:
    """A version 4 UUID, each time another."""
    ids = {made(id=None).id for _ in range(5)}
    assert len(ids) == 5
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", one) for one in ids)


@pytest.mark.parametrize("at", [START - timedelta(microseconds=1), START - timedelta(days=9000)])
def test_an_instant_in_the_past_is_refused(at: datetime) -> None:
    """With the present instant, so that its caller sees whose clock is wrong."""
    with pytest.raises(InvalidSchedule, match=r"in the past \(now is 2027-01-01T00:00:00Z\)") as caught:
        made(schedule=at)
    assert caught.value.field == "schedule.at"


def test_a_minimum_lead_is_held() -> None:
    """An instant that is nearer is refused; a recurring task begins behind it; the default moves behind it."""
    lead = LeadTimes(minimum=HOUR)
    with pytest.raises(InvalidSchedule, match="nearer than the minimum lead"):
        made(lead, schedule=START + HOUR / 2)
    assert made(lead, schedule=START + HOUR).next_execution_time == START + HOUR
    assert made(lead, schedule=HOURLY).next_execution_time == START + 1.5 * HOUR
    assert made(lead).next_execution_time == START + HOUR


def test_a_recurring_schedule_that_began_in_the_past_goes_on_from_now() -> None:
    """Its first occurrence from now on is the first one that runs."""
    assert made(schedule=HOURLY).next_execution_time == START + HOUR / 2


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"schedule": HOURLY, "until": START - HOUR}, "until"),
        ({"schedule": START + HOUR, "until": START + HOUR / 2}, "until"),
        ({"schedule": Schedule(rrule="FREQ=HOURLY;COUNT=3", dtstart="2026-12-01T00:00:00")}, "schedule"),
        ({"schedule": Schedule(rrule="FREQ=DAILY;UNTIL=20261231T000000Z")}, "schedule.rrule"),
    ],
)
def test_a_task_that_would_never_run_is_refused(more: dict[str, Any], field: str) -> None:
    """An end before the first run, a count that is used up, a rule that is over."""
    with pytest.raises(InvalidInput) as caught:
        made(**more)
    assert caught.value.field == field


def test_what_is_given_in_python_goes_through_json() -> None:
    """Models, durations and instants are said as they will be on their way to production."""
    payload = Greeting(first_name="Ada")
    draft = drafted(payload=payload, expected_duration=timedelta(seconds=90), until=START + HOUR, max_runs=2)
    assert draft.payload == {"first_name": "Ada"}
    assert (draft.expected_duration, draft.until) == (timedelta(seconds=90), START + HOUR)
    with pytest.raises(InvalidInput, match="payload"):
        drafted(payload={"a": object()})
    with pytest.raises(InvalidInput, match="offset"):
        drafted(until=START.replace(tzinfo=None))


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
def test_saying_the_same_again_changes_nothing(wish: dict[str, Any]) -> None:
    """Creating a task again with the same words, later, leaves it exactly as it is: same revision, same plan."""
    task = made(**wish)
    assert apply_edit(task, drafted(**wish), START + timedelta(minutes=3), LEAD).task is task


@given(wish=WISHES)
def test_an_empty_patch_changes_nothing(wish: dict[str, Any]) -> None:
    """What a task says of itself, read back as a draft, is the task."""
    task = made(**wish)
    draft = TaskDraft.from_wire(apply_merge_patch(to_editable_fields(task), {}))
    assert apply_edit(task, draft, START + timedelta(minutes=3), LEAD).task is task


@given(wish=WISHES, other=WISHES)
def test_an_edit_makes_the_task_as_if_it_were_new(wish: dict[str, Any], other: dict[str, Any]) -> None:
    """Whatever it was before, afterwards it says what the edit says; a new revision only if that is something else."""
    other.pop("schedule", None)
    task, later = made(**wish), START + timedelta(minutes=3)
    found = apply_edit(task, drafted(**other), later, LEAD).task
    fresh = made(**other)
    names = set(TaskDraft.model_fields) - {"schedule", "id", "owner"}
    assert all(getattr(found, name) == getattr(fresh, name) for name in names)
    assert found.schedule == task.schedule
    assert found.revision == task.revision + (found is not task)


def test_an_edit_of_words_leaves_the_plan() -> None:
    """A new title moves no occurrence, not even one that is overdue."""
    task = made(schedule=HOURLY)
    found = apply_edit(task, drafted(schedule=HOURLY, title="New"), START + 5 * HOUR, LEAD).task
    assert (found.next_execution_time, found.revision) == (task.next_execution_time, 2)


def test_an_edit_of_the_end_keeps_what_has_come() -> None:
    """An occurrence that is due, and waits for its dispatch, is not dropped with a new end or run limit."""
    task = made(schedule=HOURLY)
    for change in ({"until": START + 50 * HOUR}, {"max_runs": 3}):
        found = apply_edit(task, drafted(schedule=HOURLY, **change), START + 5 * HOUR, LEAD).task
        assert found.next_execution_time == task.next_execution_time


def test_a_new_schedule_begins_from_now_and_counts_anew() -> None:
    """The plan is the one of the last edit; runs and failures of the old one are not counted."""
    task = made(schedule=HOURLY, max_runs=5).model_copy(update={"run_count": 4, "consecutive_failures": 2})
    found = apply_edit(task, drafted(schedule=START + 9 * HOUR, max_runs=5), START + 5 * HOUR, LEAD).task
    assert (found.next_execution_time, found.run_count, found.consecutive_failures) == (START + 9 * HOUR, 0, 0)


def test_a_new_schedule_is_bound_by_the_old_one_only_where_they_meet() -> None:
    """An instant that the old plan has gone past is one occurrence in both; another one may be as near as it likes.

    Whoever has claimed it may have had a clock that is a little ahead.
    """
    task = made(schedule=HOURLY).model_copy(update={"planned_to": START + HOUR})
    near = START + HOUR - timedelta(seconds=1)
    assert apply_edit(task, drafted(schedule=near), near, LEAD).task.next_execution_time == near
    every_half = Schedule(rrule="FREQ=MINUTELY;INTERVAL=30", dtstart="2026-12-01T00:00:00")
    assert apply_edit(task, drafted(schedule=every_half), near, LEAD).task.next_execution_time == START + 1.5 * HOUR


def test_a_paused_task_stays_paused_whatever_is_edited() -> None:
    """And an instant in the past is refused for it, too, rather than found out when it is resumed."""
    task = pause(made(schedule=HOURLY), START).task
    found = apply_edit(task, drafted(schedule=START + HOUR), START, LEAD).task
    assert (found.status, found.next_execution_time) == ("PAUSED", None)
    with pytest.raises(InvalidSchedule, match="in the past"):
        apply_edit(task, drafted(schedule=START - HOUR), START, LEAD)


@given(
    target=st.recursive(st.none() | st.integers(0, 3), lambda inner: st.dictionaries(st.text("ab", max_size=1), inner)),
    patch=st.recursive(st.none() | st.integers(0, 3), lambda inner: st.dictionaries(st.text("ab", max_size=1), inner)),
)
def test_a_merge_patch_is_that_of_the_rfc(target: object, patch: object) -> None:
    """RFC 7396, section 2, written as it stands there, gives the same."""

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
