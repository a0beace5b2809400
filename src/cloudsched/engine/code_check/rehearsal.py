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
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

from cloudsched.domain.documents.execution import Lease, Run
from cloudsched.domain.documents.journal import JournalEntry, StepKind
from cloudsched.domain.transitions.outcome import Suspend
from cloudsched.engine.code_check.effects import RefusedEffects, refuse_effects, refuse_for_good
from cloudsched.engine.durable.durable_run import NotAValue, Replay
from cloudsched.engine.durable.event_loop import handlers_loop
from cloudsched.engine.durable.journal_cursor import JournalCursor
from cloudsched.engine.durable.step_attempt import ReportedUsage
from cloudsched.engine.durable.suspension import Surroundings, SuspendPolicy
from cloudsched.engine.durable.waits import wait_for_event
from cloudsched.engine.execution.call import call_handler
from cloudsched.engine.handlers.context import Context, LeaseRenewal
from cloudsched.engine.handlers.signature import read_dependencies
from cloudsched.engine.ports.procedure import Procedure, run_procedure
from cloudsched.errors import JournalMismatch, StoreUnavailable, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.registry import Handler, Registry
    from cloudsched.engine.ports.blobs import Blobs
    from cloudsched.engine.ports.clock import Clock

P = ParamSpec("P")
T = TypeVar("T")

MAX_SECONDS = 5.0
"""The longest time of one replay: it waits for nothing."""
_AN_HOUR = timedelta(hours=1)
_MAX_TEXT = 500
"""The most characters of an error that are shown."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """An open run as it is stored."""

    task: Task
    """Its task, as the run began with it."""
    run: Run
    entries: Sequence[JournalEntry]
    """Its journal."""
    blobs: Blobs
    """The store of its large results."""


@dataclass(frozen=True, slots=True)
class ReplayVerdict:
    """What a replay has shown: nothing, if both are None."""

    problem: str | None = None
    """Why the run would fail, or wait for other code."""
    unknown: str | None = None
    """Why that cannot be said."""


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


def rehearse(
    registry: Registry,
    handler: Handler,
    stored: StoredRun,
    clock: Clock,
    effects: RefusedEffects,
) -> ReplayVerdict:
    """Replay a run's journal with this handler, and return whether the run would go on."""
    if any(_takes_context(handler.name, each.dependency) for each in handler.dependencies.values()):
        return ReplayVerdict(unknown="a dependency of its handler takes the context, and may have asked for steps")
    if not handler.takes_context:
        first = stored.entries[0]
        return ReplayVerdict(f"Step {first.number} was {first.description}, and the handler takes no context now.")
    if handler.is_async:
        handlers_loop()  # it is the process's own, so it is not refused
    verdicts: list[ReplayVerdict] = []

    def work() -> None:
        refuse_for_good(effects)
        try:
            verdicts.append(_replay(registry, handler, stored, clock, effects))
        except BaseException as error:  # noqa: BLE001 - what a handler may raise to end its process
            verdicts.append(ReplayVerdict(unknown=f"it raises {type(error).__name__}"))

    thread = threading.Thread(target=work, daemon=True)
    with refuse_effects(effects):
        thread.start()
        thread.join(MAX_SECONDS)
    if verdicts:
        return verdicts[0]
    effects.is_stuck = True
    return ReplayVerdict(unknown=f"its code between two steps did not end within {MAX_SECONDS:.0f} seconds")


def _takes_context(name: str, factory: Callable[..., Any]) -> bool:
    inner = read_dependencies(name, factory).values()
    return any(each is None or _takes_context(name, each.dependency) for each in inner)


