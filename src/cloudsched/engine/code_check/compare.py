"""Compare tasks and open runs with the code at hand: what would fail, or change, once it runs them."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.script import SCRIPT_HANDLER
from cloudsched.domain.documents.system_tasks import ASSISTANT_HANDLER
from cloudsched.engine.handlers.payload_fields import find_missing_fields
from cloudsched.engine.handlers.registry import BUILT_IN_PREFIX
from cloudsched.features.table import FEATURES, find_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pydantic import TypeAdapter

    from cloudsched.domain.documents.children import Child
    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.registry import Handler, Registry
    from cloudsched.engine.ports.blobs import Blobs


class Mismatch(StrEnum):
    """What of the code a task or a run no longer fits."""

    HANDLER = "handler"
    PAYLOAD = "payload"
    STEPS = "steps"
    EVENT = "event"
    QUEUE = "queue"
    LOCK = "lock"
    ACCESS = "access"


@dataclass(frozen=True, slots=True)
class Consequence:
    """What follows from a cause."""

    fails: bool
    """True if a run would fail, or never go on."""
    cure: str


CONSEQUENCES: Final = complete_table(
    Mismatch,
    {
        Mismatch.HANDLER: Consequence(
            fails=True,
            cure="Keep a handler of that name, or change these tasks: cloudsched tasks edit ID "
            "--set handler='\"NAME\"'",
        ),
        Mismatch.PAYLOAD: Consequence(
            fails=True,
            cure="Give what is new in the model a default, or change these payloads: cloudsched tasks edit ID "
            "--payload …",
        ),
        Mismatch.STEPS: Consequence(
            fails=True,
            cure="Guard what has changed with ctx.version (docs/guides/workflows.md, Change the code), or let these "
            "runs end first.",
        ),
        Mismatch.EVENT: Consequence(fails=True, cure="Let the event's model accept what was sent, too."),
        Mismatch.QUEUE: Consequence(
            fails=False, cure="Keep a worker for the queue that they are in, or give them another queue."
        ),
        Mismatch.LOCK: Consequence(fails=False, cure="Give every task with this lock the same limit."),
        Mismatch.ACCESS: Consequence(
            fails=False,
            cure='They run on, but their owners cannot change them. Keep access="users" if they may.',
        ),
    },
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One cause, for one handler, in words that are the same for all that it concerns."""

    cause: Mismatch
    handler: str
    problem: str


@dataclass(frozen=True, slots=True)
class DifferencePlace:
    """Where a difference was found."""

    task_id: str
    owner: str
    execution_id: str | None = None


NOWHERE: Final = DifferencePlace("", "")
"""The place of what has none that is known."""
SHOWN_PLACES = 5
MAX_GROUPS = 200
"""The most differences that are told apart: a model's own error may quote each value."""


@dataclass(slots=True)
class DifferenceGroup:
    """The places of a difference: how many, and the first of them."""

    count: int = 0
    first: list[DifferencePlace] = field(default_factory=list)

    def add(self, place: DifferencePlace) -> None:
        """Count a place."""
        self.count += 1
        if len(self.first) < SHOWN_PLACES:
            self.first.append(place)


@dataclass(slots=True)
class CodeReport:
    """What a comparison has found. Its size does not grow with the number of tasks."""

    tasks: int = 0
    runs: int = 0
    """The open runs that were looked at."""
    differences: dict[Difference, DifferenceGroup] = field(default_factory=dict)
    unknown: dict[str, DifferenceGroup] = field(default_factory=dict)
    """The number of things that could not be compared, by the reason."""

    @property
    def fails(self) -> bool:
        """Return whether anything would fail."""
        return any(CONSEQUENCES[each.cause].fails for each in self.differences)

    def add(self, difference: Difference, place: DifferencePlace) -> None:
        """Note a difference."""
        if difference not in self.differences and len(self.differences) >= MAX_GROUPS:
            difference = Difference(difference.cause, difference.handler, "other reasons")
        self.differences.setdefault(difference, DifferenceGroup()).add(place)

    def note_unknown(self, reason: str, place: DifferencePlace) -> None:
        """Note something that could not be compared."""
        if reason not in self.unknown and len(self.unknown) >= MAX_GROUPS:
            reason = "other reasons"
        self.unknown.setdefault(reason, DifferenceGroup()).add(place)


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
class OpenRun:
    """An open run, which may go on while it is looked at."""

    execution_id: str
    read: Callable[[], StoredRun | None]
    """Return it as it is now, or None if it is over."""


@dataclass(frozen=True, slots=True)
class StoredTask:
    """A task that may still run, with its open runs."""

    task: Task
    runs: Sequence[OpenRun] = ()
    has_events: bool = True
    """False if the events that wait for it are not known."""


