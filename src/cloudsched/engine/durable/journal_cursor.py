"""One attempt's walk along a journal: where it is, what is not written yet, and how it is left.

A step's result is committed before the handler sees it, under the lease, so that of two executors only the one that
holds the lease goes on.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

from cloudsched.domain.documents.authority import DEFAULT_SENDERS
from cloudsched.domain.documents.journal import (
    ENTRY_OVERHEAD_BYTES,
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
from cloudsched.errors import JournalMismatch, LimitExceeded, Unavailable, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.authority import SenderRole
    from cloudsched.domain.documents.journal import FailureCause
    from cloudsched.domain.documents.outcome import Outcome
    from cloudsched.domain.documents.task import Event, Task
    from cloudsched.engine.durable.suspend import Surroundings

OUTAGE_PAUSE = timedelta(seconds=5)
"""How long a handler is suspended when the store or the queue did not answer: that is no failure of its own."""

MAX_ARGUMENT_CHARS = 200
"""How many characters of an argument an error shows."""

W = TypeVar("W", bound="JournalCursor")
P = ParamSpec("P")
T = TypeVar("T")


def suspend_when_unavailable(method: Callable[Concatenate[W, P], T]) -> Callable[Concatenate[W, P], T]:
    """Suspend a handler whose journal cannot go on for now, instead of letting it see an error that is not its own."""

    @wraps(method)
    def asked(walk: W, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(walk, *args, **kwargs)
        except Unavailable as error:
            walk.suspend_for_outage(f"could not go on: {error}")

    return asked


class JournalCursor:
    """Where one attempt is in the journal of its execution."""

    def __init__(self, surroundings: Surroundings, execution_id: str) -> None:
        run = surroundings.claimed_run.task.find_run(execution_id)
        if run is None or run.lease is None:
            raise ValueError(f"execution {execution_id} is not claimed")
        self._surroundings = surroundings
        self._claimed_run = surroundings.claimed_run
        self._clock = surroundings.clock
        self._run = run
        self._is_owners = surroundings.claimed_run.task.is_written_by_owner
        claim = f"{run.attempt}-{run.lease.token_hash[:12]}"
        self._results = Results(surroundings.blobs, f"{surroundings.claimed_run.task.id}/{execution_id}", claim)
        self._execution_id = execution_id
        self._position = 0
        self._entries: dict[int, JournalEntry] | None = None
        self._pending: dict[int, JournalEntry] = {}
        self._pending_bytes = 0
        self._pending_calls: dict[int, Task] = {}
        self._new_calls: set[int] = set()
        self._waiting_calls: set[int] = set()
        self._is_complete = True
        self._versions: dict[str, int] = {}
        self._uuids = 0
        self._cause: BaseException | None = None
        self._failures = FailureTracker()
        self._mismatch: JournalMismatch | None = None
        self._thread: int | None = None
        self.calls_made = run.calls_made
        self.is_in_step = False
        """Whether a step's function is running, of which nothing but the result is recorded."""
        self.step_usage = Usage()
        """What the step's function that is running has reported to have used."""
        self.lease_until: datetime | None = None
        """Until when the last thing that was recorded has renewed the lease."""
        self.is_durable = run.steps > 0
        self.suspension: Suspended | None = None

    # ── What the executor asks for ───────────────────────────────────────────────────────────────────────────────

    def bind_thread(self) -> None:
        """Note that the handler begins, in this thread: only here may it ask for anything that is recorded."""
        self._thread = threading.get_ident()

    @suspend_when_unavailable
    def check_complete(self) -> None:
        """Check that the handler, which has returned, asked for all that was recorded; make the calls it left."""
        if self._mismatch is not None:
            raise self._mismatch
        if self.suspension is not None:
            raise WorkflowError(f"The handler went on after it was suspended. {self.suspension}")
        if not self.is_durable:
            return
        following = self._journal.get(self._position + 1)
        if following is not None:
            raise JournalMismatch(following.number, following.description, "the handler's end")
        self._flush()

    @suspend_when_unavailable
    def make_calls(self) -> None:
        """Make the calls that a handler has begun, and left by an exception before anything waited for them."""
        if self._pending_calls:
            self._flush()

    def clock_now(self) -> datetime:
        """Return the present instant, which is nobody's to replay."""
        return self._clock.now()

    def suspend_for_outage(self, reason: str) -> NoReturn:
        """Leave the handler for a moment: what it needs cannot be reached."""
        self._suspend_with(Suspend(reason, self._clock.now() + OUTAGE_PAUSE))

    def merge_failures_since(self, since: int) -> None:
        """Say that it is told only now of all that has failed from entry `since` on: it asked for it side by side."""
        self._failures.merge_since(since, self._position)

    def find_failure_cause(self, error: BaseException | None) -> FailureCause | None:
        """Return what in the journal made the handler fail, by an error or by its own word."""
        return self._failures.cause_of(error, None if self.is_replaying else self._position)

    @property
    def is_replaying(self) -> bool:
        """Whether the handler is where it has been before: what comes next is in the journal that it began with."""
        return not self.is_in_step and self._position < self._run.steps

    @property
    def usage_in_steps(self) -> Usage:
        """What the steps have used that are recorded: none of them is called again."""
        entries = tuple((self._entries or {}).values())
        return Usage(sum(each.queries or 0 for each in entries), sum(each.tokens or 0 for each in entries))

    @property
    def pending_entries(self) -> tuple[JournalEntry, ...]:
        """What is not committed yet."""
        return tuple(self._pending.values()) if self.is_durable else ()

    @property
    def entries_or_none(self) -> tuple[JournalEntry, ...] | None:
        """The whole journal; None if it was not needed and not read, or is not known for sure."""
        if not self._is_complete:
            return None
        if not self.is_durable or self._entries is None:
            return None if self._run.steps else ()
        return tuple(self._entries[number] for number in sorted(self._entries))

    # ── How ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _journal(self) -> dict[int, JournalEntry]:
        if self._entries is None:
            entries = {entry.number: entry for entry in self._surroundings.load()} if self._run.steps else {}
            if len(entries) < self._run.steps:  # what is done must not be done again
                raise WorkflowError(
                    f"The journal has {len(entries)} of its {self._run.steps} entries: its task was deleted, or "
                    "somebody has removed them."
                )
            self._entries = entries
            self._waiting_calls = {number for number, entry in entries.items() if _is_waiting_call(entry)}
        return self._entries

    def _require_may_record(self, kind: StepKind, name: str) -> None:
        """Check that it is the handler that asks, and not a step of it, and that it may go on."""
        require_not_timed_out()
        require_name("name", name)
        self._require_own_thread(describe_step(kind, name))
        if self.suspension is not None:
            raise self.suspension
        if self._mismatch is not None:  # it was caught, perhaps by a loop that asks until it is answered
            self._suspend_with(Fail(str(self._mismatch)), self._mismatch)
        if self.is_in_step:
            raise WorkflowError(
                f"A step is one thing: {describe_step(kind, name)} inside it belongs beside it, in the handler."
            )

    def _require_own_thread(self, what: str) -> None:
        """Check that it is not another thread that asks, beside the handler's own or the one of its step.

        What such threads ask for would be recorded in another order each time.
        """
        if self._thread not in {None, threading.get_ident()} and not in_step_attempt():
            raise WorkflowError(
                f"{what} is asked for in another thread than the handler's own, and would come in another order in a "
                "replay. Ask for it in the handler, and give its threads what they need; to do things side by side, "
                "make calls of them and ctx.gather those."
            )

    def _next_entry(self, kind: StepKind, name: str) -> tuple[int, JournalEntry | None]:
        self._require_may_record(kind, name)
        self._flush_if_large()
        number = self._position + 1
        entry = self._journal.get(number)
        if entry is not None:
            self._position = number
            try:
                entry.require(kind, name, is_owners=self._is_owners)
            except JournalMismatch as mismatch:
                self._mismatch = mismatch
                raise
        elif number > MAX_STEPS:
            raise LimitExceeded(
                f"The journal has {MAX_STEPS} entries, which is the most: each of them is read whenever the handler "
                "goes on. Give parts of the work to calls."
            )
        return number, entry

    def _require_same(self, number: int, what: str, before: object, now: object) -> None:
        """Check, in a test of replays, that what is asked for has the arguments that it had the first time."""
        if self._surroundings.suspend_policy.every_step and before != now:
            self._mismatch = JournalMismatch(number, _describe_arguments(what, before), _describe_arguments(what, now))
            raise self._mismatch

    def _new_entry(self, number: int, kind: StepKind, name: str) -> JournalEntry:
        return JournalEntry(
            number=number,
            kind=kind,
            name=name,
            execution_id=self._execution_id,
            started_at=self._clock.now(),
            is_owners=self._is_owners or None,
        )

    def _put(self, entry: JournalEntry, **changes: Any) -> JournalEntry:
        """Put an entry into the journal. A new one moves the walk on: what is refused before that leaves no gap."""
        changed = entry.model_copy(update=changes)
        self._position = max(self._position, entry.number)
        self._journal[entry.number] = changed
        (self._waiting_calls.add if _is_waiting_call(changed) else self._waiting_calls.discard)(entry.number)
        self._pending[entry.number] = changed
        error = changed.error and changed.error.message
        self._pending_bytes += max_size({"result": changed.result, "error": error}) + ENTRY_OVERHEAD_BYTES
        return changed

    def _flush_if_large(self) -> None:
        """Commit what is not written, once it has become much: no commit may be more than a store takes."""
        if self._pending_bytes > MAX_PENDING_BYTES and self.is_durable:
            self._flush()
            self._pending_bytes = 0

    def _commit(self, event: Event | None = None) -> None:
        """Write what is not written, and go on only if the run is still this executor's and its task wants it."""
        task = self._write_pending(event)
        now = self._clock.now()
        if task.status is TaskStatus.PAUSED:
            self._suspend("waits for its task to be resumed", now)
        if not task.is_active:
            self._suspend_with(Cancel(f"The task is {task.status}."))
        pace = self._surroundings.suspend_policy
        if pace.every_step or (pace.until is not None and now >= pace.until):
            self._suspend("goes on in another call of its function", now)

    def _write_pending(self, event: Event | None) -> Task:
        task = self._claimed_run.append_journal(tuple(self._pending.values()), self.calls_made, event)
        run = None if task is None else task.find_run(self._execution_id)
        if task is None or run is None:
            self._suspend_with(Suspend("has lost its lease", self._clock.now()))
        self._pending.clear()
        self._pending_bytes = 0
        self.lease_until = run.wake_at
        return task

    def _flush(self) -> None:
        """Commit what was decided before anything depends on it, and make the calls that have no task yet."""
        if self._pending:
            task = self._write_pending(None)
            if not task.is_active and task.status is not TaskStatus.PAUSED:
                self._suspend_with(Cancel(f"The task is {task.status}."))
        for number in sorted(self._pending_calls):
            if self._surroundings.make_call(self._pending_calls[number]):
                self._new_calls.add(number)
            del self._pending_calls[number]
            self.calls_made = number

    def _suspend(
        self,
        reason: str,
        until: datetime,
        *,
        calls: tuple[int, ...] = (),
        events: tuple[str, ...] = (),
        senders: tuple[SenderRole, ...] = DEFAULT_SENDERS,
    ) -> NoReturn:
        if self._pending_calls:
            self._flush()
        self._suspend_with(Suspend(reason, until, calls, events, senders))

    def _note_failure(self, error: Exception) -> Exception:
        """Return an error by which the handler is told that what it has just asked for failed."""
        self._failures.note([error], [self._position], self._position)
        return error

    def _suspend_with(self, outcome: Outcome, error: Exception | None = None) -> NoReturn:
        self.suspension = Suspended(outcome, error)
        raise self.suspension


def _is_waiting_call(entry: JournalEntry) -> bool:
    """Whether it is a call that is not known to have ended."""
    return entry.kind is StepKind.CALL and entry.status is StepStatus.WAITING


def _describe_arguments(what: str, arguments: object) -> str:
    text = str(arguments)
    return f"{what} with {text[:MAX_ARGUMENT_CHARS]}{'…' if len(text) > MAX_ARGUMENT_CHARS else ''}"
