"""The position of one attempt in its journal, the entries that are not committed yet, and how it suspends.

A step's result is committed before the handler sees it, under the lease, so that of two executors only the one that
holds the lease continues.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

from cloudsched.domain.documents.authority import DEFAULT_SENDERS
from cloudsched.domain.documents.journal import (
    ENTRY_OVERHEAD_BYTES,
    MAX_COMMIT_ENTRIES,
    MAX_PENDING_BYTES,
    MAX_STEPS,
    JournalEntry,
    StepKind,
    StepStatus,
    describe_step,
)
from cloudsched.domain.documents.json_limits import max_size
from cloudsched.domain.documents.outcome import Cancel, Fail, Suspend
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.engine.durable.arguments import require_name
from cloudsched.engine.durable.failure_cause import FailureTracker
from cloudsched.engine.durable.results import Results
from cloudsched.engine.durable.steps import Usage, in_step_attempt, require_not_timed_out
from cloudsched.engine.durable.suspend import Suspended
from cloudsched.errors import JournalMismatch, LimitExceeded, QuotaExceeded, Unavailable, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.authority import SenderRole
    from cloudsched.domain.documents.journal import FailureCause
    from cloudsched.domain.documents.outcome import Outcome
    from cloudsched.domain.documents.task import Event, Task
    from cloudsched.engine.durable.suspend import Surroundings

OUTAGE_PAUSE = timedelta(seconds=5)
"""How long a handler is suspended when the store or queue is unavailable: an outage is not the handler's failure."""

MIN_QUOTA_PAUSE = timedelta(minutes=1)
MAX_QUOTA_PAUSE = timedelta(minutes=10)
"""How long a handler is suspended at least and at most before it tries again to make a call for which its owner's quota
had no room."""

MAX_ARGUMENT_CHARS = 200
"""How many characters of an argument an error shows."""

W = TypeVar("W", bound="JournalCursor")
P = ParamSpec("P")
T = TypeVar("T")


