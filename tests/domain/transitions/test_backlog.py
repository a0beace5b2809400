"""What came due ends with exactly one record, whatever its owner does to the task before it has started."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloudsched import Execution, ExecutionStatus, TaskDraft, TaskStatus
from cloudsched.domain.documents.execution import Trigger
from cloudsched.domain.recurrence.allowance import DISPATCH_STEPS, limit_search
from cloudsched.domain.transitions import lifecycle, manual_verbs
from cloudsched.domain.transitions.claim import on_dispatch
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.edits import NO_LEAD, edit_or_restart, new_task
from cloudsched.domain.transitions.finish import AttemptReport, on_outcome
from cloudsched.domain.transitions.outcome import Done, Fail
from cloudsched.domain.transitions.overlap_and_catch_up import MAX_BACKLOG_RANGES, MAX_COUNTED, due_ranges
from cloudsched.domain.transitions.planning import occurrence_id
from cloudsched.domain.transitions.task_draft import to_editable_fields
from cloudsched.domain.transitions.wakeups import executor_wakeups
from cloudsched.engine.signed_dispatches import dispatch_or_hop
from cloudsched.errors import InvalidInput, NotAllowed
from cloudsched.features.budgets import holds
from cloudsched.features.pull.work_queue import on_worker_claim
from cloudsched.testing import START

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
LEAD = NO_LEAD
HOURLY = {"rrule": "FREQ=HOURLY", "dtstart": "2027-01-01T00:00:00"}
MINUTELY = {"rrule": "FREQ=MINUTELY", "dtstart": "2027-01-01T00:00:00"}
UNEVEN = {**HOURLY, "rdates": ["2027-01-01T00:00:07", "2027-01-01T05:10:00"], "exdates": ["2027-01-01T04:00:00"]}
ENDING = {"rrule": "FREQ=MINUTELY;INTERVAL=7;COUNT=40", "dtstart": "2027-01-01T00:00:00"}

CHANGES: dict[str, Callable[..., Commit]] = {
    "pause": partial(lifecycle.pause, paused_by=None),
    "resume": lifecycle.resume,
    "cancel": lifecycle.cancel,
}


class Deployment:
    """One task, changed as the engine changes it, and what was recorded of it."""

    def __init__(self, **fields: Any) -> None:
        draft = {"id": "t", "owner": "ada", "handler": "h", "schedule": HOURLY, "expectedDuration": 3600}
        self.now = START
        self.task = new_task(TaskDraft.from_wire({**draft, **fields}), START, LEAD)
        self.records: dict[str, Execution] = {}
        """The record of each occurrence, which may cover others as well."""
        self.recorded_at: dict[str, datetime] = {}
        self.written = 0
        """The most records of a commit."""
        self.due: set[str] = set()
        """The occurrences that came due, found without the product's planning."""

    def advance(self, span: timedelta) -> None:
        """Let time pass: what the schedule has in it comes due, if the task is active and its end not reached."""
        before, self.now = self.now, self.now + span
        if self.task.status is TaskStatus.ACTIVE and self.task.next_execution_time is not None:
            self._come_due(before)

    def _come_due(self, since: datetime) -> None:
        occurrence = self.task.schedule.next_after(since - timedelta(microseconds=1))
        while occurrence is not None and occurrence <= self.now:
            if self.task.until is None or occurrence <= self.task.until:
                self.due.add(occurrence_id(self.task, occurrence))
            occurrence = self.task.schedule.next_after(occurrence)

    def apply(self, transition: Commit) -> None:
        self.written = max(self.written, len(transition.executions))
        for record in transition.executions:
            if record.trigger is not Trigger.SCHEDULE:
                continue
            for at in self._list_covered(record):
                name = occurrence_id(self.task, at)
                assert name not in self.records, f"{name} is recorded twice"
                self.records[name], self.recorded_at[name] = record, at
        before, self.task = self.task, transition.task
        if before.status is not TaskStatus.ACTIVE and self.task.status is TaskStatus.ACTIVE:
            held = before.present_hold
            self._come_due(self.now if held is None or not held.is_alone else held.at)

    def _list_covered(self, record: Execution) -> list[datetime]:
        """Return the occurrences that a record covers, which are as many as it says."""
        if record.covers is None:
            return [record.scheduled_for]
        last, tick = record.covers.until, timedelta(microseconds=1)
        found = self.task.schedule.between(record.scheduled_for, last + tick)
        assert (found[0], found[-1]) == (record.scheduled_for, last)
        assert len(found) == record.covers.count or (record.covers.is_at_least and len(found) > record.covers.count)
        return found

    def deliver(self, *, finishes: bool) -> None:
        """Deliver the due dispatches; a handler ends at once, or its run stays open."""
        for wakeup in executor_wakeups(self.task):
            decision = on_dispatch(self.task, dispatch_or_hop(self.task, wakeup, self.now), self.now, "token")
            if not isinstance(decision, Commit):
                continue
            self.apply(decision)
            if decision.effects.run is not None and finishes:
                self.finish()

    def finish(self, outcome: Done | Fail = Done(None)) -> None:  # noqa: B008 - frozen
        run = next((run for run in self.task.runs if run.lease), None)
        if run is not None:
            report = AttemptReport(outcome)
            ended = on_outcome(self.task, run.execution_id, "token", report, self.now, Random(0))  # noqa: S311
            assert ended is not None
            self.apply(ended)

    def work(self) -> None:
        """Let a worker claim a run, if one is offered."""
        claimed = on_worker_claim(self.task, self.now, "token", "ann", None)
        if claimed is not None:
            self.apply(claimed)

    def pause(self) -> None:
        self.apply(lifecycle.pause(self.task, self.now, paused_by=None))

    def resume(self) -> None:
        self.apply(lifecycle.resume(self.task, self.now))

    def cancel(self) -> None:
        self.apply(lifecycle.cancel(self.task, self.now))

    def trigger(self) -> None:
        self.apply(manual_verbs.trigger(self.task, self.now, author=None))

    def use_up_budget(self) -> None:
        self.apply(holds.hold(self.task, self.now, "used up"))

    def get_budget(self) -> None:
        self.apply(holds.release(self.task, self.now))

    def edit(self, **patch: Any) -> None:
        """Change fields of the task, as a PATCH does."""
        self.apply(self.decide_edit(**patch))

    def decide_edit(self, **patch: Any) -> Commit:
        draft = TaskDraft.from_wire({**to_editable_fields(self.task), **patch})
        return edit_or_restart(self.task, draft, self.now, LEAD, defined_by=None)

    def settle(self) -> None:
        """Cancel the task if it has not ended, and end what runs."""
        if self.task.status in {TaskStatus.ACTIVE, TaskStatus.PAUSED}:
            self.cancel()
        while self.task.runs:
            self.finish()

    def statuses(self) -> dict[int, str]:
        """Return the status of each recorded occurrence, by the hour in which it came due."""
        return {
            round((self.recorded_at[name] - START) / HOUR): each.status.value for name, each in self.records.items()
        }


