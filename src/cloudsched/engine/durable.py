"""What a durable handler's journal is given to work with: how calls are drafted, made and looked at, and its pace."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from cloudsched.domain.drafts import LeadTimes, TaskDraft, new_task
from cloudsched.domain.schedule import Schedule
from cloudsched.engine.checking import checked
from cloudsched.engine.committing import Committer
from cloudsched.engine.journal import Journal
from cloudsched.engine.nesting import Nesting
from cloudsched.engine.suspension import Pace, Surroundings

if TYPE_CHECKING:
    from random import Random

    from cloudsched.domain.execution import Run
    from cloudsched.domain.task import Parent, Task
    from cloudsched.engine.holding import Held
    from cloudsched.engine.ports import Blobs, Clock, Store
    from cloudsched.engine.registry import Registry
    from cloudsched.engine.sending import Sender

_AT_ONCE = LeadTimes(timedelta(0), timedelta(0))
NEARLY = 0.8
"""Which part of its function's time a handler may use before it is suspended at its next durable point."""


class Choices(Protocol):
    """What the settings say about durable handlers; see `cloudsched.Settings`."""

    @property
    def retention(self) -> timedelta | None: ...  # noqa: D102
    @property
    def time_limit(self) -> timedelta: ...  # noqa: D102
    @property
    def replays_each_step(self) -> bool: ...  # noqa: D102


class Durable:
    """What durable handlers need of the engine; it makes the journal of each attempt.

    Attributes:
        committer: What folds journals into records.
        nesting: What makes calls, and tells their parents.
    """

    def __init__(
        self,
        *,
        store: Store,
        blobs: Blobs,
        sender: Sender,
        clock: Clock,
        registry: Registry,
        chance: Random,
        settings: Choices,
    ) -> None:
        self.committer = Committer(store, blobs)
        self.nesting = Nesting(store=store, committer=self.committer, sender=sender, clock=clock)
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._registry = registry
        self._chance = chance
        self._settings = settings

    def journal(self, held: Held, run: Run) -> Journal:
        """Return the journal of a run that has just been claimed; nothing is read before it is needed."""
        around = Surroundings(
            held=held,
            clock=self._clock,
            registry=self._registry,
            blobs=self._blobs,
            chance=self._chance,
            load=partial(self._store.journal, held.task.id, run.execution_id),
            make_call=self.nesting.make,
            call_outcome=self.nesting.outcome,
            draft_call=partial(self._draft, held.task),
            pace=Pace(self._clock.now() + self._settings.time_limit * NEARLY, self._settings.replays_each_step),
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
        made = new_task(checked(draft, self._registry, self._settings.retention), now, _AT_ONCE).task
        return made.model_copy(update={"parent": parent})
