"""What a durable handler's journal is given to work with: how calls are drafted, made and looked at, and its pace."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.domain.drafts import LeadTimes, TaskDraft, new_task
from cloudsched.domain.schedule import Schedule
from cloudsched.engine.checking import checked
from cloudsched.engine.journal import Journal
from cloudsched.engine.suspension import Pace, Surroundings

if TYPE_CHECKING:
    from random import Random

    from cloudsched.domain.execution import Run
    from cloudsched.domain.task import Parent, Task
    from cloudsched.engine.holding import Held
    from cloudsched.engine.nesting import Nesting
    from cloudsched.engine.ports import Blobs, Clock, Store
    from cloudsched.engine.registry import Registry

_AT_ONCE = LeadTimes(timedelta(0), timedelta(0))
NEARLY = 0.8
"""Which part of its function's time a handler may use before it is suspended at its next durable point."""


class Journals:
    """Makes the journal of each attempt."""

    def __init__(  # noqa: PLR0913 - each is a part of its own
        self,
        *,
        store: Store,
        blobs: Blobs,
        clock: Clock,
        registry: Registry,
        nesting: Nesting,
        chance: Random,
        retention: timedelta | None,
        time_limit: timedelta,
        is_each_step: bool,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._registry = registry
        self._nesting = nesting
        self._chance = chance
        self._retention = retention
        self._time_limit = time_limit
        self._is_each_step = is_each_step

    def open(self, held: Held, run: Run) -> Journal:
        """Return the journal of a run that has just been claimed; nothing is read before it is needed."""
        around = Surroundings(
            held=held,
            clock=self._clock,
            registry=self._registry,
            blobs=self._blobs,
            chance=self._chance,
            load=partial(self._store.journal, held.task.id, run.execution_id),
            make_call=self._nesting.make,
            call_outcome=self._nesting.outcome,
            draft_call=partial(self._draft, held.task),
            pace=Pace(self._clock.now() + self._time_limit * NEARLY, self._is_each_step),
        )
        return Journal(around, run.execution_id)

    def _draft(
        self,
        task: Task,
        handler: str,
        payload: Any,  # noqa: ANN401 - as the handler takes it
        child: str,
        fields: dict[str, Any],
        parent: Parent,
    ) -> Task:
        """Return the task that a call is.

        Raises:
            InvalidInput: There is no such handler, or the payload or a field does not fit.
        """
        now = self._clock.now()
        usual = {"title": f"{handler}, called by {task.title}"[:500], "priority": task.priority}
        draft = TaskDraft.of(
            **{
                **usual,
                **fields,
                "id": child,
                "owner": task.owner,
                "handler": handler,
                "payload": {} if payload is None else payload,
                "schedule": Schedule.once(now),
            }
        )
        made = new_task(checked(draft, self._registry, self._retention), now, _AT_ONCE).task
        return made.model_copy(update={"parent": parent})
