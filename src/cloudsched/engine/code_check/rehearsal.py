"""Replay the journal of an open run with the code at hand, to see whether it would go on.

Nothing is done: no step's function runs, nothing is written, and the replay ends with the last entry of the
journal, or where the handler waits. What lies between two requests of a handler runs, as it does in each
replay, while its effects are refused (`effects`). A dependency is a value that can be handed to a step, and
nothing else.
"""

from __future__ import annotations

import random
import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from cloudsched.domain.documents.execution import Lease, Run
from cloudsched.domain.documents.journal import JournalEntry, StepKind
from cloudsched.domain.transitions.outcome import Suspend
from cloudsched.engine.code_check.effects import refuse, refuse_effects
from cloudsched.engine.durable.durable_run import NotAValue, Replay
from cloudsched.engine.durable.event_loop import handlers_loop
from cloudsched.engine.durable.journal_cursor import JournalCursor
from cloudsched.engine.durable.step_attempt import ReportedUsage
from cloudsched.engine.durable.suspension import Surroundings, SuspendPolicy
from cloudsched.engine.execution.call import call_handler
from cloudsched.engine.handlers.context import Context, LeaseRenewal
from cloudsched.engine.handlers.signature import read_dependencies
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.errors import JournalMismatch, StoreUnavailable, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.code_check.compare import StoredRun
    from cloudsched.engine.handlers.registry import Handler, Registry
    from cloudsched.engine.ports.clock import Clock

MAX_SECONDS = 5.0
"""The longest time of one replay: it waits for nothing."""
_AN_HOUR = timedelta(hours=1)
_MAX_TEXT = 500
"""The most characters of an error that are shown."""


@dataclass(frozen=True, slots=True)
class ReplayVerdict:
    """What a replay has shown: nothing, if both are None."""

    problem: str | None = None
    """Why the run would fail, or wait for other code."""
    unknown: str | None = None
    """Why that cannot be said."""


STUCK: Final = ReplayVerdict(unknown=f"its code between two steps did not end within {MAX_SECONDS:.0f} seconds")
"""Its thread goes on, and nobody waits for it."""


class UnreadableBlobs:
    """`Blobs` that cannot be read from here."""

    def put(self, key: str, content: bytes) -> NoReturn:  # noqa: ARG002 - nothing is written
        """Raise StoreUnavailable."""
        raise StoreUnavailable("The store of large results", "nothing is written")

    def get(self, key: str) -> NoReturn:
        """Raise StoreUnavailable."""
        raise StoreUnavailable("The store of large results", f"{key} is not shown here")

    def delete(self, key: str) -> None:
        """Delete nothing."""


def rehearse(registry: Registry, handler: Handler, stored: StoredRun, clock: Clock) -> ReplayVerdict:
    """Replay a run's journal with this handler, and return whether the run would go on."""
    if any(_takes_context(handler.name, each.dependency) for each in handler.dependencies.values()):
        return ReplayVerdict(unknown="a dependency of its handler takes the context, and may have asked for steps")
    if handler.is_async:
        handlers_loop()  # it is the process's own, so it is not refused
    verdicts: list[ReplayVerdict] = []

    def work() -> None:
        try:
            with refuse_effects() as refused:
                verdict = _replay(registry, handler, stored, clock)
        except BaseException as error:  # noqa: BLE001 - what a handler may raise to end its process
            verdict = ReplayVerdict(unknown=f"it raises {type(error).__name__}")
        if refused:
            verdict = ReplayVerdict(unknown=f"its code does more than to call steps: {refused[0]}")
        verdicts.append(verdict)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(MAX_SECONDS)
    return verdicts[0] if verdicts else STUCK


def _takes_context(name: str, factory: Callable[..., Any]) -> bool:
    inner = read_dependencies(name, factory).values()
    return any(each is None or _takes_context(name, each.dependency) for each in inner)


