"""Replay the journal of an open run with the code at hand, to see whether it would go on.

Nothing is done: no step's function runs, nothing is written, and the replay ends with the last entry of the
journal, or where the handler waits. What lies between two requests of a handler runs, as it does in each
replay, while its effects are refused (`effects`). A dependency is a value that can be handed to a step, and
nothing else.
"""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from cloudsched.domain.documents.execution import Lease
from cloudsched.domain.documents.journal import JournalEntry, StepKind
from cloudsched.domain.transitions.outcome import Suspend
from cloudsched.engine.code_check.compare import Difference, Mismatch
from cloudsched.engine.code_check.effects import refuse, refuse_effects
from cloudsched.engine.durable.durable_run import NotAValue, Replay
from cloudsched.engine.durable.event_loop import handlers_loop
from cloudsched.engine.durable.journal_cursor import JournalCursor
from cloudsched.engine.durable.suspension import Surroundings, SuspendPolicy
from cloudsched.engine.execution.call import call_handler
from cloudsched.engine.handlers.context import Context, LeaseRenewal
from cloudsched.engine.handlers.signature import read_dependencies
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.errors import JournalMismatch, StoreUnavailable, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.code_check.compare import StoredRun
    from cloudsched.engine.durable.suspension import JournaledRun
    from cloudsched.engine.handlers.registry import Handler, Registry
    from cloudsched.engine.ports.clock import Clock

MAX_SECONDS = 5.0
"""The longest time of one replay: it waits for nothing."""
_MAX_TEXT = 500
"""The most characters of an error that are shown."""


STUCK: Final = f"its code between two steps did not end within {MAX_SECONDS:.0f} seconds"
"""Its thread goes on, and nobody waits for it."""


class UnreadableBlobs:
    """Stands in for `Blobs` that cannot be read from here."""

    def __getattr__(self, name: str) -> NoReturn:
        raise StoreUnavailable("The store of large results", "a large result is not shown here")


def rehearse(registry: Registry, stored: StoredRun, clock: Clock) -> Difference | str | None:
    """Replay a run's journal. Return why it would fail, or wait for other code, or as a text why that is not known."""
    handler = registry.get(stored.task.handler)
    if any(_takes_context(handler.name, each.dependency) for each in handler.dependencies.values()):
        return "a dependency of its handler takes the context, and may have asked for steps"
    if handler.is_async:
        handlers_loop()  # it is the process's own, so it is not refused
    verdicts: list[Difference | str | None] = []

    def work() -> None:
        try:
            with refuse_effects() as refused:
                verdict = _replay(registry, handler, stored, clock)
        except BaseException as error:  # noqa: BLE001 - what a handler may raise to end its process
            verdict = f"it raises {type(error).__name__}"
        if refused:
            verdict = f"its code does more than to call steps: {refused[0]}"
        verdicts.append(verdict)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(MAX_SECONDS)
    return verdicts[0] if verdicts else STUCK


def _takes_context(name: str, factory: Callable[..., Any]) -> bool:
    inner = read_dependencies(name, factory).values()
    return any(each is None or _takes_context(name, each.dependency) for each in inner)


def _replay(registry: Registry, handler: Handler, stored: StoredRun, clock: Clock) -> Difference | str | None:
    now = clock.now()
    until = now + timedelta(hours=1)
    lease = Lease(token_hash="rehearsal", started_at=now, until=until)  # noqa: S106 - nobody holds it
    run = stored.run.model_copy(update={"lease": lease, "calls_made": len(stored.entries)})
    attempt = SimpleNamespace(task=stored.task, begun_task=stored.task, run=run)  # it is never asked to store anything
    surroundings = Surroundings(
        attempt=cast("JournaledRun", attempt),
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
    context = Context(stored.task, run, clock, lambda _: LeaseRenewal(until, is_cancelled=False), replay)
    stand_ins = {name: _StandIn(f"the dependency {name!r}") for name in handler.dependencies}
    still = replace(handler, dependencies={}, function=partial(handler.function, **stand_ins))
    report = run_procedure(call_handler(registry, still, context))
    cursor = replay.cursor
    waits = report.outcome if isinstance(report.outcome, Suspend) else None
    entry = (cursor.entries or {}).get(cursor.position)
    is_ours = report.error is not None and report.error.type in {JournalMismatch.__name__, WorkflowError.__name__}
    said = f", after {cursor.position} of the {len(stored.entries)} entries of its journal"
    if waits and waits.is_interrupted:
        return waits.reason  # a part of the journal cannot be read
    if waits and entry and entry.kind is StepKind.VERSION and entry.name not in cursor.versions:
        said = f"It {waits.reason}"
    elif cursor.position >= run.steps and not is_ours:
        return None
    elif waits:
        return f"it {waits.reason} earlier than before"
    elif report.error is None:
        said = f"It ends as {type(report.outcome).__name__}{said}"
    elif is_ours:
        said = report.error.message
    else:
        said = f"{report.error.type}: {report.error.message}{said}"
    problem = said.split(" A durable handler must ", maxsplit=1)[0][:_MAX_TEXT]
    return Difference(Mismatch.STEPS, handler.name, problem)


class _Cursor(JournalCursor):
    """A cursor that ends the replay with the last entry, and before anything is called or recorded."""

    def end(self) -> NoReturn:
        """Suspend the handler for good."""
        self._suspend_with(Suspend("has come to the end of its journal", self.clock.now()))

    def next_entry(self, kind: StepKind, name: str) -> tuple[int, JournalEntry | None]:
        number, entry = super().next_entry(kind, name)
        # The handler's own context compares these with the code once it has the entry.
        if entry is None or (number >= self.run.steps and kind not in {StepKind.EVENT, StepKind.VERSION}):
            self.end()
        return number, entry

    def put(self, entry: JournalEntry, **changes: Any) -> NoReturn:  # noqa: ARG002 - as the base class
        self.end()

    def step(self, number: int) -> NoReturn:  # noqa: ARG002 - the same
        """End before a step's function is called once more."""
        self.end()


class _Replay(Replay):
    """A replay with such a cursor."""

    def _open(self) -> JournalCursor:
        self._opened = self.cursor = self._opened or _Cursor(self._make_surroundings(), self._thread)
        return self.cursor


class _StandIn(NotAValue):
    """Stands in for a dependency that only steps may use: it has every attribute, but cannot be called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> _StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(f"{self._name}.{name}")

    def describe_misuse(self, *_: object, **__: object) -> NoReturn:
        """Note that it is used, and refuse that."""
        refuse(f"the use of {self._name} outside of a step")

    __call__ = describe_misuse
