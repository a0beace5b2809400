"""Compare what is stored with the code: payloads and events are read as their types, journals are replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.engine.code_check.compare import Difference, DifferencePlace, Mismatch, NameComparison, is_built_in
from cloudsched.engine.code_check.effects import refuse_effects
from cloudsched.engine.code_check.rehearsal import STUCK, ReplayVerdict, rehearse
from cloudsched.errors import InvalidInput, UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import TypeAdapter

    from cloudsched.engine.code_check.compare import OpenRun, StoredRun, StoredTask
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.clock import Clock


class Comparison(NameComparison):
    """Also reads payloads and events as their types, and replays the journals of open runs."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        super().__init__(registry)
        self._clock = clock
        self._stuck = set[str]()
        """Handlers whose code did not end: none of their runs is tried after that."""

    def _find_refusal(
        self,
        _kind: TypeAdapter[Any] | None,
        payload: Any,  # noqa: ANN401 - any JSON
        read: Callable[[Any], object],
        place: DifferencePlace,
    ) -> str | None:
        refusal = None
        with refuse_effects() as refused:  # validators are user code
            try:
                read(payload)
            except InvalidInput as error:
                refusal = "; ".join(f"{each.field} {each.problem}" for each in error.faults)
        if not refused:
            return refusal
        self.report.note_unknown(f"a model does more than to look at what it gets: {refused[0]}", place)
        return None

    def _look_at_runs(self, stored: StoredTask) -> None:
        task = stored.task
        for run in stored.runs:
            place = DifferencePlace(task.id, task.owner, run.execution_id)
            try:
                found = run.read()
            except UnreadableDocument:
                self.report.note_unknown("a journal is damaged, or of a newer version", place)
                continue
            if found is None or not self._compare_run(task, found.task, found.run) or not found.entries:
                continue
            name = found.task.handler
            if is_built_in(name):
                self.report.note_unknown(f"the steps of {name!r} are the package's own, and not replayed", place)
                continue
            verdict = self._rehearse(found, run)
            if verdict.problem is not None:
                self.report.add(Difference(Mismatch.STEPS, name, verdict.problem), place)
            if verdict.unknown is not None:
                self.report.note_unknown(
                    f"the journal of {name!r} could not be replayed to its end: {verdict.unknown}", place
                )

    def _rehearse(self, found: StoredRun, run: OpenRun) -> ReplayVerdict:
        handler = self._registry.find(found.task.handler)
        if handler is None:  # its workers have it
            return ReplayVerdict()
        if handler.name in self._stuck:
            return STUCK
        verdict = rehearse(self._registry, handler, found, self._clock)
        if verdict is STUCK:
            self._stuck.add(handler.name)
        if verdict.problem is None:
            return verdict
        again = run.read()
        if again is None:
            return ReplayVerdict()
        if [each.to_record() for each in again.entries] != [each.to_record() for each in found.entries]:
            return ReplayVerdict(unknown="it went on while it was looked at")
        return verdict
