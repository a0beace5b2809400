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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

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
    DECLARATION = "declaration"

    @property
    def fails(self) -> bool:
        """Return whether a run would fail, or never go on."""
        return self not in {Mismatch.QUEUE, Mismatch.LOCK, Mismatch.ACCESS}


CURES: Final = complete_table(
    Mismatch,
    {
        Mismatch.HANDLER: "Keep a handler of that name, or change these tasks: cloudsched tasks edit ID "
        "--set handler='\"NAME\"'",
        Mismatch.PAYLOAD: "Give what is new in the model a default, or change these payloads: cloudsched tasks edit ID "
        "--payload …",
        Mismatch.STEPS: "Guard what has changed with ctx.version (docs/guides/workflows.md, Change the code), or let "
        "these runs end first.",
        Mismatch.EVENT: "Let the event's model accept what was sent, too.",
        Mismatch.QUEUE: "Keep a worker for the queue that they are in, or give them another queue.",
        Mismatch.LOCK: "Give every task with this lock the same limit.",
        Mismatch.ACCESS: 'They run on, but their owners cannot change them. Keep access="users" if they may.',
        Mismatch.DECLARATION: "Correct it: `serve` does not start with it, and `cloudsched apply` changes nothing.",
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


SHOWN_PLACES = 5
MAX_GROUPS = 200
"""The most differences that are told apart: a model's own error may quote each value."""


@dataclass(slots=True)
class DifferenceGroup:
    """The places of a difference: how many, and the first of them."""

    count: int = 0
    first: list[DifferencePlace] = field(default_factory=list)

    def add(self, place: DifferencePlace | None) -> None:
        """Count a place: None if it is not known."""
        self.count += 1
        if place is not None and len(self.first) < SHOWN_PLACES:
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
        return any(each.cause.fails for each in self.differences)

    def add(self, difference: Difference, place: DifferencePlace | None = None) -> None:
        """Note a difference."""
        if difference not in self.differences and len(self.differences) >= MAX_GROUPS:
            difference = Difference(difference.cause, difference.handler, "other reasons")
        self.differences.setdefault(difference, DifferenceGroup()).add(place)

    def note_unknown(self, reason: str, place: DifferencePlace | None = None) -> None:
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
class StoredTask:
    """A task that may still run, with its open runs."""

    task: Task
    runs: Mapping[str, Callable[[], StoredRun | None]]
    """What reads each by its id, as it is then: it may go on while it is looked at. None if it is over."""
    has_events: bool = True
    """False if the events that wait for it are not known."""


class NameComparison:
    """Looks at tasks one by one, and keeps a report. Names alone are compared: no code of a handler or a model runs.

    They are those of handlers and of the fields that a payload or an event must have. It also finds a run with steps of
    a handler that can request none.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.report: CodeReport = CodeReport()

    def look(self, stored: StoredTask) -> None:
        """Compare a task and its open runs with the code."""
        task = stored.task
        self.report.tasks += 1
        place = DifferencePlace(task.id, task.owner)

        fits = self._compare_call(task, task.payload, place)
        for child in task.children:  # some results in its payload may not be known yet
            self._compare_call(child, None if child.results_as else child.payload, place)
        if task.handler == SCRIPT_HANDLER:
            self.report.note_unknown("the handlers that its script calls are not known", place)
        handler = self._registry.find(task.handler)
        if handler is not None and not is_built_in(task.handler):
            self._compare_task(stored, handler, place)
        self._look_at_runs(stored, fits=fits)

    def _look_at_runs(self, stored: StoredTask, *, fits: bool) -> None:
        task = stored.task
        for run in task.runs:
            self._compare_run(task, task.as_begun(run), run, fits=fits)

    def _compare_run(self, task: Task, begun: Task, run: Run, *, fits: bool) -> bool:
        """Compare a run with its handler, and return whether no difference was found. `fits`: so does its task."""
        self.report.runs += 1
        place = DifferencePlace(task.id, task.owner, run.execution_id)
        name = begun.handler
        payload = begun.payload if run.payload is None else run.payload
        if (name, payload) != (task.handler, task.payload):  # otherwise the task's own finding says so
            fits = self._compare_call(begun, payload, place)
        handler = self._registry.find(name)
        if not fits or not run.steps or handler is None or handler.takes_context:
            return fits
        problem = "its runs have recorded steps, and the handler takes no context now"
        self.report.add(Difference(Mismatch.STEPS, name, problem), place)
        return False

    def _compare_task(self, stored: StoredTask, handler: Handler, place: DifferencePlace) -> None:
        task = stored.task
        if task.defined_by is Requesters.USERS and not handler.is_for_users:
            problem = "users made them, who may not name it any more"
            self.report.add(Difference(Mismatch.ACCESS, handler.name, problem), place)
        for event in task.events:
            kind = handler.events.get(event.name)
            refusal = kind and self._find_refusal(kind.adapter, event.payload, place)
            if refusal:
                problem = f"the event {event.name!r}, which was accepted, is refused: {refusal}"
                self.report.add(Difference(Mismatch.EVENT, handler.name, problem), place)
        if handler.events and stored.runs and not stored.has_events:
            self.report.note_unknown(
                "events may wait for it that it has not taken, and the API does not show them", place
            )

    def _compare_call(self, called: Task | Child, payload: dict[str, object] | None, place: DifferencePlace) -> bool:
        """Compare what a task, a child or a run calls, and return whether it fits. Without a payload, only its name."""
        name = called.handler
        handler = self._registry.find(name)
        if is_built_in(name):
            return True
        if handler is None and called.workers is not None:
            queue = called.workers.queue
            reason = f"workers of the queue {queue!r} have {name!r}, and their code is not here"
            self.report.note_unknown(reason, place)
            return False
        if handler is None:
            near = get_close_matches(name, [each.name for each in self._registry], n=1)
            meant = f"; is it {near[0]!r} now?" if near else ""
            problem = f"there is no handler of this name{meant}"
            self.report.add(Difference(Mismatch.HANDLER, name, problem), place)
            return False
        refusal = None
        if handler.payload is None:
            refusal = "it takes no payload now" if payload else None
        elif payload is not None:
            refusal = self._find_refusal(handler.payload, payload, place)
        if refusal is not None:
            self.report.add(Difference(Mismatch.PAYLOAD, name, refusal), place)
        return refusal is None

    def _find_refusal(self, kind: TypeAdapter[Any], payload: Any, _place: DifferencePlace) -> str | None:  # noqa: ANN401 - any JSON
        """Return why a payload or an event of this type would be refused, or None."""
        missing = find_missing_fields(kind.core_schema, payload)
        return "; ".join(f"payload.{name} is missing" for name in missing) or None


def is_built_in(name: str) -> bool:
    """Return whether a handler is the package's own."""
    return name.startswith(BUILT_IN_PREFIX) or name == ASSISTANT_HANDLER


def describe(report: CodeReport) -> list[str]:
    """Return what a comparison has found, as lines for people. The last is the result."""
    lines: list[str] = []
    failing = 0
    for difference, group in sorted(report.differences.items(), key=lambda each: not each[0].cause.fails):
        fails = difference.cause.fails
        failing += group.count if fails else 0
        sign = "fails  " if fails else "differs"
        lines += [f"{sign}  {_count(group)} of {difference.handler!r} ({difference.cause}): {difference.problem}"]
        lines += [*_list_places(group), f"         {CURES[difference.cause]}"]
    for what, group in report.unknown.items():
        lines += [f"unknown  {_count(group)}: {what}", *_list_places(group)]
    if failing:
        end = f"{failing:,} would fail, or not go on."
    elif report.unknown:
        end = "Nothing of that would fail; what is unknown is above."
    else:
        end = "Nothing would fail."
    return [*lines, f"Looked at tasks that may still run: {report.tasks:,}; at open runs: {report.runs:,}. {end}"]


def _list_places(group: DifferenceGroup) -> Iterator[str]:
    for place in group.first:
        run = "" if place.execution_id is None else f", execution {place.execution_id}"
        yield f"           {place.task_id} of {place.owner}{run}"
    if group.count > len(group.first) > 0:
        yield f"           … and {group.count - len(group.first):,} more"


def _count(group: DifferenceGroup) -> str:
    return f"{group.count:,} {'time' if group.count == 1 else 'times'}"