class NameComparison:
    """Looks at tasks one by one, and keeps a report. Names alone are compared: no code of a handler or a model runs.

    They are those of handlers, of the fields that a payload or an event must have, and of the queues and locks. It
    also finds a run with steps of a handler that can request none.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.report: CodeReport = CodeReport()
        self._more: Sequence[Any] = [
            find_place(place)(self.report) for feature in FEATURES for place in feature.code_checks
        ]

    def look(self, stored: StoredTask) -> None:
        """Compare a task and its open runs with the code."""
        task = stored.task
        report = self.report
        report.tasks += 1
        place = DifferencePlace(task.id, task.owner)

        for difference in self._compare_task(task, place):
            report.add(difference, place)
        if task.handler == SCRIPT_HANDLER:
            report.note_unknown("the handlers that its script calls are not known", place)

        for called, _ in _list_calls(task):
            workers = called.workers
            if workers is not None and not is_built_in(called.handler) and called.handler not in self._registry:
                reason = f"workers of the queue {workers.queue!r} have {called.handler!r}, and their code is not here"
                report.note_unknown(reason, place)

        handler = self._registry.find(task.handler)
        if handler is not None and handler.events:
            for difference in self._compare_events(task, handler, place):
                report.add(difference, place)
            if stored.runs and not stored.has_events:
                report.note_unknown(
                    "events may wait for it that it has not taken, and the API does not show them", place
                )

        self._look_at_runs(stored)

    def _look_at_runs(self, stored: StoredTask) -> None:
        task = stored.task
        for run in task.runs:
            self._compare_run(task, task.as_begun(run), run)

    def _compare_run(self, task: Task, begun: Task, run: Run) -> bool:
        """Compare a run with its handler, and return whether no difference was found."""
        self.report.runs += 1
        place = DifferencePlace(task.id, task.owner, run.execution_id)
        name = begun.handler
        payload = begun.payload if run.payload is None else run.payload
        differences = [*self._compare_call(begun, payload, place)]
        if (name, payload) != (task.handler, task.payload):  # otherwise the task's own finding says so
            for difference in differences:
                self.report.add(difference, place)
        handler = self._registry.find(name)
        if not run.steps or handler is None or differences:
            return not differences
        if not handler.takes_context:
            problem = "its runs have recorded steps, and the handler takes no context now"
            self.report.add(Difference(Mismatch.STEPS, name, problem), place)
        return handler.takes_context

    def _compare_task(self, task: Task, place: DifferencePlace) -> Iterator[Difference]:
        for called, payload in _list_calls(task):
            yield from self._compare_call(called, payload, place)
        handler = self._registry.find(task.handler)
        if handler is None or is_built_in(task.handler):
            return
        if task.defined_by is Requesters.USERS and not handler.is_for_users:
            yield Difference(Mismatch.ACCESS, handler.name, "users made them, who may not name it any more")
        for check in self._more:
            yield from check.compare(task, handler, place)

    def _compare_events(self, task: Task, handler: Handler, place: DifferencePlace) -> Iterator[Difference]:
        for event in task.events:
            kind = handler.events.get(event.name)
            if kind is None:
                continue
            refusal = self._find_refusal(kind.adapter, event.payload, kind.read, place)
            if refusal is not None:
                problem = f"the event {event.name!r}, which was accepted, is refused: {refusal}"
                yield Difference(Mismatch.EVENT, handler.name, problem)

    def _compare_call(
        self, called: Task | Child, payload: dict[str, object] | None, place: DifferencePlace
    ) -> Iterator[Difference]:
        """Compare what a task, a child or a run calls. Without a payload, only the handler's name."""
        name = called.handler
        if is_built_in(name):
            return

        handler = self._registry.find(name)
        if handler is None and called.workers is not None:  # workers may have it: `look` says that it is unknown
            return
        if handler is None:
            near = get_close_matches(name, [each.name for each in self._registry], n=1)
            meant = f"; is it {near[0]!r} now?" if near else ""
            yield Difference(Mismatch.HANDLER, name, f"there is no handler of this name{meant}")
            return

        if payload is None:
            refusal = None
        else:
            refusal = self._find_refusal(handler.payload, payload, handler.parse_payload, place)

        if refusal is not None:
            yield Difference(Mismatch.PAYLOAD, name, refusal)

    def _find_refusal(
        self,
        kind: TypeAdapter[Any] | None,
        payload: Any,  # noqa: ANN401 - any JSON
        _read: Callable[[Any], object],
        _place: DifferencePlace,
    ) -> str | None:
        """Return why a payload or an event of this type would be refused, or None."""
        if kind is None:
            return "it takes no payload now" if payload else None
        return (
            "; ".join(f"payload.{name} is missing" for name in find_missing_fields(kind.core_schema, payload)) or None
        )


def _list_calls(task: Task) -> Iterator[tuple[Task | Child, dict[str, object] | None]]:
    """Yield what a task calls with which payload: None if that has results which are not known yet."""
    yield task, task.payload
    for child in task.children:
        yield child, None if child.results_as else child.payload


def is_built_in(name: str) -> bool:
    """Return whether a handler is the package's own."""
    return name.startswith(BUILT_IN_PREFIX) or name == ASSISTANT_HANDLER
