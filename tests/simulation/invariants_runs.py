"""The invariants of the design, checked from outside: from commits, dispatches, handler calls and answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

from tests.engine.harness import DAY, MINUTE, SECOND
from tests.simulation.faults import HEAD_START
from tests.simulation.invariants_bindings import BindingInvariants
from tests.simulation.schedules import covers, is_same_plan
from tests.simulation.task_rules import find_broken_change, find_broken_future

from cloudsched import Context, Execution, Task
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.domain.documents.delivery_channels import NOT_DELIVERED
from cloudsched.domain.documents.execution import ExecutionStatus, Message, Run, Trigger
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.planning import jittered_start, occurrence_after, occurrence_id, waits_for_open_run
from cloudsched.engine.ports.queue import QueueMessage

if TYPE_CHECKING:
    from tests.simulation.world import Process, World


_NO_FUTURE = 30 * DAY
MAX_HOPS_AT_ONCE = 10
"""How often a dispatch may hop at one instant, as executors with clocks that differ get it one after another."""
LATE = 2 * MINUTE
"""How late anything may be after the last fault: the sweep's grace, its minute, and a margin."""


class InvariantViolated(ControlFlow):
    """An invariant of the design is violated; its number comes first. No handler catches it."""


def fail(rule: str) -> NoReturn:
    """Say which rule is broken, and by what."""
    raise InvariantViolated(rule)


@dataclass(eq=False)
class HandlerCall:
    """A handler that is running."""

    process: Process
    key: tuple[str, datetime, str]
    until: datetime
    """When its lease ends."""
    lock_key: str | None
    is_revoked: bool = False