def suspend_when_unavailable(method: Callable[Concatenate[W, P], T]) -> Callable[Concatenate[W, P], T]:
    """Suspend the handler when `method` raises `Unavailable`, so that it does not see an infrastructure error."""

    @wraps(method)
    def wrapper(cursor: W, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(cursor, *args, **kwargs)
        except Unavailable as error:
            cursor.suspend_for_outage(f"could not continue: {error}")

    return wrapper


class JournalCursor:
    """The position of one attempt in the journal of its execution."""

    def __init__(self, surroundings: Surroundings, execution_id: str) -> None:
        run = surroundings.claimed_run.task.find_run(execution_id)
        if run is None or run.lease is None:
            raise ValueError(f"execution {execution_id} is not claimed")
        self.surroundings = surroundings
        self.claimed_run = surroundings.claimed_run
        self.clock = surroundings.clock
        self._run = run
        self._is_owners = surroundings.claimed_run.task.is_written_by_owner
        claim = f"{run.attempt}-{run.lease.token_hash[:12]}"
        self.results = Results(surroundings.blobs, f"{surroundings.claimed_run.task.id}/{execution_id}", claim)
        self.execution_id = execution_id
        self._position = 0
        self._entries: dict[int, JournalEntry] | None = None
        self.pending: dict[int, JournalEntry] = {}
        self._pending_bytes = 0
        self.pending_calls: dict[int, Task] = {}
        self._quota_refusal: QuotaExceeded | None = None
        self._new_calls: set[int] = set()
        self._waiting_calls: set[int] = set()
        self.is_complete = True
        self._versions: dict[str, int] = {}
        self._uuids = 0
        self._cause: BaseException | None = None
        self.failures = FailureTracker()
        self._mismatch: JournalMismatch | None = None
        self._thread: int | None = None
        self._loop_thread: int | None = None
        self.calls_made = run.calls_made
        self.is_in_step = False
        """Whether a step's function is running; only its result is recorded."""
        self.step_usage = Usage()
        """The usage that the running step has reported."""
        self.lease_until: datetime | None = None
        """Until when the last commit of journal entries renewed the lease."""
        self.is_durable = run.steps > 0
        self.suspension: Suspended | None = None

    def handler_name(self, handler: object) -> str:
        """Return the name of a handler that is given by its name or as its function. Raises InvalidInput."""
        return self.surroundings.name_of(handler)

    # ── For the executor ─────────────────────────────────────────────────────────────────────────────────────────

    def bind_thread(self) -> None:
        """Note that the handler runs in this thread, the only one that may request journal entries."""
        self._thread = threading.get_ident()

    @suspend_when_unavailable
    def allow_event_loop(self, thread: int) -> None:
        """Let the event loop's thread request entries, too; the journal is loaded here, which would block it."""
        self._loop_thread = thread
        _ = self.journal

    @suspend_when_unavailable
    def check_complete(self) -> None:
        """Check that the handler, which has returned, requested all recorded entries; create its pending calls."""
        if self._mismatch is not None:
            raise self._mismatch
        if self.suspension is not None:
            raise WorkflowError(f"The handler continued after it was suspended. {self.suspension}")
        if not self.is_durable:
            return
        following = self.journal.get(self._position + 1)
        if following is not None:
            raise JournalMismatch(following.number, following.description, "the handler's end")
        self._make_all_calls()

    @suspend_when_unavailable
    def make_calls(self) -> None:
        """Create the tasks of calls that were started before an exception left the handler."""
        if self.pending_calls:
            self._make_all_calls()

    def clock_now(self) -> datetime:
        """Return the current time without recording it."""
        return self.clock.now()

    def suspend_for_outage(self, reason: str) -> NoReturn:
        """Suspend the handler for `OUTAGE_PAUSE`, because a service that it needs is unavailable."""
        self._suspend_with(Suspend(reason, self.clock.now() + OUTAGE_PAUSE))

    def merge_failures_since(self, since: int) -> None:
        """Merge the failures from entry `since` on: the handler requested them in parallel and sees them only now."""
        self.failures.merge_since(since, self._position)

    def find_failure_cause(self, error: BaseException | None) -> FailureCause | None:
        """Return which entries made the handler fail; `error` is None if it returned a failure."""
        return self.failures.cause_of(error, None if self.is_replaying else self._position)

    @property
    def is_replaying(self) -> bool:
        """Whether the next entry was in the journal when this attempt started; False inside a step."""
        return not self.is_in_step and self._position < self._run.steps

    @property
    def usage_in_steps(self) -> Usage:
        """The total usage of the recorded steps."""
        entries = tuple((self._entries or {}).values())
        return Usage(sum(each.queries or 0 for each in entries), sum(each.tokens or 0 for each in entries))

    @property
    def pending_entries(self) -> tuple[JournalEntry, ...]:
        """The entries that are not committed yet."""
        return tuple(self.pending.values()) if self.is_durable else ()

    @property
    def entries_or_none(self) -> tuple[JournalEntry, ...] | None:
        """The complete journal; None if it was not loaded, or if it is uncertain what was committed."""
        if not self.is_complete:
            return None
        if not self.is_durable or self._entries is None:
            return None if self._run.steps else ()
        return tuple(self._entries[number] for number in sorted(self._entries))

    # ── Internals ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def journal(self) -> dict[int, JournalEntry]:
        """The entries by number, including those that are not committed yet; loaded when first needed."""
        if self._entries is None:
            entries = {entry.number: entry for entry in self.surroundings.load()} if self._run.steps else {}
            if len(entries) < self._run.steps:  # finished steps must not run again
                raise WorkflowError(
                    f"The journal has {len(entries)} of its {self._run.steps} entries: its task was deleted, or "
                    "entries were removed."
                )
            self._entries = entries
            self._waiting_calls = {number for number, entry in entries.items() if _is_waiting_call(entry)}
        return self._entries

    def _require_may_record(self, kind: StepKind, name: str) -> None:
        """Check that the handler itself makes the request, not a step of it, and that it may continue."""
        require_not_timed_out()
        require_name("name", name)
        self._require_own_thread(describe_step(kind, name))
        if self.suspension is not None:
            raise self.suspension
        if self._mismatch is not None:  # the handler caught it, perhaps in a retry loop
            self._suspend_with(Fail(str(self._mismatch)), self._mismatch)
        if self.is_in_step:
            raise WorkflowError(
                f"A step cannot contain other operations: move {describe_step(kind, name)} out of it, into the handler."
            )

    def _require_own_thread(self, what: str) -> None:
        """Check that the request comes from the thread of the handler or of its step.

        Requests of other threads would be recorded in a different order each time.
        """
        if self._thread is None or threading.get_ident() in {self._thread, self._loop_thread}:
            return
        if not in_step_attempt():
            raise WorkflowError(
                f"{what} is requested in another thread than the handler's own, so its order might differ in a replay. "
                "Request it in the handler and pass the result to its threads. To run work in parallel, use ctx.call "
                "and ctx.gather."
            )

    def next_entry(self, kind: StepKind, name: str) -> tuple[int, JournalEntry | None]:
        """Return the number of the entry that the handler requests now, and the entry if it is recorded."""
        self._require_may_record(kind, name)
        self._flush_if_large()
        number = self._position + 1
        entry = self.journal.get(number)
        if entry is not None:
            self._position = number
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

    def require_same(self, number: int, what: str, before: object, now: object, *, always: bool = False) -> None:
        """Check, in a replay test or `always`, that a request has the same arguments as the first time."""
        if (always or self.surroundings.suspend_policy.every_step) and before != now:
            self._mismatch = JournalMismatch(number, _describe_arguments(what, before), _describe_arguments(what, now))
            raise self._mismatch

    def new_entry(self, number: int, kind: StepKind, name: str) -> JournalEntry:
        """Return an entry that starts now; `put` adds it to the journal."""
        return JournalEntry(
            number=number,
            kind=kind,
            name=name,
            execution_id=self.execution_id,
            started_at=self.clock.now(),
            is_owners=self._is_owners or None,
        )

    def put(self, entry: JournalEntry, **changes: Any) -> JournalEntry:
        """Put an entry into the journal. A new one advances the position only here: a rejected one leaves no gap."""
        changed = entry.model_copy(update=changes)
        self._position = max(self._position, entry.number)
        self.journal[entry.number] = changed
        (self._waiting_calls.add if _is_waiting_call(changed) else self._waiting_calls.discard)(entry.number)
        self.pending[entry.number] = changed
        error = changed.error and changed.error.message
        self._pending_bytes += max_size({"result": changed.result, "error": error}) + ENTRY_OVERHEAD_BYTES
        return changed

    def _flush_if_large(self) -> None:
        """Commit the pending entries once they are many or large: a store limits both in one commit."""
        is_large = self._pending_bytes > MAX_PENDING_BYTES or len(self.pending) >= MAX_COMMIT_ENTRIES
        if is_large and self.is_durable:
            self.flush()
            self._pending_bytes = 0

    def commit(self, event: Event | None = None) -> None:
        """Write the pending entries; continue only with the lease, an active task, and no suspension due by policy."""
        task = self._write_pending(event)
        now = self.clock.now()
        if task.status is TaskStatus.PAUSED:
            self.suspend("waits for its task to be resumed", now)
        if not task.is_active:
            self._suspend_with(Cancel(f"The task is {task.status}."))
        policy = self.surroundings.suspend_policy
        if policy.every_step or (policy.until is not None and now >= policy.until):
            self.suspend("continues in another call of its function", now)

    def _write_pending(self, event: Event | None) -> Task:
        """Write the pending entries, in several commits if they are many: then in order, so that none leaves a gap."""
        entries = tuple(self.pending[number] for number in sorted(self.pending))
        while len(entries) > MAX_COMMIT_ENTRIES:
            self._append(entries[:MAX_COMMIT_ENTRIES], None)
            entries = entries[MAX_COMMIT_ENTRIES:]
        return self._append(entries, event)

    def _append(self, entries: tuple[JournalEntry, ...], event: Event | None) -> Task:
        task = self.claimed_run.append_journal(entries, self.calls_made, event)
        run = None if task is None else task.find_run(self.execution_id)
        if task is None or run is None:
            self._suspend_with(Suspend("has lost its lease", self.clock.now()))
        for entry in entries:
            del self.pending[entry.number]
        self._pending_bytes = 0 if not self.pending else self._pending_bytes
        self.lease_until = run.wake_at
        return task

    def flush(self) -> None:
        """Commit the pending entries before anything depends on them, then create the tasks of pending calls."""
        if self.pending:
            task = self._write_pending(None)
            if not task.is_active and task.status is not TaskStatus.PAUSED:
                self._suspend_with(Cancel(f"The task is {task.status}."))
        self._quota_refusal = None
        for number in sorted(self.pending_calls):
            try:
                is_new = self.surroundings.make_call(self.pending_calls[number])
            except QuotaExceeded as refusal:  # this call and those after it wait; the handler continues
                self._quota_refusal = refusal
                return
            if is_new:
                self._new_calls.add(number)
            del self.pending_calls[number]
            self.calls_made = number

    def _make_all_calls(self) -> None:
        """Create all pending calls, at the handler's end; without room for all of them, suspend until there is."""
        self.flush()
        if self._quota_refusal is not None:
            self._suspend_with(self._await_room(Suspend("is at its end", self.clock.now() + MAX_QUOTA_PAUSE)))

    def _await_room(self, suspend: Suspend) -> Suspend:
        """Return the suspension that also ends when the owner's quota may have room for the pending calls."""
        if self._quota_refusal is None:
            return suspend
        now, first = self.clock.now(), self.journal[min(self.pending_calls)]
        pause = min(max(now - first.started_at, MIN_QUOTA_PAUSE), MAX_QUOTA_PAUSE)
        if self._quota_refusal.retry_after is not None:
            pause = timedelta(seconds=self._quota_refusal.retry_after)
        waiting = len(self.pending_calls)
        what = "a call waits" if waiting == 1 else f"{waiting} calls wait"
        return replace(
            suspend,
            reason=f"{suspend.reason}; {what} for room: {self._quota_refusal}",
            until=min(suspend.until, now + pause),
            quota_refusal=str(self._quota_refusal),
        )

    def suspend(
        self,
        reason: str,
        until: datetime,
        *,
        calls: tuple[int, ...] = (),
        events: tuple[str, ...] = (),
        senders: tuple[SenderRole, ...] = DEFAULT_SENDERS,
        any_call: bool = False,
    ) -> NoReturn:
        """Suspend the handler until an instant, or until what it waits for has come, whichever is earlier."""
        if self.pending_calls or len(self.pending) > MAX_COMMIT_ENTRIES:
            self.flush()
        self._suspend_with(self._await_room(Suspend(reason, until, calls, events, senders, any_call=any_call)))

    def note_failure(self, error: Exception) -> Exception:
        """Note that the entry at the current position failed, and return the error to raise in the handler."""
        self.failures.note([error], [self._position], self._position)
        return error

    def _suspend_with(self, outcome: Outcome, error: Exception | None = None) -> NoReturn:
        self.suspension = Suspended(outcome, error)
        raise self.suspension


def _is_waiting_call(entry: JournalEntry) -> bool:
    """Whether the entry is a call whose end is not recorded."""
    return entry.kind is StepKind.CALL and entry.status is StepStatus.WAITING


def _describe_arguments(what: str, arguments: object) -> str:
    text = str(arguments)
    return f"{what} with {text[:MAX_ARGUMENT_CHARS]}{'…' if len(text) > MAX_ARGUMENT_CHARS else ''}"