def _replay(registry: Registry, handler: Handler, stored: StoredRun, clock: Clock) -> ReplayVerdict:
    now = clock.now()
    made = max(stored.run.calls_made, len(stored.entries))
    lease = Lease(token_hash="rehearsal", started_at=now, until=now + _AN_HOUR)  # noqa: S106 - nobody holds it
    run = stored.run.model_copy(update={"lease": lease, "calls_made": made})
    attempt = _Attempt(stored.task, run)
    surroundings = Surroundings(
        attempt=attempt,
        clock=clock,
        function=lambda name: None if (found := registry.find(name)) is None else found.function,
        tells_errors=registry.tells_errors,
        name_of=registry.name_of,
        blobs=stored.blobs,
        chance=random.Random(0),  # noqa: S311 - nothing is retried
        load=lambda: stored.entries,
        make_call=lambda _: False,
        cancel_call=lambda *_: None,
        load_call_outcome=lambda *_: None,
        draft_call=lambda *_: refuse("a call"),
        suspend_policy=SuspendPolicy(),
    )
    replay = _Replay(stored.task, run, clock, lambda: surroundings)
    context = Context(
        stored.task,
        run,
        clock,
        lambda _: LeaseRenewal(now + _AN_HOUR, is_cancelled=False),
        replay,
    )
    stand_ins = {name: _StandIn(f"the dependency {name!r}") for name in handler.dependencies}
    still = replace(handler, dependencies={}, function=partial(handler.function, **stand_ins))
    report = run_procedure(call_handler(registry, still, context))
    if replay.cursor.outage is not None:
        return ReplayVerdict(unknown=replay.cursor.outage)
    if replay.cursor.missing_version is not None:
        return ReplayVerdict(f"It {replay.cursor.missing_version}")
    is_ours = report.error is not None and report.error.type in {JournalMismatch.__name__, WorkflowError.__name__}
    if replay.cursor.position >= run.steps and not is_ours:
        return ReplayVerdict()
    if isinstance(report.outcome, Suspend):
        return ReplayVerdict(unknown=f"it {report.outcome.reason} earlier than before")

    said = f", after {replay.cursor.position} of the {len(stored.entries)} entries of its journal"
    if report.error is None:
        said = f"It ends as {type(report.outcome).__name__}{said}"
    elif is_ours:
        said = report.error.message
    else:
        said = f"{report.error.type}: {report.error.message}{said}"
    return ReplayVerdict(said.split(" A durable handler must ", maxsplit=1)[0][:_MAX_TEXT])


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A `JournaledRun` that stores nothing."""

    task: Task
    run: Run

    @property
    def begun_task(self) -> Task:
        return self.task

    def append_journal(
        self,
        entries: Sequence[JournalEntry],
        calls_made: int,
        end_wait: object = None,
    ) -> None:
        """Store nothing, as one who holds no lease."""


_READ_LATER: Final = frozenset({StepKind.EVENT, StepKind.VERSION})
"""What the handler's own context compares with the code once it has the entry."""


class _Cursor(JournalCursor):
    """A cursor that ends the replay with the last entry, and before anything is called or recorded."""

    outage: str | None = None
    """Why a part of the journal cannot be read."""
    missing_version: str | None = None
    """Why the run waits for other code."""

    def end(self) -> NoReturn:
        """Suspend the handler for good."""
        self._suspend_with(Suspend("has come to the end of its journal", self.clock.now()))

    def next_entry(self, kind: StepKind, name: str) -> tuple[int, JournalEntry | None]:
        number, entry = super().next_entry(kind, name)
        if entry is None or (number >= self.run.steps and kind not in _READ_LATER):
            self.end()
        return number, entry

    def put(self, entry: JournalEntry, **changes: Any) -> NoReturn:  # noqa: ARG002 - as the base class
        self.end()

    @contextmanager
    def step(self, number: int) -> Iterator[ReportedUsage]:  # noqa: ARG002 - the same
        """End before a step's function is called once more."""
        self.end()
        yield ReportedUsage()

    def suspend(self, reason: str, until: datetime, **waits: Any) -> NoReturn:
        entry = None
        if self.position:
            entry = self.journal[self.position]
        if entry is not None and entry.kind is StepKind.VERSION and entry.name not in self.versions:
            self.missing_version = reason
        super().suspend(reason, until, **waits)

    def suspend_for_outage(self, reason: str) -> NoReturn:
        self.outage = reason
        super().suspend_for_outage(reason)


class _Replay(Replay):
    """A replay with such a cursor."""

    cursor: _Cursor

    def _open(self) -> _Cursor:
        if self._opened is None:
            self._opened = self.cursor = _Cursor(self._make_surroundings(), self._thread)
        return self.cursor


class _StandIn(NotAValue):
    """Stands in for a dependency that only steps may use: it has every attribute, but cannot be called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> _StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(f"{self._name}.{name}")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Refuse the call."""
        self._refuse()

    def describe_misuse(self) -> NoReturn:
        """Note that it is used, and refuse that."""
        refuse(f"the use of {self._name} outside of a step")
