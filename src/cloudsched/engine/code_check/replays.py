"""Compare what is stored with the code: payloads and events are read as their types, journals are replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.engine.code_check.compare import DifferencePlace, NameComparison, is_built_in
from cloudsched.engine.code_check.effects import refuse_effects
from cloudsched.engine.code_check.rehearsal import STUCK, rehearse
from cloudsched.engine.handlers.payload_fields import read_payload
from cloudsched.errors import InvalidInput, UnreadableDocument
from cloudsched.features.table import FEATURES, find_place

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from cloudsched.engine.code_check.compare import StoredTask
    from cloudsched.engine.handlers.registry import Handler, Registry
    from cloudsched.engine.ports.clock import Clock


class Comparison(NameComparison):
    """Also reads payloads and events as their types, and replays the journals of open runs."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        super().__init__(registry)
        self._clock = clock
        self._stuck = set[str]()
        """Handlers whose code did not end: none of their runs is tried after that."""
        self._more = [find_place(place)() for feature in FEATURES for place in feature.code_checks]

    def _compare_task(self, stored: StoredTask, handler: Handler, place: DifferencePlace) -> None:
        super()._compare_task(stored, handler, place)
        for check in self._more:
            for difference in check.compare(stored.task, handler):
                self.report.add(difference, place)

    def _find_refusal(self, kind: TypeAdapter[Any], payload: Any, place: DifferencePlace) -> str | None:  # noqa: ANN401 - any JSON
        refusal = None
        with refuse_effects() as refused:  # validators are user code
            try:
                read_payload(kind, payload)
            except InvalidInput as error:
                refusal = "; ".join(f"{each.field} {each.problem}" for each in error.faults)
        if not refused:
            return refusal
        self.report.note_unknown(f"a model does more than to look at what it gets: {refused[0]}", place)
        return None

    def _look_at_runs(self, stored: StoredTask, *, fits: bool) -> None:
        task = stored.task
        for execution_id, read in stored.runs.items():
            place = DifferencePlace(task.id, task.owner, execution_id)
            try:
                found = read()
            except UnreadableDocument:
                self.report.note_unknown("a journal is damaged, or of a newer version", place)
                continue
            if found is None or not self._compare_run(task, found.task, found.run, fits=fits) or not found.entries:
                continue
            name = found.task.handler
            if is_built_in(name):
                self.report.note_unknown(f"the steps of {name!r} are the package's own, and not replayed", place)
                continue
            verdict = STUCK if name in self._stuck else rehearse(self._registry, found, self._clock)
            if verdict == STUCK:
                self._stuck.add(name)
            if isinstance(verdict, str):
                self.report.note_unknown(f"the journal of {name!r} could not be replayed to its end: {verdict}", place)
            elif verdict is not None and read() is not None:  # otherwise it has ended, and its journal with it
                self.report.add(verdict, place)
