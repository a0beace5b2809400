"""Which dispatches carry a task to its occurrences: named for what they may run, and never beyond the horizon."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import try_each

from cloudsched import Task, TaskDraft
from cloudsched.domain.documents.execution import Trigger
from cloudsched.domain.recurrence.iso8601 import LAST_INSTANT
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.edits import NO_LEAD, new_task
from cloudsched.domain.transitions.planning import jittered_start, requested_id, stamp
from cloudsched.domain.transitions.wakeups import (
    HOP_MARGIN,
    HORIZON,
    Dispatch,
    dispatch_or_hop,
    executor_wakeups,
    repair_number,
    wake_instant,
)
from cloudsched.testing import START

INSTANTS = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
IDS = st.from_regex(r"[A-Za-z0-9_-]{1,128}", fullmatch=True).filter(lambda name: not name.startswith("__"))
DISPATCHES = st.builds(
    Dispatch,
    task_id=IDS,
    revision=st.integers(1, 10**6),
    execution_id=INSTANTS.map(stamp),
    scheduled_for=INSTANTS,
    attempt=st.integers(1, 100),
    due_at=INSTANTS,
    at=st.just(START),
    after=st.just("") | INSTANTS.map(stamp),
    hop=st.integers(0, 500),
    repair=st.integers(0, 500),
    turn_key=st.text(max_size=5),
    turn=st.integers(0, 500),
    suspension_count=st.integers(0, 500),
    trace=st.just(""),
)


def make_task_at(at: datetime, **policy: object) -> Task:
    draft = TaskDraft.of(id="t", owner="ada", title="T", handler="h", schedule=at, **policy)
    return new_task(draft, START)


@given(one=DISPATCHES, other=DISPATCHES)
def test_equal_dispatches_have_equal_names(one: Dispatch, other: Dispatch) -> None:
    """Equal content has the same name, whenever it is delivered; different content has another name."""
    assert one.name == one._replace(at=START + timedelta(days=3)).name
    bodies = [json.loads(each.body) for each in (one, other)]
    assert (one.name == other.name) == (bodies[0] == bodies[1])  # both are delivered at the same time


@given(dispatch=DISPATCHES)
def test_what_is_sent_is_json(dispatch: Dispatch) -> None:
    """The body is the shortest JSON of what it says, with and without a trace; the name does not depend on that."""
    for trace in ("", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"):
        name, body = dispatch.encode(trace)
        wire = json.loads(body)
        assert (name, wire.get("trace", "")) == (dispatch.name, trace)
        assert body == json.dumps(wire, separators=(",", ":")).encode()
        assert Dispatch.from_wire(wire) == dispatch._replace(trace=trace)


@given(dispatch=DISPATCHES)
def test_a_name_is_valid_in_cloud_tasks_and_begins_with_a_hash(dispatch: Dispatch) -> None:
    """Letters, digits, hyphens and underscores, at most 500; evenly spread from the first character on."""
    assert re.fullmatch(r"[0-9a-f]{32}-[A-Za-z0-9_-]{1,128}", dispatch.name)


@try_each(
    "field",
    [
        "task_id",
        "revision",
        "execution_id",
        "attempt",
        "due_at",
        "after",
        "hop",
        "repair",
        "suspension_count",
        "turn_key",
        "turn",
    ],
)
def test_each_part_of_a_dispatch_changes_its_name(field: str) -> None:
    """If one were missing, the queue would mistake a dispatch for a duplicate of another, and drop it."""
    plain = Dispatch("t", 1, "e", START, 1, START, START)
    other: dict[str, Any] = {"task_id": "u", "execution_id": "f", "due_at": START + timedelta(1)}
    other |= {"after": "x", "turn_key": "k"}
    assert plain._replace(**{field: other.get(field, 7)}).name != plain.name


@given(distance=st.timedeltas(timedelta(0), timedelta(days=365 * 60)))
def test_a_chain_of_hops_arrives_exactly_at_the_instant(distance: timedelta) -> None:
    """Each hop is at most 30 days long, comes nearer and has its own name, and the last one is on time."""
    task = make_task_at(START + distance + timedelta(seconds=1))
    (wake,) = executor_wakeups(task)
    now, names = START, set()
    for hop in range(distance // HORIZON + 2):
        dispatch = dispatch_or_hop(task, wake, now, hop=hop)
        assert hop or dispatch == dispatch_or_hop(task, wake, now), "the first of a chain counts from zero"
        assert now <= dispatch.at <= now + timedelta(days=30)
        is_hop = dispatch.at < wake.due_at
        assert not is_hop or wake.due_at - dispatch.at >= HOP_MARGIN, "a late hop must not delay the task"
        names.add(dispatch.name)
        assert len(names) == hop + 1
        now = dispatch.at
        if now >= wake.due_at:
            break
    assert now == wake.due_at
    assert len(names) == max(1, -(-(wake.due_at - START) // HORIZON))


@given(one=INSTANTS, other=INSTANTS)
def test_an_execution_is_named_by_its_instant(one: datetime, other: datetime) -> None:
    """The same instant, in whatever zone, has the same id; ids sort as their instants do, second by second."""
    zone = datetime.fromisoformat("2027-01-01T00:00:00+05:30").tzinfo
    assert stamp(one) == stamp(one.astimezone(zone))
    assert (stamp(one) == stamp(other)) == (one == other)
    whole = [at.replace(microsecond=0) for at in (one, other)]
    assert sorted(map(stamp, whole)) == [stamp(at) for at in sorted(whole)]


def test_requested_runs_have_ids_of_their_own() -> None:
    """One instant that is scheduled, triggered and part of two backfills has four executions."""
    later = START + timedelta(hours=1)
    ids = {
        stamp(START),
        requested_id(START, Trigger.MANUAL, START),
        requested_id(START, Trigger.BACKFILL, START),
        requested_id(START, Trigger.BACKFILL, later),
    }
    assert len(ids) == 4
    with pytest.raises(ValueError, match="instant of the request"):
        requested_id(START, Trigger.MANUAL, None)


@given(occurrence=INSTANTS, jitter=st.timedeltas(timedelta(0), timedelta(days=1)))
def test_jitter_is_stable_per_occurrence(occurrence: datetime, jitter: timedelta) -> None:
    """An occurrence starts within the jitter after its instant, and at the same moment however often it is asked."""
    task = make_task_at(START + timedelta(days=1), jitter=jitter)
    start = jittered_start(task, occurrence)
    assert occurrence <= start <= occurrence + jitter
    assert start == jittered_start(task, occurrence)


def test_jitter_spreads_occurrences_and_tasks() -> None:
    """A thousand tasks at nine do not start together, and one task does not always start at the same minute."""
    task = make_task_at(START + timedelta(days=1), jitter=timedelta(hours=1))
    days = [START + timedelta(days=number) for number in range(200)]
    offsets = sorted(jittered_start(task, day) - day for day in days)
    assert len(set(offsets)) == 200
    for number in range(10):
        tenth = [at for at in offsets if number * 6 <= at.total_seconds() / 60 < (number + 1) * 6]
        assert 5 <= len(tenth) <= 45
    other = task.model_copy(update={"id": "u"})
    assert jittered_start(other, days[0]) != jittered_start(task, days[0])


def test_the_last_occurrence_of_the_calendar_can_be_planned() -> None:
    """Jitter that would start the last occurrence of a recurring task after the calendar starts it at its end."""
    days = Schedule(rrule="FREQ=DAILY", dtstart="9998-12-29T23:59:59")
    task = new_task(
        TaskDraft.of(id="t", owner="ada", title="T", handler="h", schedule=days, jitter=timedelta(days=1)),
        START,
        NO_LEAD,
    )
    last = datetime(9998, 12, 31, 23, 59, 59, tzinfo=UTC)
    wake = wake_instant(task.model_copy(update={"next_execution_time": last}))
    assert wake is not None
    assert last <= wake <= LAST_INSTANT


def test_the_repair_number_grows_ever_more_slowly() -> None:
    """It changes each minute at first, then less and less often, then every ten minutes, and never decreases."""
    numbers = [repair_number(timedelta(minutes=minutes)) for minutes in range(180)]
    assert numbers[0] == 1
    assert numbers == sorted(numbers)
    changes = [minute for minute in range(1, 180) if numbers[minute] != numbers[minute - 1]]
    assert changes[:4] == [1, 2, 4, 8]
    assert all(later - sooner <= 12 for sooner, later in pairwise(changes))


@try_each(
    "change",
    [
        {"taskId": 5},
        {"scheduledFor": "soon"},
        {"scheduledFor": "2027-01-01T00:00:00"},
        {"dueAt": "2027-01-01T00:00:00"},
        {"at": "2027-01-01T00:00:00"},
        {"at": 7},
        {"attempt": "1"},
        {"attempt": True},
        {"hop": -1},
        {"lockGrant": "1"},
        {"revision": None},
    ],
)
def test_a_body_that_is_no_dispatch_is_refused(change: dict[str, object]) -> None:
    """Each field is checked, and any invalid body raises ValueError."""
    plain = json.loads(Dispatch("t", 1, "e", START, 1, START, START).body)
    without = {key: plain[key] for key in plain if key not in change}
    for body in ({**plain, **change}, *([without] if without != plain else [])):  # lockGrant may be left out
        with pytest.raises(ValueError, match=r"a dispatch|are|name|Invalid"):
            Dispatch.from_wire(body)


def test_a_paused_ended_or_deleted_task_has_no_dispatch() -> None:
    """Not even if it has an instant at which it would be due."""
    task = make_task_at(START + timedelta(days=1))
    assert [each.due_at for each in executor_wakeups(task)] == [START + timedelta(days=1)]
    for change in ({"status": "PAUSED"}, {"deleted_at": START}):
        assert executor_wakeups(task.model_copy(update=change)) == ()
