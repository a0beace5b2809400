"""The position of one attempt in its journal, the entries that are not committed yet, and how it suspends.

A step's result is committed before the handler sees it, under the lease, so that of two executors only the
one that holds the lease continues. Each kind of request that a handler makes is a module with functions that
take the cursor.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from cloudsched.domain.documents.authority import DEFAULT_SENDERS
from cloudsched.domain.documents.journal import (
    ENTRY_OVERHEAD_BYTES,
    MAX_COMMIT_ENTRIES,
    MAX_PENDING_BYTES,
    MAX_STEPS,
    FailureCause,
    JournalEntry,
    StepKind,
    StepStatus,
    describe_step,
)
from cloudsched.domain.documents.json_limits import max_size
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.documents.usage import Amounts
from cloudsched.domain.raised_errors import get_cause, get_members
from cloudsched.domain.transitions.outcome import Cancel, Fail, Outcome, Suspend
from cloudsched.engine.durable.arguments import require_name
from cloudsched.engine.durable.results import Results
from cloudsched.engine.durable.step_attempt import (
    HandlerThread,
    ReportedUsage,
    refuse_change,
    require_not_timed_out,
    sum_entries,
)
from cloudsched.engine.durable.suspension import OUTAGE_PAUSE, Surroundings, Suspended
from cloudsched.errors import (
    CallFailed,
    JournalMismatch,
    LeaseLost,
    LimitExceeded,
    QuotaExceeded,
    ScriptFailed,
    WorkflowError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cloudsched.domain.documents.delivery_channels import DeliveryChannel
    from cloudsched.domain.transitions.commit import Commit


class FailureTracker:
    """Tracks the failures that were raised in, or returned to, one attempt of a durable handler."""

    def __init__(self) -> None:
        self._noted: list[tuple[Exception, FailureCause]] = []

    def note(self, errors: Iterable[Exception], steps: Iterable[int], position: int) -> None:
        """Note the errors that report failed entries, and how many entries the handler had requested."""
        cause = FailureCause(steps=tuple(steps), position=position)
        self._noted += [(error, cause) for error in errors]

    def merge_since(self, since: int, position: int) -> None:
        """Merge the failures of the entries from `since` on into one, raised in the handler at `position`."""
        steps = sorted({step for _, cause in self._noted for step in cause.steps if step >= since})
        merged = FailureCause(steps=tuple(steps), position=position)
        self._noted = [(error, merged if min(cause.steps) >= since else cause) for error, cause in self._noted]

    def cause_of(self, error: BaseException | None, position: int | None) -> FailureCause | None:
        """Return the entries that made a handler fail: of its error, the errors in its group, or its cause.

        If none is among these, it is the failure noted at `position`: the handler has requested no entry
        since. `error` is None if it returned a failure, and `position` if it requested fewer entries than
        were recorded.
        """
        causes = list(self._find_causes(error, set())) or [each for _, each in self._noted if each.position == position]
        steps = {step for cause in causes for step in cause.steps}
        positions = [each.position for _, each in self._noted if steps & {*each.steps}]
        if not steps:
            return None
        return FailureCause(steps=tuple(sorted(steps)), position=min(positions))

    def _find_causes(self, error: BaseException | None, seen: set[int]) -> Iterator[FailureCause]:
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            for noted, cause in self._noted:
                if noted is error or _is_rethrown_by_script(noted, error):
                    yield cause
                    return
            for each in get_members(error):
                yield from self._find_causes(each, seen)
            error = get_cause(error)


def _is_rethrown_by_script(noted: Exception, error: BaseException) -> bool:
    """Return whether a script rethrew a failed call.

    The exception is lost in a script, but the call's id is not.
    """
    if type(error) is not ScriptFailed or not isinstance(noted, CallFailed):
        return False
    return bool(noted.task_id) and noted.task_id in error.problem


MIN_QUOTA_PAUSE = timedelta(minutes=1)
MAX_QUOTA_PAUSE = timedelta(minutes=10)
"""The shortest and the longest suspension of a handler before it retries a call for which its owner's quota
had no room."""


class PendingCalls:
    """The calls of one attempt by their entry numbers."""

    def __init__(self, make_call: Callable[[Task], bool], made: int) -> None:
        self._make_call = make_call
        self._new = set[int]()
        self._waiting = set[int]()
        self._quota_refusal: QuotaExceeded | None = None
        self.made: int = made
        """The entry number up to which all calls are known to have tasks."""
        self.tasks: dict[int, Task] = {}
        """The tasks that are not created yet."""

    @property
    def waiting(self) -> list[int]:
        """The calls whose end is not recorded, in the order in which they were made."""
        return sorted(self._waiting)

    @property
    def is_refused(self) -> bool:
        """Return whether the owner's quota had no room for a call when it was last tried."""
        return self._quota_refusal is not None

    def note(self, entries: Iterable[JournalEntry]) -> None:
        """Note which of the changed entries are calls that have not ended."""
        for entry in entries:
            is_waiting = entry.kind is StepKind.CALL and entry.status is StepStatus.WAITING
            (self._waiting.add if is_waiting else self._waiting.discard)(entry.number)

    def may_have_ended(self, number: int) -> bool:
        """Return whether a call may have an outcome yet: not if this attempt has only just made it."""
        return number not in self._new and number not in self.tasks

    def look_at_all(self) -> None:
        """Take it that any call that was made may have an outcome, however lately: making the others takes its time."""
        self._new.clear()

    def create(self) -> None:
        """Create the tasks in order until the owner's quota is full: the rest wait."""
        self._quota_refusal = None
        for number in sorted(self.tasks):
            try:
                is_new = self._make_call(self.tasks[number])
            except QuotaExceeded as refusal:
                self._quota_refusal = refusal.with_traceback(None)
                return
            if is_new:
                self._new.add(number)
            del self.tasks[number]
            self.made = number

    def await_room(
        self,
        suspend: Suspend,
        now: datetime,
        first_started_at: Callable[[int], datetime],
    ) -> Suspend:
        """Return the suspension that also ends when the owner's quota may have room for the calls."""
        refusal = self._quota_refusal
        if refusal is None:
            return suspend

        pause = min(max(now - first_started_at(min(self.tasks)), MIN_QUOTA_PAUSE), MAX_QUOTA_PAUSE)
        if refusal.retry_after is not None:
            pause = timedelta(seconds=refusal.retry_after)
        if len(self.tasks) == 1:
            what = "a call waits"
        else:
            what = f"{len(self.tasks)} calls wait"

        return replace(
            suspend,
            reason=f"{suspend.reason}; {what} for room: {refusal}",
            until=min(suspend.until, now + pause),
            quota_refusal=str(refusal),
        )


