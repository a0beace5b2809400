"""One attempt's walk along a journal: where it is, what is not written yet, and how it is left.

A step's result is committed before the handler sees it, under the lease, so that of two executors only the one that
holds the lease goes on.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

from cloudsched.domain.documents.execution import mark_of
from cloudsched.domain.documents.journal import (
    ENTRY,
    MAX_PORTION,
    MAX_STEPS,
    JournalEntry,
    StepKind,
    StepStatus,
    what_of,
)
from cloudsched.domain.documents.json_limits import size_of
from cloudsched.domain.documents.outcome import Cancel, Fail, Suspend
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.engine.durable.arguments import name_of
from cloudsched.engine.durable.failure_cause import Failures
from cloudsched.engine.durable.results import Results
from cloudsched.engine.durable.steps import Spent, is_in_try, require_heard
from cloudsched.engine.durable.suspend import Suspended
from cloudsched.errors import JournalMismatch, LimitExceeded, Unavailable, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.journal import FailedBy
    from cloudsched.domain.documents.outcome import Outcome
    from cloudsched.domain.documents.task import Event, Task
    from cloudsched.engine.durable.suspend import Surroundings

PATIENCE = timedelta(seconds=5)
"""How long a handler is suspended when the store or the queue did not answer: that is no failure of its own."""

MAX_SHOWN = 200
"""How many characters of an argument an error shows."""

W = TypeVar("W", bound="Walk")
P = ParamSpec("P")
T = TypeVar("T")


def patient(ask: Callable[Concatenate[W, P], T]) -> Callable[Concatenate[W, P], T]:
    """Suspend a handler whose journal cannot go on for now, instead of letting it see an error that is not its own."""

    @wraps(ask)
    def asked(walk: W, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return ask(walk, *args, **kwargs)
        except Unavailable as error:
            walk.pause(f"could not go on: {error}")

    return asked


class Walk:
    """Where one attempt is in the journal of its execution."""

    def __init__(self, around: Surroundings, execution_id: str) -> None:
        run = around.held.task.run(execution_id)
        if run is None or run.lease is None:
            raise ValueError(f"execution {execution_id} is not claimed")
        self._around = around
        self._held = around.held
        self._clock = around.clock
        self._run = run
        claim = f"{run.attempt}-{mark_of(run.lease.token)[:12]}"
        self._results = Results(around.blobs, f"{around.held.task.id}/{execution_id}", claim)
        self._execution_id = execution_id
        self._position = 0
        self._entries: dict[int, JournalEntry] | None = None
        self._unwritten: dict[int, JournalEntry] = {}
        self._unwritten_size = 0
        self._unmade: dict[int, Task] = {}
        self._new_calls: set[int] = set()
        self._waiting_calls: set[int] = set()
        self._is_sure = True
        self._versions: dict[str, int] = {}
        self._uuids = 0
        self._cause: BaseException | None = None
        self._failures = Failures()
        self._mismatch: JournalMismatch | None = None
        self._thread: int | None = None
        self.calls_made = run.calls_made
        self.is_in_step = False
        """Whether a step's function is running, of which nothing but the result is recorded."""
        self.spent = Spent()
        """What the step's function that is running has reported to have used."""
        self.lease_until: datetime | None = None
        """Until when the last thing that was recorded has renewed the lease."""
        self.is_durable = run.steps > 0
        self.suspension: Suspended | None = None

    # ── What the executor asks for ───────────────────────────────────────────────────────────────────────────────

    def enter(self) -> None:
        """Note that the handler begins, in this thread: only here may it ask for anything that is recorded."""
        self._thread = threading.get_ident()

    @patient
    def end(self) -> None:
        """Check that the handler, which has returned, asked for all that was recorded; make the calls it left."""
        if self._mismatch is not None:
            raise self._mismatch
        if self.suspension is not None:
            raise WorkflowError(f"The handler went on after it was suspended. {self.suspension}")
        if not self.is_durable:
            return
        following = self._journal.get(self._position + 1)
        if following is not None:
            raise JournalMismatch(following.number, following.what, "the handler's end")
        self._flush()

    @patient
    def make_calls(self) -> None:
        """Make the calls that a handler has begun, and left by an exception before anything waited for them."""
        if self._unmade:
            self._flush()

    def present(self) -> datetime:
        """Return the present instant, which is nobody's to replay."""
        return self._clock.now()

    def pause(self, why: str) -> NoReturn:
        """Leave the handler for a moment: what it needs cannot be reached."""
        self._leave(Suspend(why, self._clock.now() + PATIENCE))

    def told_together(self, since: int) -> None:
        """Say that it is told only now of all that has failed from entry `since` on: it asked for it side by side."""
        self._failures.together(since, self._position)

    def failed_by(self, error: BaseException | None) -> FailedBy | None:
        """Return what in the journal made the handler fail, by an error or by its own word."""
        return self._failures.behind(error, None if self.is_replaying else self._position)

    @property
    def is_replaying(self) -> bool:
        """Whether the handler is where it has been before: what comes next is in the journal that it began with."""
        return not self.is_in_step and self._position < self._run.steps

    @property
    def spent_in_steps(self) -> Spent:
        """What the steps have used that are recorded: none of them is called again."""
        entries = tuple((self._entries or {}).values())
        return Spent(sum(each.queries or 0 for each in entries), sum(each.tokens or 0 for each in entries))

    @property
    def unwritten(self) -> tuple[JournalEntry, ...]:
        """What is not committed yet."""
        return tuple(self._unwritten.values()) if self.is_durable else ()

    @property
    def known(self) -> tuple[JournalEntry, ...] | None:
        """The whole journal; None if it was not needed and not read, or is not known for sure."""
        if not self._is_sure:
            return None
        if not self.is_durable or self._entries is None:
            return None if self._run.steps else ()
        return tuple(self._entries[number] for number in sorted(self._entries))

    # ── How ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _journal(self) -> dict[int, JournalEntry]:
        if self._entries is None:
            entries = {entry.number: entry for entry in self._around.load()} if self._run.steps else {}
            if len(entries) < self._run.steps:  # what is done must not be done again
                raise WorkflowError(
                    f"The journal has {len(entries)} of its {self._run.steps} entries: its task was deleted, or "
                    "somebody has removed them."
                )
            self._entries = entries
            self._waiting_calls = {number for number, entry in entries.items() if _is_waiting_call(entry)}
        return self._entries

    def _require_may_ask(self, kind: StepKind, name: str) -> None:
        """Check that it is the handler that asks, and not a step of it, and that it may go on."""
        require_heard()
        name_of("name", name)
        self._require_own_thread(what_of(kind, name))
        if self.suspension is not None:
            raise self.suspension
        if self._mismatch is not None:  # it was caught, perhaps by a loop that asks until it is answered
            self._leave(Fail(str(self._mismatch)), self._mismatch)
        if self.is_in_step:
            raise WorkflowError(
                f"A step is one thing: {what_of(kind, name)} inside it belongs beside it, in the handler."
            )

    def _require_own_thread(self, what: str) -> None:
        """Check that it is not another thread that asks, beside the handler's own or the one of its step.

        What such threads ask for would be recorded in another order each time.
        """
        if self._thread not in {None, threading.get_ident()} and not is_in_try():
            raise WorkflowError(
                f"{what} is asked for in another thread than the handler's own, and would come in another order in a "
                "replay. Ask for it in the handler, and give its threads what they need; to do things side by side, "
                "make calls of them and ctx.gather those."
            )

    def _next(self, kind: StepKind, name: str) -> tuple[int, JournalEntry | None]:
        self._require_may_ask(kind, name)
        self._make_room()
        number = self._position + 1
        entry = self._journal.get(number)
        if entry is not None:
            self._position = number
            try:
                entry.require(kind, name)
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
        if self._around.pace.is_each_step and before != now:
            self._mismatch = JournalMismatch(number, _with(what, before), _with(what, now))
            raise self._mismatch

    def _begun(self, number: int, kind: StepKind, name: str) -> JournalEntry:
        return JournalEntry(
            number=number, kind=kind, name=name, execution_id=self._execution_id, started_at=self._clock.now()
        )

    def _changed(self, entry: JournalEntry, **changes: Any) -> JournalEntry:
        """Put an entry into the journal. A new one moves the walk on: what is refused before that leaves no gap."""
        changed = entry.model_copy(update=changes)
        self._position = max(self._position, entry.number)
        self._journal[entry.number] = changed
        (self._waiting_calls.add if _is_waiting_call(changed) else self._waiting_calls.discard)(entry.number)
        self._unwritten[entry.number] = changed
        error = changed.error and changed.error.message
        self._unwritten_size += size_of({"result": changed.result, "error": error}) + ENTRY
        return changed

    def _make_room(self) -> None:
        """Commit what is not written, once it has become much: no commit may be more than a store takes."""
        if self._unwritten_size > MAX_PORTION and self.is_durable:
            self._flush()
            self._unwritten_size = 0

    def _commit(self, event: Event | None = None) -> None:
        """Write what is not written, and go on only if the run is still this executor's and its task wants it."""
        task = self._recorded(event)
        now = self._clock.now()
        if task.status is TaskStatus.PAUSED:
            self._suspend("waits for its task to be resumed", now)
        if not task.is_active:
            self._leave(Cancel(f"The task is {task.status}."))
        pace = self._around.pace
        if pace.is_each_step or (pace.until is not None and now >= pace.until):
            self._suspend("goes on in another call of its function", now)

    def _recorded(self, event: Event | None) -> Task:
        task = self._held.record(tuple(self._unwritten.values()), self.calls_made, event)
        run = None if task is None else task.run(self._execution_id)
        if task is None or run is None:
            self._leave(Suspend("has lost its lease", self._clock.now()))
        self._unwritten.clear()
        self._unwritten_size = 0
        self.lease_until = run.wakes_at
        return task

    def _flush(self) -> None:
        """Commit what was decided before anything depends on it, and make the calls that have no task yet."""
        if self._unwritten:
            task = self._recorded(None)
            if not task.is_active and task.status is not TaskStatus.PAUSED:
                self._leave(Cancel(f"The task is {task.status}."))
        for number in sorted(self._unmade):
            if self._around.make_call(self._unmade[number]):
                self._new_calls.add(number)
            del self._unmade[number]
            self.calls_made = number

    def _suspend(
        self, reason: str, until: datetime, *, calls: tuple[int, ...] = (), events: tuple[str, ...] = ()
    ) -> NoReturn:
        if self._unmade:
            self._flush()
        self._leave(Suspend(reason, until, calls, events))

    def _told(self, error: Exception) -> Exception:
        """Return an error by which the handler is told that what it has just asked for failed."""
        self._failures.tell([error], [self._position], self._position)
        return error

    def _leave(self, outcome: Outcome, error: Exception | None = None) -> NoReturn:
        self.suspension = Suspended(outcome, error)
        raise self.suspension


def _is_waiting_call(entry: JournalEntry) -> bool:
    """Whether it is a call that is not known to have ended."""
    return entry.kind is StepKind.CALL and entry.status is StepStatus.WAITING


def _with(what: str, given: object) -> str:
    text = str(given)
    return f"{what} with {text[:MAX_SHOWN]}{'…' if len(text) > MAX_SHOWN else ''}"