VERBS = st.one_of(
    st.tuples(st.just("advance"), st.sampled_from([MINUTE, 59 * MINUTE, HOUR, 3 * HOUR, 150 * MINUTE])),
    st.tuples(st.just("deliver"), st.booleans()),
    st.sampled_from([("pause",), ("resume",), ("finish",), ("cancel",), ("pause",), ("resume",)]),
    st.tuples(st.just("schedule"), st.sampled_from([HOURLY, MINUTELY, UNEVEN, ENDING])),
    st.tuples(st.just("until"), st.sampled_from([None, -3 * HOUR, -MINUTE, timedelta(0), HOUR])),
    st.tuples(st.just("catchUp"), st.sampled_from(["all", "latest", "none", {"mode": "all", "window": 5400}])),
    st.tuples(st.just("overlap"), st.sampled_from(["skip", "buffer", "allow"])),
    st.tuples(st.just("expiration"), st.sampled_from([None, 600, 7200])),
    st.tuples(st.just("jitter"), st.sampled_from([0, 600, 5000])),
    st.tuples(st.just("pull"), st.sampled_from([None, "gpu"])),
    st.sampled_from([("work",), ("use_up_budget",), ("get_budget",), ("trigger",)]),
)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from([HOURLY, MINUTELY, UNEVEN, ENDING]),
    st.sampled_from(["all", "latest", "none"]),
    st.lists(VERBS, min_size=3, max_size=30),
)
def test_every_occurrence_that_came_due_ends_with_exactly_one_record(
    schedule: dict[str, Any], catch_up: str, verbs: list[tuple[str, Any]]
) -> None:
    """Pauses, resumes, cancels, edits, late deliveries and open runs in any order: none is lost, none counted twice."""
    world = Deployment(schedule=schedule, catchUp=catch_up)
    world._come_due(START)  # noqa: SLF001 - the first one may be due at once
    for verb, *arguments in verbs:
        try:
            match verb:
                case "advance":
                    world.advance(arguments[0])
                case "deliver":
                    world.deliver(finishes=arguments[0])
                case "pause" | "resume" | "cancel" | "finish" | "work" | "use_up_budget" | "get_budget" | "trigger":
                    getattr(world, verb)()
                case "until":
                    end = arguments[0]
                    world.edit(until=None if end is None else (world.now + end).isoformat())
                case _:
                    world.edit(**{verb: arguments[0]})
        except (NotAllowed, InvalidInput):
            pass
    world.settle()
    assert world.due <= set(world.records)
    assert all(record.status.is_final for record in world.records.values())