def _replay(
    registry: Registry,
    handler: Handler,
    stored: StoredRun,
    clock: Clock,
    effects: RefusedEffects,
) -> ReplayVerdict:
    now = clock.now()
    made = max(stored.run.calls_made, len(stored.entries))
    lease = Lease(token_hash="rehearsal", started_at=now, until=now + _AN_HOUR)  # noqa: S106 - nobody holds it
    run = stored.run.model_copy(update={"lease": lease, "calls_made": made})
    attempt = _Attempt(stored.task, run)
    surroundings = Surroundings(
        attempt=attempt,
        clock=clock,
        function=lambda name: None if (found := registry.find(name)) is None else found.function,
        name_of=registry.name_of,
        blobs=stored.blobs,
        chance=random.Random(0),  # noqa: S311 - nothing is retried
        load=lambda: stored.entries,
        make_call=lambda _: False,
        cancel_call=lambda *_: None,
        load_call_outcome=lambda *_: None,
        draft_call=lambda *_: effects.refuse("a call"),
        suspend_policy=SuspendPolicy(),
    )
    replay = _Replay(stored.task, run, clock, surroundings)
    context = _Context(
        stored.task,
        run,
        clock,
        lambda _: LeaseRenewal(now + _AN_HOUR, is_cancelled=False),
        replay,
    )
    stand_ins = {name: _StandIn(effects, f"the dependency {name!r}") for name in handler.dependencies}
    still = replace(handler, dependencies={}, function=partial(handler.function, **stand_ins))
    report = run_procedure(call_handler(registry, still, context))
    if effects.refused:
        return ReplayVerdict(unknown=f"its code does more than to call steps: {effects.refused[0]}")
    if replay.cursor.outage is not None:
        return ReplayVerdict(unknown=replay.cursor.outage)
    if replay.cursor.missing_version is not None:
        return ReplayVerdict(f"It {replay.cursor.missing_version}")
    if isinstance(report.outcome, Suspend):
        is_whole = replay.cursor.position >= run.steps
        return ReplayVerdict(unknown=None if is_whole else f"it {report.outcome.reason} earlier than before")

    reached = f", after {replay.cursor.position} of the {len(stored.entries)} entries of its journal"
    if report.error is None:
        return ReplayVerdict(f"It ends as {type(report.outcome).__name__}{reached}")

    is_ours = report.error.type in {JournalMismatch.__name__, WorkflowError.__name__}
    if is_ours:
        said = report.error.message
    else:
        said = f"{report.error.type}: {report.error.message}{reached}"

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


class _Cursor(JournalCursor):
    """A cursor that ends the replay where anything new would be recorded."""

    outage: str | None = None
    """Why a part of the journal cannot be read."""
    missing_version: str | None = None
    """Why the run waits for other code."""

    def end(self) -> NoReturn:
        """Suspend the handler for good."""
        self._suspend_with(Suspend("has come to the end of its journal", self.clock.now()))

    def new_entry(self, number: int, kind: StepKind, name: str) -> NoReturn:  # noqa: ARG002 - as the base class
        self.end()

    def put(self, entry: JournalEntry, **changes: Any) -> NoReturn:  # noqa: ARG002 - the same
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
    """A replay that ends with the journal."""

    cursor: _Cursor

    def __init__(self, task: Task, run: Run, clock: Clock, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        super().__init__(task, run, clock, lambda: surroundings)

    def _open(self) -> _Cursor:
        if self._opened is None:
            self._opened = self.cursor = _Cursor(self._surroundings, self._thread)
        return self.cursor

    def end_with_journal(self) -> None:
        """End the replay if the handler has requested every entry."""
        if self.cursor.position >= self.cursor.run.steps:
            self.cursor.end()

    def perform(
        self,
        what: str,
        operation: Callable[Concatenate[JournalCursor, P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        try:
            result = super().perform(what, operation, *args, **kwargs)
        except JournalMismatch:
            raise
        except Exception:  # the failure of an entry, which the handler may handle
            self.end_with_journal()
            raise
        if operation is not wait_for_event:  # whose answer is read by its context first
            self.end_with_journal()
        return result

    def perform_procedure(
        self,
        what: str,
        operation: Callable[Concatenate[JournalCursor, P], Procedure[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Procedure[T]:
        try:
            result = yield from super().perform_procedure(what, operation, *args, **kwargs)
        except JournalMismatch:
            raise
        except Exception:  # the same
            self.end_with_journal()
            raise
        self.end_with_journal()
        return result


class _Context(Context):
    """A context whose replay ends with the journal."""

    durable_run: _Replay

    def wait_for(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the base class
        answer = super().wait_for(*args, **options)
        self.durable_run.end_with_journal()
        return answer


class _StandIn(NotAValue):
    """Stands in for a dependency that only steps may use: it has every attribute, but cannot be called."""

    def __init__(self, effects: RefusedEffects, name: str) -> None:
        self._effects = effects
        self._name = name

    def __getattr__(self, name: str) -> _StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(self._effects, f"{self._name}.{name}")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Refuse the call."""
        self._refuse()

    def describe_misuse(self) -> NoReturn:
        """Note that it is used, and refuse that."""
        self._effects.refuse(f"the use of {self._name} outside of a step")
