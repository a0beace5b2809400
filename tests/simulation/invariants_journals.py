"""The invariants of durable handlers, checked from outside: from commits and from what handlers receive.

J1  An entry of a journal is written under the lease of its run, in its order, and never changes once it is final.
J2  When an execution ends, its whole journal becomes part of its record, and nothing is left elsewhere. The outcomes
    of unawaited calls are recorded then.
J3  A step that was recorded is not called again.
J4  A handler receives what is recorded, in every replay.
J5  An event is stored once, and consumed once by an execution that it is for; an execution that waits for it resumes.
    One that ends without success has what it did not consume in its record, and gets it back when it is retried.
J6  Neither a suspension nor a mismatch is ever recorded as a failure of a handler that asks for the same each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from tests.simulation.invariants_runs import fail

from cloudsched import Context, Execution, Task
from cloudsched.domain.documents.children import CHILDREN_HANDLER
from cloudsched.domain.documents.execution import ExecutionStatus, Run
from cloudsched.domain.documents.journal import JournalEntry, StepError, StepKind, StepRecord, StepStatus
from cloudsched.domain.documents.task import FINAL_STATUSES
from cloudsched.domain.transitions.commit import ArchivedJournal
from cloudsched.errors import CallFailed, JournalMismatch

if TYPE_CHECKING:
    from tests.simulation.world import Process, World


_OWN_WORDS = {"no use", "enough", *(f"The task is {each}." for each in FINAL_STATUSES)}
"""What the error says of an execution that its handler, or the end of its task, has ended."""
_FAILURES = {StepStatus.FAILED, StepStatus.TIMED_OUT}

Key = tuple[str, datetime, str]
"""An execution: its task's id, when that was created, and its own id."""


@dataclass(eq=False)
class KnownExecution:
    """The facts known of one execution."""

    entries: dict[int, StepRecord] = field(default_factory=dict)
    """Its journal as it was committed."""
    draws: dict[int, str] = field(default_factory=dict)
    """What it drew at random, by position."""
    holder: Process | None = None
    """The process that has claimed it."""
    record: Execution | None = None
    """Its last outcome."""
    told: tuple[int, set[int]] = (0, set())
    """How much it had asked for when its last attempt ended, and which of that it had just been told had failed."""