def test_an_occurrence_beyond_an_earlier_end_is_recorded_once_though_the_task_starts_again() -> None:
    """An earlier end skips it, a cancel ends those that were kept, and without an end it is not planned again."""
    world = Deployment()
    world.advance(HOUR)
    world.edit(until=(world.now - MINUTE).isoformat())
    world.cancel()
    assert world.statuses() == {0: "CANCELLED", 1: "SKIPPED"}
    world.edit(until=None)
    assert world.task.next_execution_time == world.now + HOUR


def test_an_occurrence_beyond_an_earlier_end_is_recorded_once_though_the_schedule_changes() -> None:
    """The end goes back and forth, and the new schedule has that occurrence as well."""
    world = Deployment(schedule=MINUTELY, catchUp="all")
    world.advance(HOUR)
    for end in (world.now - MINUTE, START - HOUR):
        world.edit(until=end.isoformat())
    world.edit(until=None)
    world.edit(schedule=HOURLY)
    assert world.task.next_execution_time == world.now + HOUR


def overdue(hours: float = 3, **fields: Any) -> Deployment:
    """Return a deployment in which nothing was delivered for some hours; its first occurrence is an hour away."""
    world = Deployment(**{"schedule": {**HOURLY, "dtstart": "2027-01-01T01:00:00"}, **fields})
    world.advance(hours * HOUR)
    return world


@pytest.mark.parametrize(
    ("catch_up", "kept", "recorded"),
    [
        ("all", [1, 2, 3], {}),
        ("latest", [3], {1: "SKIPPED", 2: "SKIPPED"}),
        ("none", [3], {1: "SKIPPED", 2: "SKIPPED"}),
        ({"mode": "all", "window": 3600}, [2, 3], {1: "SKIPPED"}),
    ],
)
def test_a_pause_decides_by_catch_up_and_a_resume_runs_what_it_kept(
    catch_up: object, kept: list[int], recorded: dict[int, str]
) -> None:
    """Three hours without a delivery, then a pause and, at once, a resume: three occurrences run or are recorded."""
    world = overdue(catchUp=catch_up)
    world.pause()
    assert world.statuses() == recorded
    assert world.task.next_execution_time is None
    world.resume()
    for _ in range(5):
        world.deliver(finishes=True)
    assert world.statuses() == {**recorded, **dict.fromkeys(kept, "SUCCEEDED")}
    assert world.task.next_execution_time == START + 4 * HOUR


