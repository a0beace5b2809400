"""One attempt's walk along a journal: where it is, what is not written yet, and how it is left.

A step's result is committed before the handler sees it, under the lease, so that of two executors only the one that
holds the lease goes on.
"""

from __future__ import annotations

from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

from cloudsched.domain.journal import MAX_STEPS, JournalEntry, StepKind, StepRecord
from cloudsched.domain.outcome import Cancel, Suspend
from cloudsched.domain.task import MAX_NAME, TaskStatus
from cloudsched.engine.results import Results
from cloudsched.engine.suspension import Suspended
from cloudsched.errors import JournalMismatch, LimitExceeded, Unavailable, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.outcome import Outcome
    from cloudsched.domain.task import Task
    from cloudsched.engine.suspension import Surroundings

PATIENCE = timedelta(seconds=5)
"""How long a handler is suspended when the store or the queue did not answer: that is no failure of its own."""

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
            walk.pause(str(error))

    return asked


class Walk:
    """Where one attempt is in the journal of its execution."""

    def __init__(self, around: Surroundings, execution_id: str) -> None:
        run = around.held.task.run(execution_id)
        if run is None:
            raise ValueError(f"execution {execution_id} is not open")
        self._around = around
        self._held = around.held
        self._clock = around.clock
        self._run = run
        self._results = Results(around.blobs, f"{around.held.task.id}/{execution_id}", run.attempt)
        self._execution_id = execution_id
        self._position = 0
        self._entries: dict[int, JournalEntry] | None = None
        self._unwritten: dict[int, JournalEntry] = {}
        self._unmade: dict[int, Task] = {}
        self._versions: dict[str, int] = {}
        self._uuids = 0
        self._cause: Exception | None = None
        self.calls_made = run.calls_made
        self._is_in_step = False
        self.is_durable = run.steps > 0
        self.suspension: Suspended | None = None

    # ── What the executor asks for ───────────────────────────────────────────────────────────────────────────────

    def end(self) -> None:
        """Check that the handler, which has returned, asked for all that was recorded; make the calls it left."""
        if self.suspension is not None:
            raise WorkflowError(f"The handler went on after it was suspended. {self.suspension}")
        if not self.is_durable:
            return
        following = self._journal.get(self._position + 1)
        if following is not None:
            raise JournalMismatch(following.number, following.what, "the handler's end")
        self._flush()

    def present(self) -> datetime:
        """Return the present instant, which is nobody's to replay."""
        return self._clock.now()

    def pause(self, why: str) -> NoReturn:
        """Leave the handler for a moment: what it needs cannot be reached."""
        self._leave(Suspend(why, self._clock.now() + PATIENCE))

    @property
    def unwritten(self) -> tuple[JournalEntry, ...]:
        """What is not committed yet."""
        return tuple(self._unwritten.values()) if self.is_durable else ()

    @property
    def known(self) -> tuple[JournalEntry, ...] | None:
        """The whole journal, or None if it was not needed and not read."""
        if not self.is_durable or self._entries is None:
            return None if self._run.steps else ()
        return tuple(self._entries[number] for number in sorted(self._entries))

    # ── How ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _journal(self) -> dict[int, JournalEntry]:
        if self._entries is None:
            self._entries = {entry.number: entry for entry in self._around.load()} if self._run.steps else {}
        return self._entries

    def _next(self, kind: StepKind, name: str) -> tuple[int, JournalEntry | None]:
        if self.suspension is not None:
            raise self.suspension
        if len(name) > MAX_NAME:
            raise ValueError(f"{name[:50]!r}… is no name: it has more than {MAX_NAME} characters.")
        if self._is_in_step:
            asked = StepRecord(number=self._position, kind=kind, name=name, started_at=self._clock.now()).what
            raise WorkflowError(f"A step is one thing: {asked} inside it belongs beside it, in the handler.")
        self._position += 1
        entry = self._journal.get(self._position)
        if entry is not None:
            entry.require(kind, name)
        elif self._position > MAX_STEPS:
            raise LimitExceeded(
                f"The journal has {MAX_STEPS} entries, which is the most: each of them is read whenever the handler "
                "goes on. Give parts of the work to calls."
            )
        return self._position, entry

    def _begun(self, number: int, kind: StepKind, name: str) -> JournalEntry:
        return JournalEntry(
            number=number, kind=kind, name=name, execution_id=self._execution_id, started_at=self._clock.now()
        )

    def _changed(self, entry: JournalEntry, **changes: Any) -> JournalEntry:
        changed = entry.model_copy(update=changes)
        self._journal[entry.number] = changed
        self._unwritten[entry.number] = changed
        return changed

    def _commit(self, event: str | None = None) -> None:
        """Write what is not written, and go on only if the run is still this executor's and its task wants it."""
        task = self._held.record(tuple(self._unwritten.values()), self.calls_made, event)
        if task is None:
            self._leave(Suspend("its lease has ended", self._clock.now()))
        self._unwritten.clear()
        now = self._clock.now()
        if task.status is TaskStatus.PAUSED:
            self._suspend("the task is paused", now)
        if not task.is_active:
            self._leave(Cancel(f"The task is {task.status}."))
        pace = self._around.pace
        if pace.is_each_step or (pace.until is not None and now >= pace.until):
            self._suspend("goes on in another call of its function", now)

    def _flush(self) -> None:
        """Commit what was decided before anything depends on it, and make the calls that have no task yet."""
        if self._unwritten:
            task = self._held.record(tuple(self._unwritten.values()), self.calls_made)
            if task is None:
                self._leave(Suspend("its lease has ended", self._clock.now()))
            self._unwritten.clear()
            if not task.is_active and task.status is not TaskStatus.PAUSED:
                self._leave(Cancel(f"The task is {task.status}."))
        for number in sorted(self._unmade):
            self._around.make_call(self._unmade.pop(number))
            self.calls_made = number

    def _suspend(
        self, reason: str, until: datetime, *, calls: tuple[int, ...] = (), events: tuple[str, ...] = ()
    ) -> NoReturn:
        if self._unmade:
            self._flush()
        self._leave(Suspend(reason, until, calls, events))

    def _leave(self, outcome: Outcome) -> NoReturn:
        self.suspension = Suspended(outcome)
        raise self.suspension