class RunInvariants:
    """Watches a world and raises as soon as a rule does not hold."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._hops = Counter[tuple[str, str, str, datetime]]()
        self._calls: list[HandlerCall] = []
        self._revoked: set[tuple[str, datetime, str]] = set()
        """The runs that were cancelled while they ran. Their handlers end by themselves."""
        self._records: dict[tuple[str, datetime, str], Execution] = {}
        self._begun: dict[tuple[str, datetime, str], None] = {}
        self._locks: dict[tuple[str, datetime, str], str | None] = {}
        """The lock that each run's task named when the run was claimed last: an edit changes that of later claims."""
        self._counted: dict[tuple[str, datetime], set[str]] = {}
        """The occurrences of each task's schedule that were begun, or wait to be."""
        self._payloads: dict[tuple[str, datetime, str], dict[str, int]] = {}
        """What each execution runs with."""
        self.bindings = BindingInvariants(fail)
        self._told: dict[str, Task] = {}
        self._verbs: dict[str, str] = {}

    def current_verb(self) -> str:
        """The operation of the current process, if it is a client's; else an empty text."""
        return self._verbs.get(self._world.current.name, "") if self._world.current else ""

    def on_triggered(self, task: Task, execution_id: str, payload: dict[str, int]) -> None:
        """Note what a client was told: that this execution has this payload."""
        key = (task.id, task.created_at, execution_id)
        if payload != self._payloads.setdefault(key, payload):
            fail(f"P1: {key} was triggered with {payload}, and got {self._payloads[key]}")

    def on_payload(self, ctx: Context, payload: dict[str, int]) -> None:
        """Check that the handler got the payload of its run, in each of its attempts, and no other run's."""
        key = (ctx.task.id, ctx.task.created_at, ctx.execution_id)
        if payload != ctx.task.payload:
            fail(f"P1: {key} got {payload}, and its context has {ctx.task.payload}")
        if self._world.fault_profile.redefines and key not in self._payloads:
            return  # E1 holds it
        if payload != self._payloads.setdefault(key, payload):
            fail(f"P1: {key} got {payload}, and has {self._payloads[key]}")
        if payload and "-manual" not in ctx.execution_id:
            fail(f"P1: {key} got {payload}, which nobody asked it to run with")

    # ── Handlers ─────────────────────────────────────────────────────────────────────────────────────────────────

    def on_handler_start(self, ctx: Context) -> None:
        self.bindings.on_handler_start(ctx)
        self.on_attempt_start(ctx.task, ctx.execution_id, ctx.time_left())

    def on_attempt_start(self, task: Task, execution_id: str, left: timedelta) -> None:
        """Note that the current process runs a handler, for as long as its lease lasts."""
        key = (task.id, task.created_at, execution_id)
        process = self._world.current
        assert process
        until = self._world.now + left
        record = self._records.get(key)
        if record and record.status.is_final and key not in self._revoked:
            fail(f"1: {key} runs although it is {record.status}")
        lock_key = self._locks.get(key, task.scoped_lock_key)
        # A clock that is set anew between the check before the handler and the handler's own look at it may show a
        # time that is later by twice its error. No check can prevent this; a clock that is never set must not show it.
        fault_profile = self._world.fault_profile
        if left <= (-2 * fault_profile.drift if fault_profile.steps else timedelta(0)):
            fail(f"2: {key} is begun although its lease ended at {until}")
        for other in self._calls:
            if other.until <= self._world.now + 2 * self._world.fault_profile.drift:
                continue
            if other.key == key and not other.is_revoked:
                fail(f"2: {key} is run by {other.process.name} until {other.until}, and by {process.name}")
            if lock_key is not None and other.lock_key == lock_key:
                fail(f"5: {key} runs beside {other.key}, and both hold {other.lock_key!r}")
        self._calls.append(HandlerCall(process, key, until, lock_key))

    def on_heartbeat(self, ctx: Context, *, is_held: bool) -> None:
        if is_held:
            self.on_lease_renewed(ctx.time_left())

    def on_lease_renewed(self, left: timedelta) -> None:
        """Note that the lease of the current process's handler was renewed."""
        (mine,) = [call for call in self._calls if call.process is self._world.current]
        mine.until = self._world.now + left
        for other in self._calls:
            is_live = other is not mine and other.until > self._world.now + 2 * self._world.fault_profile.drift
            if is_live and other.lock_key is not None and other.lock_key == mine.lock_key:
                fail(f"5: {mine.key} goes on beside {other.key}, and both hold {other.lock_key!r}")

    def on_handler_end(self, process: Process | None) -> None:
        """Note that a process runs no handler any more, since that has ended or the process has."""
        self._calls = [call for call in self._calls if call.process is not process]

    # ── The store ────────────────────────────────────────────────────────────────────────────────────────────────

    def on_commit(
        self, before: Task | None, after: Task, executions: Sequence[Execution], messages: Sequence[Message]
    ) -> None:
        self._check_no_secret(after.model_dump_json(), *(one.model_dump_json() for one in (*executions, *messages)))
        self.bindings.on_commit(before, after, executions)
        self._check_run_count(before, after, executions)
        self._check_final_records(after, executions)
        for rule in find_broken_future(after):
            fail(rule)
        for run in after.runs:
            self._begun[after.id, after.created_at, run.execution_id] = None
        if before is None:
            return
        for rule in find_broken_change(before, after, executions):
            fail(rule)
        self._check_claims(before, after)
        self._check_nothing_lost(before, after, executions)

    def _check_run_count(self, before: Task | None, after: Task, executions: Sequence[Execution]) -> None:
        """A task's count covers runs of its schedule that started or wait for a worker; the plan never moves back."""
        counted = self._counted.setdefault((after.id, after.created_at), set())
        if before and not self._has_same_plan(before, after):
            unbegun = [run for run in after.runs if run.lease is None and run.started_at is None]
            waiting = {run.execution_id: after.schedule.occurs(run.scheduled_for) for run in unbegun}
            if left := {name for name in counted if not waiting.get(name, True)}:
                fail(f"1: {after.id} has another schedule, and {left} of the old one still wait")
            counted.intersection_update(waiting)
        for run in after.runs:
            key = (after.id, after.created_at, run.execution_id)
            is_new = key not in self._begun and key not in self._records
            if is_new and run.trigger is Trigger.SCHEDULE:
                counted.add(run.execution_id)
                if before and before.planned_to and run.scheduled_for <= before.planned_to:
                    fail(f"1: {after.id} comes back to {run.scheduled_for}, and was at {before.planned_to}")
        counted -= {each.id for each in executions if each.status.is_final and each.started_at is None}
        if after.run_count != len(counted):
            fail(f"{after.id} counts {after.run_count} runs, and had {sorted(counted)}")

    def _has_same_plan(self, before: Task, after: Task) -> bool:
        """Whether no edit has made another plan. One that finds other days in a calendar has made one."""
        if self.current_verb() in {"skip", "move one"}:  # of one occurrence, so its count goes on
            return True
        is_edit = self.current_verb() in {"create", "respell"}
        return before.schedule == after.schedule if is_edit else is_same_plan(before.schedule, after.schedule)

    def _check_final_records(self, task: Task, executions: Sequence[Execution]) -> None:
        for execution in executions:
            key = (task.id, task.created_at, execution.id)
            known = self._records.get(key)
            again = self.current_verb() == "retry" and execution.status is ExecutionStatus.RETRYING
            if again and known and known.status is not ExecutionStatus.SUCCEEDED:
                pass  # its owner wants one more attempt
            elif (
                known
                and (execution.message or "").startswith(NOT_DELIVERED)
                and known == execution.model_copy(update={"message": known.message, "is_delivered": known.is_delivered})
            ):
                pass  # it says what became of its deliveries; of one that failed, of the call at its completion
            elif known and known.status.is_final and known != execution:
                fail(f"1: {key} was {known.status}, and is recorded again as {execution.status}")
            self._records[key] = execution
            if self.current_verb() == "cancel run" and execution.status is ExecutionStatus.CANCELLED:
                self._revoked.add(key)
                for call in self._calls:
                    call.is_revoked = call.is_revoked or call.key == key

    def _check_claims(self, before: Task, after: Task) -> None:
        process = self._world.current
        assert process
        now = self._world.latest_time(process)
        for run in after.runs:
            old = before.find_run(run.execution_id)
            if run.lease is None:
                continue
            if old and old.lease and old.lease.token_hash == run.lease.token_hash:
                self._note_renewal((after.id, after.created_at, run.execution_id), run.lease.until - now)
                continue
            self._locks[after.id, after.created_at, run.execution_id] = after.scoped_lock_key
            self._revoked.discard((after.id, after.created_at, run.execution_id))
            if old and old.lease and old.lease.until > now:
                fail(f"2: {run.execution_id} was claimed although its lease lasts until {old.lease.until}")
            if before.status is not TaskStatus.ACTIVE or before.deleted_at:
                fail(f"3: {run.execution_id} was claimed of a task that is {before.status}")
            if process.wanted is None and process.revision != before.revision:
                fail(f"3: {run.execution_id} was claimed for revision {process.revision}, not {before.revision}")
            due_at = old.wake_at if old else jittered_start(before, run.scheduled_for)
            if process.wanted is None and due_at > now + HEAD_START:
                fail(f"{run.execution_id} was claimed before it was due, at {due_at}")
            if process.wanted is None:
                since = max(due_at, before.updated_at, self._world.pulls.lock_free_since(before.lock_key))
                if before.next_execution_time is not None and not old:  # one that comes later may start earlier
                    since = max(since, jittered_start(before, before.next_execution_time))
                self._check_start_time(before, run, since, now)

    def _note_renewal(self, key: tuple[str, datetime, str], left: timedelta) -> None:
        """Note that a handler's lease was extended, if its own process did that."""
        for call in self._calls:
            is_ours = self._world.current and call.process.tokens is self._world.current.tokens
            if is_ours and call.key == key:
                call.until = self._world.now + left

    def _check_start_time(self, task: Task, run: Run, due_at: datetime, now: datetime) -> None:
        """Without faults each run is claimed exactly when it is due, without the sweep."""
        if self._world.fault_profile.is_fault_free and now - due_at > SECOND:
            fail(f"4: {task.id}'s {run.execution_id}, attempt {run.attempt}, was {now - due_at} late")

    def _check_nothing_lost(self, before: Task, after: Task, executions: Sequence[Execution]) -> None:
        """Check that every occurrence the plan went past was claimed or recorded."""
        ends = after.deleted_at or after.status in {TaskStatus.PAUSED, TaskStatus.CANCELLED}
        if ends or before.next_execution_time == after.next_execution_time or before.status is not TaskStatus.ACTIVE:
            return
        handled = {one.id for one in executions} | {run.execution_id for run in after.runs}
        if self.current_verb() in {"create", "respell"} and not self._has_same_plan(before, after):
            return  # a new schedule is a new plan
        if before.schedule.timezone != after.schedule.timezone:
            return  # its local times have moved with its owner: see `invariants_journeys`
        if self._world.fault_profile.has_two_releases and not before.schedule.has_elapsed_rules:
            return  # which instants its local times are depends on the data: the same
        for occurrence in self._passed_occurrences(before, after):
            if before.schedule != after.schedule and jittered_start(before, occurrence) > after.updated_at:
                break  # the days of its calendars changed before it was due
            is_covered = any(covers(each, occurrence) for each in executions)
            if occurrence_id(before, occurrence) not in handled and not is_covered:
                fail(f"1: {after.id}'s occurrence {occurrence} was passed over without a record")

    def _passed_occurrences(self, before: Task, after: Task) -> Iterator[datetime]:
        occurrence = before.next_execution_time
        limit = after.next_execution_time
        while occurrence is not None and (limit is None or occurrence < limit):
            if limit is None and jittered_start(before, occurrence) > self._world.now + self._world.fault_profile.drift:
                ended = after.max_runs is not None and after.run_count >= after.max_runs
                is_left_out = after.schedule != before.schedule and not after.schedule.occurs(occurrence)
                if not ended and not is_left_out and not (after.until and occurrence > after.until):
                    fail(f"4: {after.id} has lost its next occurrence, {occurrence}")
                return
            if limit is None and after.max_runs is not None and after.run_count >= after.max_runs:
                return
            if after.until and occurrence > after.until:
                return
            yield occurrence
            occurrence = occurrence_after(before.model_copy(update={"max_runs": None, "until": None}), occurrence)

    def on_purge(self, task: Task | None) -> None:
        """Check the removal of a task: its owner deleted it, or its retention is over."""
        if task is None:
            return
        if task.deleted_at is None and task.status in {TaskStatus.ACTIVE, TaskStatus.PAUSED}:
            fail(f"8: {task.id} is removed although it is {task.status}")
        self._told.pop(task.id, None)
        self._records = {key: value for key, value in self._records.items() if key[0] != task.id}
        self._begun = {key: None for key in self._begun if key[0] != task.id}

    # ── The queue and the clients ────────────────────────────────────────────────────────────────────────────────

    def on_dispatch(self, envelope: QueueMessage) -> None:
        self._check_no_secret(envelope.name, envelope.body.decode(), envelope.token)
        if envelope.at > self._world.now + _NO_FUTURE:
            fail(f"6: a dispatch lies {envelope.at - self._world.now} ahead")
        body = json.loads(envelope.body)
        if body.get("hop"):
            wake_up = body["taskId"], body["executionId"], body["dueAt"], self._world.now
            self._hops[wake_up] += 1
            if self._hops[wake_up] > MAX_HOPS_AT_ONCE:
                fail(f"6: {body['executionId']} hops without end at one instant")

    def on_client_request(self, verb: str) -> None:
        assert self._world.current
        self._verbs[self._world.current.name] = verb

    @contextmanager
    def as_request(self, verb: str) -> Iterator[None]:
        """Apply the rules as for a request of that kind, which the current process makes for the block."""
        assert self._world.current
        name = self._world.current.name
        before = self._verbs.get(name, "")
        self._verbs[name] = verb
        try:
            yield
        finally:
            self._verbs[name] = before

    def on_client_reply(self, task: Task) -> None:
        stored = self._world.real_store.load(task.id)
        if stored and stored.task.created_at == task.created_at:  # else it was deleted before its client got the answer
            self._told[task.id] = task

    def _check_no_secret(self, *texts: str) -> None:
        from tests.simulation.world import SECRET  # noqa: PLC0415 - the world imports the rules

        if any(SECRET in text for text in texts):
            fail("7: the secret is in a document or in the queue")

    # ── The end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def check_end_state(self) -> None:
        open_runs: set[tuple[str, datetime, str]] = set()
        for task_id in self._told.keys() - {task.id for task in self._world.tasks()}:
            fail(f"8: {task_id} is gone, though its client was told that it is stored")
        for task in self._world.tasks():
            told = self._told.get(task.id)
            if task.deleted_at:
                fail(f"4: {task.id} is still being deleted")
            if told and told.created_at == task.created_at and task.revision < told.revision:
                fail(f"8: {task.id} has revision {task.revision}; its client was told {told.revision}")
            self._check_up_to_date(task)
            open_runs |= {(task.id, task.created_at, run.execution_id) for run in task.runs}
        for key in self._begun:
            record = self._records.get(key)
            if key not in open_runs and (record is None or not record.status.is_final):
                fail(f"1: {key} ended without a final record: {record}")

    def _check_up_to_date(self, task: Task) -> None:
        overdue = self._world.now - LATE
        for run in task.runs:
            if run.lease and run.lease.until < overdue:
                fail(f"4: nobody closed {task.id}'s {run.execution_id}, whose lease ended at {run.lease.until}")
            lock = self._world.real_store.locks.load(task.lock_key).lock if task.lock_key and not run.lease else None
            held = 0 if lock is None else sum(each.until >= overdue for each in lock.holders)
            is_held_up = held >= task.lock_limit
            if task.status is TaskStatus.ACTIVE and not (run.lease or is_held_up) and run.due_at < overdue:
                fail(f"4: nobody ran {task.id}'s {run.execution_id}, due at {run.due_at}")
            if task.status not in {TaskStatus.ACTIVE, TaskStatus.PAUSED} and not run.lease:
                fail(f"1: {task.id} is {task.status}, and {run.execution_id} waits for ever")
        following = task.next_execution_time
        if task.status is not TaskStatus.ACTIVE or following is None or waits_for_open_run(task):
            return
        if jittered_start(task, following) < overdue:
            fail(f"4: nobody ran {task.id}'s occurrence {following}")
        if any(one.status is ExecutionStatus.RUNNING for one in self._records.values()):
            fail("1: a stored record is RUNNING")