MAX_ARGUMENT_CHARS = 800
"""The number of characters of an argument that an error shows."""


class JournalCursor:
    """The position of one attempt in the journal of its execution."""

    def __init__(self, surroundings: Surroundings, thread: HandlerThread) -> None:
        task = surroundings.attempt.begun_task
        run = surroundings.attempt.run
        if run.lease is None:
            raise ValueError(f"execution {run.execution_id} is not claimed")

        self.surroundings = surroundings
        self.attempt = surroundings.attempt
        self.clock = surroundings.clock
        self.execution_id: str = run.execution_id
        self.run = run
        """The run as it was when the attempt started."""
        self._is_owners = task.is_written_by_owner
        claim = f"{run.attempt}-{run.lease.token_hash[:12]}"
        self.results: Results = Results(surroundings.blobs, f"{task.id}/{run.execution_id}", claim)
        self.position: int = 0
        """The number of entries that the handler has requested."""
        self.entries: dict[int, JournalEntry] | None = None
        """The journal, as far as it was loaded."""
        self.pending: dict[int, JournalEntry] = {}
        """The entries that are not committed yet."""
        self._pending_bytes = 0
        self.is_complete = True
        """True as long as it is certain what was committed."""
        self.is_durable: bool = run.steps > 0
        """True if the handler has requested anything that is worth a journal. A recorded instant alone is
        not."""
        self.calls: PendingCalls = PendingCalls(surroundings.make_call, run.calls_made)
        self.failures: FailureTracker = FailureTracker()
        self.thread = thread
        self.versions: dict[str, int] = {}
        """The versions that this attempt follows, by name."""
        self.step_usage: ReportedUsage | None = None
        """The usage that the running step has reported, or None outside of steps."""
        self.lease_until: datetime | None = None
        """The instant until which the last commit of journal entries renewed the lease."""
        self.suspension: Suspended | None = None
        self._mismatch: JournalMismatch | None = None

    @property
    def journal(self) -> dict[int, JournalEntry]:
        """The entries by number, including those that are not committed yet.

        They are loaded when first needed.
        """
        if self.entries is None:
            if self.run.steps:
                entries = {entry.number: entry for entry in self.surroundings.load()}
            else:
                entries = {}
            if len(entries) < self.run.steps:  # finished steps must not run again
                raise WorkflowError(
                    f"The journal has {len(entries)} of its {self.run.steps} entries: its task was deleted, or "
                    "entries were removed."
                )
            self.entries = entries
            self.calls.note(entries.values())
        return self.entries

    @property
    def is_in_step(self) -> bool:
        """Return whether a step's function is running, of which only the result is recorded."""
        return self.step_usage is not None

    @contextmanager
    def step(self, number: int) -> Iterator[ReportedUsage]:
        """Run a step's function in a `with` block, which gives the usage that the function reports."""
        self.position = number  # its outcome is recorded, whatever it is
        self.step_usage = usage = ReportedUsage()
        try:
            yield usage
        finally:
            self.step_usage = None

    def require_may_record(self, kind: StepKind, name: str) -> None:
        """Check that the handler itself makes the request, not a step of it, and that it may continue."""
        require_not_timed_out()
        require_name("name", name)
        self.thread.require_own(describe_step(kind, name))
        if self.suspension is not None:
            raise self.suspension.with_traceback(None)  # without the functions of those that it has suspended
        if self._mismatch is not None:  # the handler caught it, perhaps in a retry loop
            self._suspend_with(Fail(str(self._mismatch)), self._mismatch)
        if self.is_in_step:
            raise WorkflowError(
                f"A step cannot contain other operations: move {describe_step(kind, name)} out of it, into the handler."
            )

    def require_replayable(self) -> None:
        """Note that the journal is needed, as the handler is replayed.

        Its changes so far must not have to be.
        """
        if self.thread.change is not None:
            raise refuse_change(self.thread.change)
        self.is_durable = True

    def next_entry(self, kind: StepKind, name: str) -> tuple[int, JournalEntry | None]:
        """Return the number of the entry that the handler requests now, and the entry if it is recorded."""
        self.require_may_record(kind, name)
        self.flush_if_large()
        number = self.position + 1
        entry = self.journal.get(number)
        if entry is not None:
            self.position = number
            try:
                entry.require(kind, name, is_owners=self._is_owners)
            except JournalMismatch as mismatch:
                self._mismatch = mismatch
                raise
        elif number > MAX_STEPS:
            raise LimitExceeded(
                f"The journal has {MAX_STEPS} entries, the maximum: all of them are read whenever the handler is "
                "replayed. Move parts of the work into calls."
            )
        return number, entry

    def require_same(
        self,
        number: int,
        what: str,
        before: object,
        now: object,
        *,
        always: bool = False,
    ) -> None:
        """Check, in a replay test or `always`, that a request has the same arguments as the first time."""
        if (always or self.surroundings.suspend_policy.every_step) and before != now:
            self._mismatch = JournalMismatch(
                number,
                _describe_arguments(what, before),
                _describe_arguments(what, now),
            )
            raise self._mismatch

    def new_entry(self, number: int, kind: StepKind, name: str) -> JournalEntry:
        """Return an entry that starts now. `put` adds it to the journal."""
        return JournalEntry(
            number=number,
            kind=kind,
            name=name,
            execution_id=self.execution_id,
            started_at=self.clock.now(),
            is_owners=self._is_owners or None,
        )

    def put(self, entry: JournalEntry, **changes: Any) -> JournalEntry:
        """Put an entry into the journal.

        A new one advances the position only here: a rejected one leaves no gap.
        """
        changed = entry.model_copy(update=changes)
        self.position = max(self.position, entry.number)
        self.journal[entry.number] = changed
        self.calls.note([changed])
        self.pending[entry.number] = changed
        error = changed.error and changed.error.message
        self._pending_bytes += max_size({"result": changed.result, "error": error}) + ENTRY_OVERHEAD_BYTES
        return changed

    def flush_if_large(self) -> None:
        """Commit the pending entries once they are many or large: a store limits both in one commit."""
        is_large = self._pending_bytes > MAX_PENDING_BYTES or len(self.pending) >= MAX_COMMIT_ENTRIES
        if is_large and self.is_durable:
            self.flush()
            self._pending_bytes = 0

    def commit(self, end_wait: Callable[[Commit], Commit] | None = None) -> None:
        """Write the pending entries.

        Continue only with the lease, an active task, and no suspension due by policy.
        """
        task = self._write_pending(end_wait)
        now = self.clock.now()
        if task.status is TaskStatus.PAUSED:
            self._suspend_with(Suspend("waits for its task to be resumed", now, is_interrupted=True))
        if not task.is_active:
            self._suspend_with(Cancel(f"The task is {task.status}."))
        policy = self.surroundings.suspend_policy
        if policy.every_step or (policy.until is not None and now >= policy.until):
            self._suspend_with(Suspend("continues in another call of its function", now, is_interrupted=True))

    def _write_pending(self, end_wait: Callable[[Commit], Commit] | None) -> Task:
        """Write the pending entries, if many in several commits and in order, so that none leaves a gap."""
        entries = tuple(self.pending[number] for number in sorted(self.pending))
        while len(entries) > MAX_COMMIT_ENTRIES:
            self._append(entries[:MAX_COMMIT_ENTRIES], None)
            entries = entries[MAX_COMMIT_ENTRIES:]
        return self._append(entries, end_wait)

    def _append(self, entries: tuple[JournalEntry, ...], end_wait: Callable[[Commit], Commit] | None) -> Task:
        task = self.attempt.append_journal(entries, self.calls.made, end_wait)
        if task is None:
            run = None
        else:
            run = task.find_run(self.execution_id)
        if task is None or run is None:
            self._suspend_with(Suspend("has lost its lease", self.clock.now()))
        for entry in entries:
            del self.pending[entry.number]
        if not self.pending:
            self._pending_bytes = 0
        self.lease_until = run.wake_at
        return task

    def flush(self) -> None:
        """Commit the pending entries before anything depends on them, then create the tasks of pending calls."""
        if self.pending:
            self._write_checked()
        try:
            self.calls.create()
        except LeaseLost:
            self._write_checked()
            self._suspend_with(Suspend("has lost its lease", self.clock.now()))

    def _write_checked(self) -> None:
        """Write the pending entries, if the run has its lease. Continue only if its task has not ended."""
        task = self._write_pending(None)
        if not task.is_active and task.status is not TaskStatus.PAUSED:
            self._suspend_with(Cancel(f"The task is {task.status}."))

    def finish(self) -> None:
        """Check that a handler that returned requested all recorded entries, and create its pending calls."""
        if self._mismatch is not None:
            raise self._mismatch
        if self.suspension is not None:
            raise WorkflowError(f"The handler continued after it was suspended. {self.suspension}")
        if not self.is_durable:
            return
        following = self.journal.get(self.position + 1)
        if following is not None:
            raise JournalMismatch(following.number, following.description, "the handler's end")
        self.make_all_calls()

    def make_all_calls(self) -> None:
        """Create all pending calls, at the handler's end.

        Without room for all of them, suspend until there is.
        """
        self.flush()
        if self.calls.is_refused:
            self._suspend_with(self._await_room(Suspend("is at its end", self.clock.now() + MAX_QUOTA_PAUSE)))

    def _await_room(self, suspend: Suspend) -> Suspend:
        return self.calls.await_room(
            suspend,
            self.clock.now(),
            lambda number: self.journal[number].started_at,
        )

    def suspend(  # noqa: PLR0913 - the fields of `Suspend`
        self,
        reason: str,
        until: datetime,
        *,
        calls: tuple[int, ...] = (),
        events: tuple[str, ...] = (),
        senders: tuple[str, ...] = DEFAULT_SENDERS,
        question: str | None = None,
        asked_at: datetime | None = None,
        channels: tuple[DeliveryChannel, ...] = (),
        any_call: bool = False,
        deadline: datetime | None = None,
    ) -> NoReturn:
        """Suspend the handler until an instant, or until an awaited call or event if that comes first."""
        if self.calls.tasks or len(self.pending) > MAX_COMMIT_ENTRIES:
            self.flush()
        outcome = Suspend(
            reason,
            until,
            calls,
            events,
            senders,
            question,
            asked_at,
            channels,
            any_call=any_call,
            deadline=deadline,
        )
        self._suspend_with(self._await_room(outcome))

    def require_use_left(self) -> None:
        """Suspend the handler if its task may use no more. It goes on here once that may."""
        used = sum_entries(self.journal.values())
        if reason := self.surroundings.find_excess(Amounts(used.queries, used.tokens)):
            self.suspend(f"may use no more. {reason}", self.clock.now())

    def suspend_for_outage(self, reason: str) -> NoReturn:
        """Suspend the handler for `OUTAGE_PAUSE`, because a service that it needs is unavailable."""
        self._suspend_with(Suspend(reason, self.clock.now() + OUTAGE_PAUSE, is_interrupted=True))

    def note_failure(self, error: Exception) -> Exception:
        """Note that the current entry failed, and return the error to raise in the handler."""
        self.failures.note([error], [self.position], self.position)
        return error

    def forget_errors(self) -> None:
        """Drop the tracebacks of this attempt's errors, since they hold the handler's variables."""
        self.failures = FailureTracker()
        for each in (self.suspension, self._mismatch):
            if each is not None:
                each.__traceback__ = each.__context__ = None

    def _suspend_with(self, outcome: Outcome, error: Exception | None = None) -> NoReturn:
        self.suspension = Suspended(outcome, error)
        raise self.suspension


def _describe_arguments(what: str, arguments: object) -> str:
    text = str(arguments)
    return f"{what} with {text[:MAX_ARGUMENT_CHARS]}{'…' if len(text) > MAX_ARGUMENT_CHARS else ''}"