def test_what_passes_during_a_pause_did_not_come_due() -> None:
    """The plan goes on with what came due before the pause, and then with what comes after it."""
    world = overdue(catchUp="all")
    world.pause()
    world.advance(4.5 * HOUR)
    world.resume()
    world.advance(HOUR)
    for _ in range(6):
        world.deliver(finishes=True)
    assert world.statuses() == dict.fromkeys([1, 2, 3, 8], "SUCCEEDED")
    assert (world.task.backlog, world.task.plan_from) == ((), None)


def test_a_one_off_that_its_policies_rule_out_ends_with_its_record() -> None:
    """Paused later than its expiration allows it is EXPIRED, and a resume ends the task."""
    world = Deployment(schedule={"at": "2027-01-01T01:00:00Z"}, expiration=600)
    world.advance(1.5 * HOUR)
    world.pause()
    assert world.statuses() == {1: "EXPIRED"}
    world.resume()
    assert world.task.status is TaskStatus.EXPIRED


@pytest.mark.parametrize("paused", [False, True])
def test_a_cancel_records_what_was_still_to_run(*, paused: bool) -> None:
    """What the policies rule out keeps their reason; the rest is CANCELLED, also after a pause."""
    world = overdue(catchUp={"mode": "all", "window": 5400})
    if paused:
        world.pause()
        world.advance(HOUR)
    world.cancel()
    assert world.statuses() == {1: "SKIPPED", 2: "CANCELLED", 3: "CANCELLED"}
    assert "catchUp" in (world.records["20270101T010000Z"].message or "")
    cancelled = world.records["20270101T030000Z"]
    assert cancelled is world.records["20270101T020000Z"]
    assert "1 more was cancelled with it, up to Fri 1 Jan 2027 at 03:00" in (cancelled.message or "")


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize(
    ("patch", "skipped"),
    [
        ({"schedule": {"rrule": "FREQ=DAILY", "dtstart": "2027-01-01T12:00:00"}}, [1, 2, 3]),
        ({"schedule": {**HOURLY, "dtstart": "2027-01-01T01:00:00", "exdates": ["2027-01-01T02:00:00"]}}, [2]),
        ({"until": "2027-01-01T01:30:00Z"}, [2, 3]),
    ],
)
def test_an_edit_of_the_plan_records_what_is_not_part_of_the_new_one(
    patch: dict[str, Any], skipped: list[int], *, paused: bool
) -> None:
    """What it has as well still runs, as does what lies before an earlier end."""
    world = overdue(catchUp="all")
    if paused:
        world.pause()
    world.edit(**patch)
    assert world.statuses() == dict.fromkeys(skipped, "SKIPPED")
    world.edit(until=None)
    if paused:
        world.resume()
    for _ in range(4):
        world.deliver(finishes=True)
    left = dict.fromkeys({1, 2, 3} - set(skipped), "SUCCEEDED")
    assert world.statuses() == {**dict.fromkeys(skipped, "SKIPPED"), **left}


@pytest.mark.parametrize(("overlap", "kept"), [("skip", []), ("buffer", [3]), ("allow", [2, 3])])
def test_a_pause_during_a_run_decides_by_overlap(overlap: str, kept: list[int]) -> None:
    """What came due while a run was open is skipped when the task is paused, as it would be when the run ends."""
    world = overdue(1, overlap=overlap, catchUp="all", expectedDuration=3600)
    world.deliver(finishes=False)
    world.advance(2 * HOUR)
    world.pause()
    assert world.statuses() == dict.fromkeys({2, 3} - set(kept), "SKIPPED")
    world.finish()
    world.resume()
    for _ in range(3):
        world.deliver(finishes=True)
    assert {hour for hour, status in world.statuses().items() if status == "SUCCEEDED"} == {1, *kept}


