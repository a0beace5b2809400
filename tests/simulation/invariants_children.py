"""The invariants of calls and their parents, checked from outside.

T1  A call has one task, made after its entry in the journal; it is made once, and not after its end was recorded. It
    is made by who has its caller's run, and not after that was cancelled or deleted.
T2  The outcome that a journal records for a call is that of the call's own run, not of one triggered manually.
T3  A run that waits for calls resumes when the last one has ended; if that notification is lost, it polls.
    A run that waits for a race resumes when the first one has ended.
T4  When a task is cancelled or deleted, none of its descendants keeps running, not even below calls that have ended.
T5  The call that wins a race ended first, by its own record, of those whose end its decision could know.
    A loser that is recorded as cancelled does not go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from tests.engine.harness import SECOND
from tests.simulation.invariants_runs import LATE, fail

from cloudsched import Execution, Task
from cloudsched.domain.documents.execution import ExecutionStatus, Run, Trigger
from cloudsched.domain.documents.journal import JournalEntry, StepKind, StepRecord, StepStatus
from cloudsched.domain.documents.task import Parent, TaskStatus
from cloudsched.domain.transitions.suspend import next_poll

if TYPE_CHECKING:
    from tests.simulation.world import Process, World


_AT_ONCE = SECOND
_LOST = "Another call won the race."


class CallInvariants:
    """Watches the calls of a history and raises as soon as an invariant is violated."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._records: dict[str, list[Execution]] = {}
        """The final records of each call, including removed ones."""
        self._ended_at: dict[str, datetime] = {}
        """When each call ended, if it does not run again."""
        self._once_ended: set[str] = set()
        self._reads = 0
        self._last_read: dict[tuple[Process, str], int] = {}
        """Which of all reads was the last one of a call by a process."""
        self._reads_at_end: dict[str, int] = {}
        """How many reads there were when a call ended."""
        self._leases: dict[tuple[str, str], tuple[Process, datetime]] = {}
        """The last claim of each execution, and when its lease ends."""
        self._stopped: set[tuple[str, str]] = set()
        """The executions that were cancelled with their task, or deleted with it, and those that had called before."""
        self._callers: dict[str, Parent] = {}
        """The parent of each call."""
        self._statuses: dict[str, TaskStatus] = {}
        self._losers: set[str] = set()
        """The calls that were recorded as cancelled because another one won."""
        self._deleted: set[str] = set()
        self._on_their_own: set[str] = set()
        """Calls made by somebody whose lease had ended, when nobody could know that they were still to come; those that
        had ended and that a client has run again; and those of a task that was removed when its retention was over."""

    @property
    def calls(self) -> list[str]:
        """The ids of all calls that were ever made, the earliest first."""
        return list(self._records)

    def has_ended(self, call: str | None) -> bool:
        return call in self._once_ended

    def has_long_ended(self, call: str | None, parent: Task) -> bool:
        """Whether a call had ended for good, and was not cancelled or deleted, when its parent was changed."""
        end, ends = self._ended_at.get(call or ""), self._records.get(call or "", [])
        is_told = bool(ends) and all(each.status is not ExecutionStatus.CANCELLED for each in ends)
        return is_told and end is not None and end < parent.updated_at - _AT_ONCE and call not in self._deleted

    def is_revived(self, call: str | None) -> bool:
        """Whether a call that had ended was run again by a client, and has not failed again since it was read here."""
        reader = self._world.current
        read = self._last_read.get((reader, call), 0) if reader and call else 0
        is_seen = call in self._ended_at and read > self._reads_at_end.get(call or "", 0)
        return call in self._on_their_own and (self.has_succeeded(call) or not is_seen)

    def has_succeeded(self, call: str | None) -> bool:
        """Whether the last record of a call is a success: it may have ended before its cancellation reached it."""
        ends = self._records.get(call or "", [])
        return bool(ends) and ends[-1].status is ExecutionStatus.SUCCEEDED

    def on_load(self, task_id: str) -> None:
        if task_id in self._records and self._world.current:
            self._reads += 1
            self._last_read[self._world.current, task_id] = self._reads

    # ── The store ────────────────────────────────────────────────────────────────────────────────────────────────

    def on_commit(
        self, before: Task | None, after: Task, executions: Sequence[Execution], entries: Sequence[JournalEntry]
    ) -> None:
        """Check a commit, before the journals' invariants do."""
        assert self._world.current
        if before is None and after.parent:
            self._callers[after.id] = after.parent
            self._check_creation(after, after.parent)
        if after.parent:
            self._statuses[after.id] = after.status
            self._records.setdefault(after.id, []).extend(each for each in executions if each.status.is_final)
            if not (after.has_ended or after.deleted_at):
                self._ended_at.pop(after.id, None)
                self._reads_at_end.pop(after.id, None)
            else:
                self._reads_at_end.setdefault(after.id, self._reads)
                self._ended_at.setdefault(after.id, self._world.now)
                self._once_ended.add(after.id)
        if before and before.has_ended and not after.has_ended:
            self._on_their_own.add(after.id)
        for entry in entries:
            self._check_new_entry(after, entry)
        for run in after.runs:
            old = before and before.find_run(run.execution_id)
            if run.lease and not (old and old.lease and old.lease.token_hash == run.lease.token_hash):
                self._leases[after.id, run.execution_id] = (self._world.current, run.lease.until)
                if before and old and old.waiting_for is None:
                    self._check_prompt_resumption(before, old)
            elif run.lease:
                holder, _ = self._leases[after.id, run.execution_id]
                self._leases[after.id, run.execution_id] = (holder, run.lease.until)
        self._note_stopped(before, after, executions)

    def _check_creation(self, child: Task, parent: Parent) -> None:
        assert self._world.current
        entry = self._world.journals.recorded_entry(parent.task_id, parent.execution_id, parent.step)
        if entry is None or entry.kind is not StepKind.CALL or entry.child != child.id:
            fail(f"T1: {child.id} is made, and entry {parent.step} of its parent is {entry}")
        if entry.status is not StepStatus.WAITING:
            fail(f"T1: {child.id} is made, whose end is recorded already: {entry}")
        if child.id in self._records and child.id not in self._deleted:
            fail(f"T1: {child.id} is made twice")
        if (parent.task_id, parent.execution_id) in self._stopped:
            fail(f"T1: {child.id} is made, and its caller was cancelled or deleted before")
        maker, until = self._leases[parent.task_id, parent.execution_id]
        if maker is not self._world.current:
            fail(f"T1: {child.id} is made by {self._world.current}, and {maker} has the run")
        if until <= self._world.latest_time(maker):
            self._on_their_own.add(child.id)

    def _check_new_entry(self, task: Task, entry: JournalEntry) -> None:
        known = self._world.journals.recorded_entry(task.id, entry.execution_id, entry.number)
        if entry.kind is StepKind.RACE and "winner" in entry.result and not (known and "winner" in known.result):
            self._check_winner(task, entry)
        is_new = known is None or known.status is StepStatus.WAITING
        if is_new and entry.status is not StepStatus.WAITING and entry.child is not None:
            self.check_recorded_result(entry)

    def _check_winner(self, task: Task, race: JournalEntry) -> None:
        """Check that no call that is known to have ended before the winner lost to it.

        A call ends with its task: one that a client has backfilled goes on after its own run, and one that a client has
        paused has not ended with its run, until it is cancelled since it has lost.
        """
        ends: dict[int, datetime] = {}
        for number in race.result["calls"]:
            call = self._world.journals.recorded_entry(task.id, race.execution_id, number)
            if call is None:
                continue
            own = self._records.get(call.child or "", [])
            is_known = call.child not in self._on_their_own | self._deleted and len(own) == 1
            if (
                is_known
                and (number == race.result["winner"] or self._is_known_to_have_ended(call))
                and own[0].trigger is Trigger.SCHEDULE
                and own[0].finished_at
                and own[0].status is not ExecutionStatus.CANCELLED
                and self._statuses.get(call.child or "") is not TaskStatus.CANCELLED
            ):
                ends[number] = own[0].finished_at
        winner = race.result["winner"]
        if winner in ends and ends[winner] > min(ends.values()):
            fail(f"T5: {winner} wins race {race.number} of {task.id}, and the calls ended at {ends}")

    def _is_known_to_have_ended(self, call: StepRecord) -> bool:
        """Whether the journal or the process that decides a race knows of a call's end.

        A call may end right after it was read, and yet by its record before the winner: their clocks differ. One whose
        entry says that it has lost was still waited for when the race was decided.
        """
        assert self._world.current
        assert call.child
        last_read = self._last_read.get((self._world.current, call.child), 0)
        has_lost = call.error is not None and call.error.message == _LOST
        has_ended = call.status is not StepStatus.WAITING and not has_lost
        return has_ended or last_read > self._reads_at_end.get(call.child, 0)

    def check_recorded_result(self, entry: StepRecord) -> None:
        """Check the outcome of a call when it is first recorded."""
        assert entry.child is not None
        ends = self._records.get(entry.child, [])
        if entry.status is StepStatus.SUCCEEDED:
            own = [each for each in ends if each.trigger is Trigger.SCHEDULE]
            if not any(each.status is ExecutionStatus.SUCCEEDED and each.content == entry.result for each in own):
                fail(f"T2: {entry.child} is recorded as {entry.result!r}, and its records are {ends}")
        elif entry.error is None or entry.error.status is None:
            fail(f"T2: {entry.child} is recorded as failed, and nothing says how: {entry}")
        elif entry.error.status == "DELETED" and entry.child not in self._deleted:
            fail(f"T2: {entry.child} is taken for deleted, and nobody has deleted it")
        if entry.error is not None and entry.error.message == _LOST:
            self._losers.add(entry.child)
            goes_on = self._statuses.get(entry.child) is TaskStatus.ACTIVE
            if goes_on and entry.child not in self._on_their_own | self._deleted:
                fail(f"T5: {entry.child} is recorded as cancelled, and is not: {entry}")
        elif entry.child not in self._once_ended:
            fail(f"T2: {entry.child} is recorded as {entry.status}, and has not ended: {entry}")

    def _note_stopped(self, before: Task | None, after: Task, executions: Sequence[Execution]) -> None:
        if self._world.rules.current_verb() == "retry":
            self._stopped -= {(after.id, each.id) for each in executions}
        if after.status is TaskStatus.ACTIVE:  # a new schedule reactivates a cancelled task, with what still runs
            self._stopped = {each for each in self._stopped if each[0] != after.id}
        if after.deleted_at:
            self._deleted.add(after.id)
        if before is None:
            return
        is_cancelled = after.status is TaskStatus.CANCELLED and before.status is not TaskStatus.CANCELLED
        if is_cancelled or (after.deleted_at and not before.deleted_at):
            # A handler that cancels its own execution ends its lease with that; what it has called goes on.
            gone = [run for run in before.runs if after.deleted_at or not run.lease or after.find_run(run.execution_id)]
            ended = {each.execution_id for each in self._callers.values() if each.task_id == after.id}
            ended -= {run.execution_id for run in before.runs}
            if not is_cancelled and self._world.rules.current_verb() != "delete":
                ended = set()  # it is removed since its retention is over; the calls it left continue
                self._on_their_own |= {call for call, each in self._callers.items() if each.task_id == after.id}
            self._stopped |= {(after.id, each) for each in (*ended, *(run.execution_id for run in gone))}

    # ── Waiting ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _last_end(self, task: Task, run: Run) -> datetime | None:
        """Return when the last of the calls ended that a run waits for, if all have; for a race, the first of them."""
        entries = [self._world.journals.recorded_entry(task.id, run.execution_id, each) for each in _awaited_calls(run)]
        ends = [self._ended_at.get(entry.child) for entry in entries if entry and entry.child]
        known = [end for end in ends if end is not None]
        if run.suspension and run.suspension.any_call:
            return min(known, default=None)
        return max(known) if known and len(known) == len(ends) else None

    def _check_prompt_resumption(self, task: Task, run: Run) -> None:
        """Without faults no parent has to poll to learn that its calls have ended."""
        end = self._last_end(task, run)
        since = max(end, task.updated_at, self._world.pulls.lock_free_since(task.lock_key)) if end else None
        if self._world.fault_profile.is_fault_free and since and self._world.now - since > _AT_ONCE:
            fail(f"T3: {task.id}'s {run.execution_id} was not told that its calls had ended at {end}")

    # ── The end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def check_end_state(self) -> None:
        for task in self._world.tasks():
            if not task.has_ended and (above := self._stopped_ancestor(task.id)) is not None:
                fail(f"T4: {task.id} goes on, though the execution of {above}, above it, was stopped")
            if task.id in self._losers - self._on_their_own and not (task.has_ended or task.deleted_at):
                fail(f"T5: {task.id} has lost a race, and goes on")
            for run in task.runs:
                if task.status is TaskStatus.ACTIVE and run.lease is None:
                    self._check_poll_time(task, run)

    def _stopped_ancestor(self, call: str) -> Parent | None:
        """Return the stopped execution that a call is below of, unless a call in between was continued by a client."""
        while call in self._callers and call not in self._on_their_own:
            parent = self._callers[call]
            if (parent.task_id, parent.execution_id) in self._stopped:
                return parent
            call = parent.task_id
        return None

    def _check_poll_time(self, task: Task, run: Run) -> None:
        end, suspension = self._last_end(task, run), run.suspension
        if end is None or suspension is None or run.due_at <= self._world.now:
            return
        where = f"{task.id}'s {run.execution_id} waits until {run.due_at} for calls that had ended at {end}"
        if end >= self._world.faults_end_at and end < self._world.now - LATE:
            fail(f"T3: {where}, when nothing went wrong any more")
        entries = [self._world.journals.recorded_entry(task.id, run.execution_id, each) for each in _awaited_calls(run)]
        since = min(entry.started_at for entry in entries if entry)
        if run.due_at > next_poll(since, suspension.at) + LATE:
            fail(f"T3: {where}, and does not look by itself before")


def _awaited_calls(run: Run) -> tuple[int, ...]:
    return run.suspension.calls if run.suspension else ()