class JournalInvariants:
    """Watches the durable handlers of a history and raises as soon as an invariant is violated."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[Key, KnownExecution] = {}
        self._newest: dict[tuple[str, str], KnownExecution] = {}
        self._kept: set[int] = set()
        """The events that were stored on their task, by number."""
        self._unconsumed: dict[Key, list[dict[str, int]]] = {}
        """The events in the records of executions that ended without success."""

    def recorded_entry(self, task_id: str, execution_id: str, number: int) -> StepRecord | None:
        """Return an entry of the newest execution of that id as it was committed."""
        known = self._newest.get((task_id, execution_id))
        return known.entries.get(number) if known else None

    def _known_execution(self, key: Key) -> KnownExecution:
        if key not in self._known:
            self._known[key] = self._newest[key[0], key[2]] = KnownExecution()
        return self._known[key]

    # ── Handlers ─────────────────────────────────────────────────────────────────────────────────────────────────

    def on_step_called(self, ctx: Context, number: int) -> None:
        known = self._known_if_held(ctx)
        entry = known and known.entries.get(number)
        if entry and entry.status is not StepStatus.WAITING:
            fail(f"J3: {ctx.task.id}'s {ctx.execution_id} calls its step {number}, which is {entry.status}")

    def check_result_seen(self, ctx: Context, number: int, value: object, *, is_recorded: bool = False) -> None:
        """Compare what a handler received with the journal; `is_recorded` if the journal must have it before that."""
        known = self._known_if_held(ctx)
        if known is None:
            return
        entry = known.entries.get(number)
        where = f"{ctx.task.id}'s {ctx.execution_id} sees {value!r} as its {number}"
        if entry is None or entry.status is StepStatus.WAITING:
            if is_recorded:
                fail(f"J4: {where}, before that is recorded: {entry}")
            return
        told: object = entry.started_at if entry.kind is StepKind.NOW else entry.result
        if isinstance(value, CallFailed):
            value, told = (value.status, value.type), entry.error and (entry.error.status, entry.error.type)
        if value != told:
            fail(f"J4: {where}, where {told!r} is recorded")

    def check_race_seen(self, ctx: Context, number: int, winner: int, value: object) -> None:
        """Compare the winner of a race, and its result, with the journal, which must have both before the handler."""
        known = self._known_if_held(ctx)
        if known is None:
            return
        entry = known.entries.get(number)
        if entry is None or entry.kind is not StepKind.RACE or entry.result.get("winner") != winner:
            fail(f"J4: {ctx.task.id}'s {ctx.execution_id} sees {winner} win race {number}, recorded as {entry}")
        self.check_result_seen(ctx, winner, value, is_recorded=True)

    def check_random_value(self, ctx: Context, place: int, draw: str) -> None:
        """Compare a handler's random draw with the earlier draw at the same position."""
        before = self._known_execution(_context_key(ctx)).draws.setdefault(place, draw)
        if before != draw:
            fail(f"J4: {ctx.task.id}'s {ctx.execution_id} draws {draw} now, and drew {before} before")

    def check_mismatch(self, ctx: Context, error: Exception) -> None:
        """Note the outcome that a handler received from an operation."""
        if isinstance(error, JournalMismatch):
            fail(f"J6: {ctx.task.id}'s {ctx.execution_id}: {error}")

    def on_handler_finished(self, ctx: Context, asked: int, failed: set[int]) -> None:
        """Note how many operations a handler had requested when it ended, and which failures it received last."""
        known = self._known_if_held(ctx)
        if known is not None:
            known.told = (asked, failed)

    def _known_if_held(self, ctx: Context) -> KnownExecution | None:
        """Return what is known of an execution, if the calling process has its lease."""
        known = self._known_execution(_context_key(ctx))
        return known if known.holder is self._world.current else None

    # ── The store ────────────────────────────────────────────────────────────────────────────────────────────────

    def on_commit(
        self,
        before: Task | None,
        after: Task,
        executions: Sequence[Execution],
        entries: Sequence[JournalEntry],
        folded: Sequence[ArchivedJournal],
    ) -> None:
        for execution in executions:
            self._check_errors(execution)
        self._check_kept_events(before, after, executions)
        self._check_events(before, after, entries)
        self._check_entries(before, after, executions, entries)
        for execution in executions:
            if execution.status.is_final:
                self._check_archive(after, execution)
        for each in folded:
            if after.find_run(each.execution_id):
                fail(f"J2: the journal of {after.id}'s {each.execution_id} is removed while it is open")
        for run in after.runs:
            known = self._known_execution(_key(after, run.execution_id))
            old = before and before.find_run(run.execution_id)
            if run.lease is None:
                known.holder = None
                self._check_suspension(known, after, run)
            elif not (old and old.lease and old.lease.token_hash == run.lease.token_hash):
                known.holder = self._world.current
                known.told = (0, set())  # a worker elsewhere that ends this attempt has been told nothing

    def _check_entries(
        self, before: Task | None, after: Task, executions: Sequence[Execution], entries: Sequence[JournalEntry]
    ) -> None:
        retried = {each.id for each in executions if self._world.rules.current_verb() == "retry"}
        for execution_id in retried & {run.execution_id for run in after.runs}:
            known = self._known_execution(_key(after, execution_id))
            self._check_retry_keeps(
                known, after, execution_id, [each for each in entries if each.execution_id == execution_id]
            )
            known.draws.clear()
        for entry in entries:
            known = self._known_execution(_key(after, entry.execution_id))
            old, new = known.entries.get(entry.number), entry.to_record()
            if entry.execution_id not in retried:
                self._check_lease(before, after, entry)
            self._check_order(known, after, old, new)
            known.entries[entry.number] = new

    def _check_retry_keeps(
        self, known: KnownExecution, task: Task, execution_id: str, kept: Sequence[JournalEntry]
    ) -> None:
        """Look whether a retry by hand keeps all but what made it fail; no handler here asks for more after that."""
        where = f"J2: {task.id}'s {execution_id}, which was {known.record}, is retried with {kept}"
        run, restored = task.find_run(execution_id), {entry.number: entry.to_record() for entry in kept}
        if sorted(restored) != list(range(1, len(restored) + 1)) or run is None or run.steps != len(restored):
            fail(f"{where}, and is {run}")
        fatal = self._fatal_entries(known)
        for number, old in known.entries.items():
            new = restored.get(number)
            if new is not None and new.model_copy(update={"is_made": old.is_made}) == old:
                if number in fatal:
                    fail(f"{where}: what made it fail, {old}, is not done again")
                continue
            is_beside = old.kind is StepKind.CALL and any(
                known.entries[each].kind is StepKind.CALL for each in fatal if each
            )
            trees = self._world.trees
            goes_on = trees.is_revived(old.child) or trees.has_succeeded(old.child)
            is_anew = new is not None and (new.child != old.child or goes_on)
            is_again = new is None or (new.status is StepStatus.WAITING and is_anew)
            if is_again and new is not None and self._world.trees.has_ended(old.child):
                continue  # it was cancelled with its parent, which was not told
            if is_again and old.kind is StepKind.RACE and fatal & {*old.result["calls"]}:
                continue  # it is run again with the call that failed it
            if not is_again or old.status not in _FAILURES or (number not in fatal and not is_beside):
                fail(f"{where}: {old} is lost")
        known.entries = restored

    def _fatal_entries(self, known: KnownExecution) -> set[int]:
        """Return which entries made an execution fail, as its record's error says, or what its handler had just met."""
        record = known.record
        if record is None or record.status not in {ExecutionStatus.FAILED, ExecutionStatus.CANCELLED}:
            return set()
        failed = [each for each in known.entries.values() if each.status in _FAILURES]
        error = record.error or StepError(type="", message=record.message or "")
        if error.type == "CallFailed":
            return {each.number for each in failed if each.child and each.child in error.message}
        kinds = {"StepFailed": StepKind.STEP, "EventTimedOut": StepKind.EVENT}
        if error.type in kinds:
            return {*sorted(each.number for each in failed if each.kind is kinds[error.type])[-1:]}
        asked, told = known.told
        if record.handler == CHILDREN_HANDLER:  # built in, so it tells nothing: in order, it meets one after the other
            asked, told = len(known.entries), {len(known.entries)}
        is_in_own_words = error.type in {"HandlerError", "Retry"} or error.message in _OWN_WORDS
        return {each.number for each in failed if is_in_own_words and asked == len(known.entries)} & told

    def _check_order(self, known: KnownExecution, task: Task, old: StepRecord | None, new: StepRecord) -> None:
        where = f"entry {new.number} of {task.id}"
        if new.number > 1 and new.number - 1 not in known.entries:
            fail(f"J1: {where} is recorded, and the one before it is not")
        if old is None:
            return
        if old.status is not StepStatus.WAITING and old != new:
            fail(f"J1: {where} was final, {old}, and is recorded again as {new}")
        fixed = ("kind", "name", "started_at", "child")
        if any(getattr(old, name) != getattr(new, name) for name in fixed) or new.attempts < old.attempts:
            fail(f"J1: {where} was {old}, and has become {new}")

    def _check_lease(self, before: Task | None, after: Task, entry: JournalEntry) -> None:
        process = self._world.current
        assert process
        where = f"entry {entry.number} of {after.id}'s {entry.execution_id}"
        known = self._known_execution(_key(after, entry.execution_id))
        old, new = before.find_run(entry.execution_id) if before else None, after.find_run(entry.execution_id)
        if old is None or old.lease is None or known.holder is not process:
            fail(f"J1: {where} is written by one that does not hold its lease")
        if new is None:
            fail(f"J2: {where} is written, and its run has ended")
        if new.lease and old.lease.until <= after.updated_at:  # which is when it was decided
            fail(f"J1: {where} is written under a lease that ended at {old.lease.until}")
        if new.steps < entry.number:
            fail(f"J1: {where} is written, and its run says that there are {new.steps}")

    def _check_archive(self, task: Task, execution: Execution) -> None:
        known = self._known.get(_key(task, execution.id))
        left = self._world.real_store.load_journal(task.id, execution.id)
        if left:
            fail(f"J2: {task.id}'s {execution.id} is {execution.status}, and {len(left)} entries are left over")
        recorded = {step.number: step for step in execution.steps}
        if sorted(recorded) != list(range(1, len(recorded) + 1)):
            fail(f"J2: {task.id}'s {execution.id} has the steps {sorted(recorded)} in its record")
        for number, entry in known.entries.items() if known else ():
            step = recorded.get(number)
            if step is None:
                fail(f"J2: entry {number} of {task.id}'s {execution.id} is not in its record")
            if entry.status is not StepStatus.WAITING and step != entry:
                fail(f"J2: entry {number} of {task.id}'s {execution.id} was {entry}, and is recorded as {step}")
        for step in execution.steps:
            old = known.entries.get(step.number) if known else None
            if step.child is not None and (old is None or old.status is StepStatus.WAITING):
                self._check_closed_call(task, execution, old, step)
        if known:
            known.entries = recorded
            known.record = execution

    def _check_closed_call(self, task: Task, execution: Execution, old: StepRecord | None, step: StepRecord) -> None:
        """Check a record's entry for a call whose end the journal had not recorded."""
        fixed = ("kind", "name", "started_at", "child", "attempts", "is_made")
        if old is not None and any(getattr(old, name) != getattr(step, name) for name in fixed):
            fail(f"J2: entry {step.number} of {task.id}'s {execution.id} was {old}, and is recorded as {step}")
        if step.status is not StepStatus.WAITING:
            self._world.trees.check_recorded_result(step)
        elif (
            old is not None
            and self._world.fault_profile.is_fault_free
            and self._world.trees.has_long_ended(step.child, task)
        ):
            fail(f"J2: {task.id}'s {execution.id} ends, and does not say how {step} has")

    def _check_suspension(self, known: KnownExecution, task: Task, run: Run) -> None:
        if run.suspension is None:
            return
        waiting = [entry for entry in known.entries.values() if entry.status is StepStatus.WAITING]
        calls = {entry.number for entry in waiting if entry.kind is StepKind.CALL}
        events = {entry.name for entry in waiting if entry.kind is StepKind.EVENT}
        ends = {entry.due_at for entry in waiting if entry.kind in {StepKind.SLEEP, StepKind.STEP}}
        is_recorded = calls >= set(run.suspension.calls) and events >= set(run.suspension.events)
        if run.suspension.reason.startswith("sleeps"):
            is_recorded = run.due_at in ends or run.due_at <= task.updated_at
        if not is_recorded:
            fail(f"J1: {task.id}'s {run.execution_id} waits for what is not in its journal: {run}, {waiting}")

    def _check_errors(self, execution: Execution) -> None:
        errors = [execution.error, *(attempt.error for attempt in execution.attempts)]
        if self._world.fault_profile.redefines and execution.handler == CHILDREN_HANDLER:
            return  # a retry by hand runs the children of today, which may be others
        for error in errors:
            is_ours = error and (error.type in {"Suspended", "JournalMismatch"} or "went on after" in error.message)
            if error and is_ours:
                fail(f"J6: {execution.task_id}'s {execution.id} failed with {error.type}: {error.message}")

    # ── Events ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_kept_events(self, before: Task | None, after: Task, executions: Sequence[Execution]) -> None:
        earlier = before.events if before else ()
        for execution in executions:
            key = _key(after, execution.id)
            left = [event.payload for event in earlier if event.execution_id == execution.id]
            if execution.status.is_final and execution.status is not ExecutionStatus.SUCCEEDED:
                recorded = [event.payload for event in execution.events]
                if recorded != left:
                    fail(f"J5: {execution.id} of {after.id} ends with {left}, and {recorded} is in its record")
                self._unconsumed[key] = recorded
            elif after.find_run(execution.id) and (restored := self._unconsumed.pop(key, [])):
                self._kept -= {payload["n"] for payload in restored}
                missing = [each for each in restored if each not in [event.payload for event in after.events]]
                if missing:
                    fail(f"J5: {execution.id} of {after.id} is retried without {missing}, which it had not consumed")

    def _check_events(self, before: Task | None, after: Task, entries: Sequence[JournalEntry]) -> None:
        earlier = before.events if before else ()
        old = [event.payload for event in earlier]
        new = [event.payload for event in after.events]
        for payload in new:
            if payload not in old and payload["n"] in self._kept:
                fail(f"J5: the event {payload} of {after.id} is kept twice")
            self._kept.add(payload["n"])
        if len(new) != len({payload["n"] for payload in new}):
            fail(f"J5: an event of {after.id} is there twice: {new}")
        still_open = {None, *(run.execution_id for run in after.runs)}
        if any(event.execution_id not in still_open for event in after.events):
            fail(f"J5: {after.id} keeps {after.events}, and only {still_open} are open")
        gone = [event for event in earlier if event.payload not in new and event.execution_id in still_open]
        taken = [entry for entry in entries if self._consumes_event(after, entry)]
        if [event.payload for event in gone] != [entry.result for entry in taken]:
            fail(f"J5: the events {gone} are taken off {after.id}, and {taken} are recorded as taken")
        for event, entry in zip(gone, taken, strict=True):
            if event.execution_id not in {None, entry.execution_id}:
                fail(f"J5: {event} of {after.id} is taken by {entry}")
        assert self._world.current
        now = self._world.latest_time(self._world.current) + 2 * self._world.fault_profile.drift
        for run in after.runs:
            waiting = {event.name for event in after.events if event.execution_id in {None, run.execution_id}}
            if run.lease is None and run.suspension and waiting & set(run.suspension.events) and run.due_at > now:
                fail(f"J5: {after.id}'s {run.execution_id} waits for {run.suspension.events}, which have come")

    def _consumes_event(self, task: Task, entry: JournalEntry) -> bool:
        """Whether an entry records for the first time that an event was consumed."""
        old = self._known_execution(_key(task, entry.execution_id)).entries.get(entry.number)
        is_new = old is None or old.status is StepStatus.WAITING
        return is_new and entry.kind is StepKind.EVENT and entry.status is StepStatus.SUCCEEDED

    # ── The end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def check_end_state(self) -> None:
        open_runs = {(task.id, run.execution_id) for task in self._world.tasks() for run in task.runs}
        for key in self._world.open_journals():
            if key not in open_runs:
                fail(f"J2: entries are left under {key}, which is not open")


def _key(task: Task, execution_id: str) -> Key:
    return (task.id, task.created_at, execution_id)


def _context_key(ctx: Context) -> Key:
    return _key(ctx.task, ctx.execution_id)