def test_a_task_that_pauses_itself_keeps_what_came_due() -> None:
    """A failure too many decides as a pause by its owner does."""
    world = overdue(catchUp="all", pauseAfterFailures=1)
    world.deliver(finishes=False)
    world.finish(Fail("broken"))
    assert (world.statuses(), world.task.status) == ({1: "FAILED"}, TaskStatus.PAUSED)
    world.advance(12 * HOUR)
    world.resume()
    for _ in range(3):
        world.deliver(finishes=True)
    assert {hour for hour, status in world.statuses().items() if status == "SUCCEEDED"} == {2, 3, 15}


STEADY = {"rrule": "FREQ=MINUTELY", "dtstart": "2027-01-01T00:00:00", "timezone": "Europe/Paris"}
UNSTEADY = {"rrule": "FREQ=DAILY;BYHOUR=9,10,11;BYMINUTE=0,10,20,30,40,50", "dtstart": "2027-01-01T00:00:00"}


@pytest.mark.parametrize("schedule", [MINUTELY, STEADY, UNSTEADY], ids=["in UTC", "in a zone", "by the clock"])
@pytest.mark.parametrize("verb", ["deliver", "pause", "cancel", "schedule"])
def test_a_year_that_came_due_has_one_record_for_each_reason(verb: str, schedule: dict[str, Any]) -> None:
    """Half a million occurrences: their number costs no document, no later commit and no long search."""
    world = Deployment(schedule=schedule, catchUp={"mode": "latest", "window": 3600})
    world.now += timedelta(days=365)
    world.task = world.task.model_copy(update={"created_at": START})
    last = world.task.schedule.between(world.now - 24 * HOUR, world.now + MINUTE / 60)[-1]
    with limit_search(DISPATCH_STEPS) as allowance:
        if verb == "schedule":
            transition = world.decide_edit(schedule={"rrule": "FREQ=DAILY", "dtstart": "2027-01-01T12:00:00"})
        elif verb == "deliver":
            (wakeup,) = executor_wakeups(world.task)
            decision = on_dispatch(world.task, dispatch_or_hop(world.task, wakeup, world.now), world.now, "token")
            assert isinstance(decision, Commit)
            transition = decision
        else:
            transition = CHANGES[verb](world.task, world.now)
    records = transition.executions
    assert 1 <= len(records) <= 3
    assert {each.status for each in records} <= {ExecutionStatus.SKIPPED, ExecutionStatus.CANCELLED}
    assert allowance.steps - allowance.remaining < 15_000
    covered = sum(1 if each.covers is None else each.covers.count for each in records)
    if schedule is not UNSTEADY:
        assert not any(each.covers and each.covers.is_at_least for each in records)
        whole = 365 * 24 * 60 + 1
        assert covered + len(transition.task.backlog) + len(transition.task.runs) == whole
    else:
        assert covered >= MAX_COUNTED
    assert records[0].scheduled_for == world.task.next_execution_time
    ends = {each.scheduled_for if each.covers is None else each.covers.until for each in records}
    assert last in ends | {each.until for each in transition.task.backlog} | {
        run.scheduled_for for run in transition.task.runs
    }


@given(jitter=st.integers(0, 5000), late=st.integers(0, 50_000))
def test_the_search_for_what_is_due_finds_what_a_walk_finds(jitter: int, late: int) -> None:
    """A range has the first and the last due occurrence at its ends, whether their jitter is over or not."""
    world = Deployment(schedule=UNEVEN, jitter=jitter)
    world.now += timedelta(seconds=late)
    walked = [START, *world.task.schedule.between(START + timedelta(microseconds=1), world.now)]
    (found,) = due_ranges(world.task, world.now)
    assert (found.next_at, found.until) == (walked[0], walked[-1])


def test_only_so_many_pauses_keep_a_backlog() -> None:
    """Of a task that is paused again and again before anything runs, the oldest occurrences are recorded as SKIPPED."""
    world = overdue(1, catchUp="all")
    for _ in range(MAX_BACKLOG_RANGES + 3):
        world.pause()
        world.advance(HOUR)
        world.resume()
        world.advance(HOUR)
    world.pause()
    assert len(world.task.backlog) == MAX_BACKLOG_RANGES
    world.settle()
    assert world.due == set(world.records)
