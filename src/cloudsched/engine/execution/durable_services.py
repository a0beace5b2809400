"""What a durable handler's journal is given to work with: how calls are drafted, made and looked at, and its pace."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from cloudsched.domain.recurrence.schedule import Schedule
from cloudsched.domain.transitions.drafts import LeadTimes, TaskDraft, new_task
from cloudsched.engine.children.child_tasks import ChildTasks
from cloudsched.engine.durable.archive import JournalArchive
from cloudsched.engine.durable.call_results import call_outcome
from cloudsched.engine.durable.durable_run import DurableRun
from cloudsched.engine.durable.suspend import Surroundings, SuspendPolicy
from cloudsched.engine.handlers.validation import validate_draft
from cloudsched.engine.state.commits import TransitionCommitter
from cloudsched.errors import InvalidInput, UnknownHandler

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from random import Random

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Parent, Task
    from cloudsched.engine.dispatch.sender import DispatchSender
    from cloudsched.engine.execution.claimed_run import ClaimedRun
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.blobs import Blobs
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.state.locks import Locks

_NO_LEAD_TIME = LeadTimes(timedelta(0), timedelta(0))
TIME_BUDGET_FRACTION = 0.8
"""Which part of its function's time a handler may use before it is suspended at its next durable point."""
_NOT_ALLOWED_IN_CALLS = {
    "id": "It is made from the call's place in the journal; the call itself stands for it.",
    "owner": "A call is its caller's owner's.",
    "schedule": "A call begins at once; use ctx.sleep before it, or create a task of its own.",
}
"""What a draft may say and a call may not, and why."""


class DurableSettings(Protocol):
    """What the settings say about durable handlers; see `cloudsched.Settings`."""

    @property
    def retention(self) -> timedelta | None: ...  # noqa: D102
    @property
    def time_limit(self) -> timedelta: ...  # noqa: D102
    @property
    def replays_each_step(self) -> bool: ...  # noqa: D102


class DurableServices:
    """What durable handlers need of the engine; it makes the journal of each attempt.

    Attributes:
        journals: Where journals lie.
        committer: What folds journals into records.
        nesting: What makes calls, and tells their parents.
    """

    def __init__(  # noqa: PLR0913 - each is a part of its own
        self,
        *,
        store: Store,
        blobs: Blobs,
        sender: DispatchSender,
        clock: Clock,
        registry: Registry,
        chance: Random,
        settings: DurableSettings,
        locks: Locks,
    ) -> None:
        self.archive = JournalArchive(store, blobs)
        self.committer = TransitionCommitter(store, self.archive)
        self.child_tasks = ChildTasks(store=store, committer=self.committer, sender=sender, clock=clock, locks=locks)
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._registry = registry
        self._chance = chance
        self._settings = settings
        self._call_arguments: dict[tuple[str, datetime | None, int], str] = {}

    def create_durable_run(self, claimed_run: ClaimedRun, run: Run) -> DurableRun:
        """Return the journal of a run that has just been claimed; nothing is read before it is needed."""
        around = Surroundings(
            claimed_run=claimed_run,
            clock=self._clock,
            function=self._function,
            blobs=self._blobs,
            chance=self._chance,
            load=partial(self.archive.load, claimed_run.task.id, run),
            make_call=self.child_tasks.create,
            call_outcome=partial(call_outcome, self._store),
            draft_call=partial(self._draft, claimed_run.task),
            suspend_policy=SuspendPolicy(
                self._suspend_deadline(), self._settings.replays_each_step, self._call_arguments
            ),
        )
        return DurableRun(around, run.execution_id)

    def _function(self, handler: str) -> Callable[..., Any] | None:
        return self._registry.get(handler).function if handler in self._registry else None

    def _suspend_deadline(self) -> datetime:
        return self._clock.now() + self._settings.time_limit * TIME_BUDGET_FRACTION

    def _draft(
        self,
        task: Task,
        handler: str,
        payload: Any,  # noqa: ANN401 - as the handler takes it
        child: str,
        fields: dict[str, Any],
        parent: Parent,
    ) -> Task:
        """Return the task that a call is: it has one record, and is kept no longer than that is to be.

        Raises:
            InvalidInput: There is no such handler, or the payload or a field does not fit.
        """
        now = self._clock.now()
        settled = {
            "id": child,
            "owner": task.owner,
            "handler": handler,
            "payload": {} if payload is None else payload,
            "schedule": Schedule.once(now),
        }
        usual = {"title": f"{handler}, called by {task.title}"[:500], "priority": task.priority}
        try:
            draft = TaskDraft.of(**{**usual, **_caller_fields(fields), **settled})
            made = new_task(validate_draft(draft, self._registry, self._settings.retention), now, _NO_LEAD_TIME).task
        except UnknownHandler:
            raise  # it says which
        except InvalidInput as error:
            raise type(error)(error.field, f"{error.problem}, in the call of {handler!r}", error.hint) from error
        kept = [each for each in (made.retention, made.execution_retention) if each is not None]
        return made.model_copy(
            update={
                "parent": parent.model_copy(update={"is_owners": task.is_written_by_owner}),
                "retention": min(kept, default=None),
            }
        )


def _caller_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what a call says of its task; a `retry` of None leaves that to the handler.

    Raises:
        InvalidInput: It says what is not its to say.
    """
    for name, hint in _NOT_ALLOWED_IN_CALLS.items():
        if name in fields:
            raise InvalidInput(name, "cannot be given to a call", hint)
    return {name: value for name, value in fields.items() if name != "retry" or value is not None}
