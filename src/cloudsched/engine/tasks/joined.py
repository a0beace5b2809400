"""Change tasks as part of a caller's own commit, and follow up each change once that has taken effect."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from cloudsched.engine.ports.store import Store
from cloudsched.engine.signed_dispatches import DispatchSender
from cloudsched.engine.state.commits import Committer
from cloudsched.engine.state.event_log import log_changes
from cloudsched.engine.tasks.scheduler import Scheduler
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.child_tasks import ChildTasks
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage
    from cloudsched.engine.signed_dispatches import SigningKeys


class WriteGroup(Protocol):
    """A Transaction, AsyncTransaction, WriteBatch or AsyncWriteBatch of google.cloud.firestore."""

    def create(self, reference: Any, document_data: dict[str, Any]) -> None: ...  # noqa: ANN401, D102 - theirs


class JoinedStore(Store, Protocol):
    """A store whose writes are part of a caller's commit."""

    def later(self, do: Callable[[], object]) -> None:
        """Call a function once that commit has taken effect."""
        ...

    def change(self) -> AbstractContextManager[None]:
        """Make a change as a whole: if it raises anything, nothing of it is part of that commit."""
        ...


class JoinedScheduler(Scheduler):
    """A scheduler whose changes take effect with a caller's commit, or not at all.

    What it changes is checked as ever, when it is called. If it is refused, the caller's commit has nothing
    of it. Dispatches, log lines, and what a change means for other tasks wait for the commit.
    """

    def __init__(
        self,
        engine: EngineContext,
        child_tasks: ChildTasks,
        store: JoinedStore,
        dispatcher: Dispatcher,
        keys: SigningKeys,
    ) -> None:
        self._alone = Scheduler(engine, child_tasks)
        self._later = store.later
        self._as_a_whole = store.change
        joined = replace(
            engine,
            store=store,
            sender=DispatchSender(_LaterDispatcher(dispatcher, store.later), keys),
            committer=Committer(store, engine.committer.options, self._log_later),
        )
        super().__init__(joined, child_tasks)
        self.manual_runs.retry = partial(_refuse, "a retry changes the execution's calls")  # type: ignore[method-assign]

    def create(self, *about: Any, **options: Any) -> tuple[Task, bool]:
        """Store a task with the caller's commit. See `Scheduler`."""
        with self._as_a_whole():
            return super().create(*about, **options)

    def change(self, *about: Any) -> Task:
        """Change a task with the caller's commit. See `Scheduler`."""
        with self._as_a_whole():
            return super().change(*about)

    def _leave(self, _task: Task) -> None:
        _refuse("a run of the task waits for a lock")

    def _log_later(self, *about: Any) -> None:
        self._later(partial(log_changes, *about))

    def _follow_changes(self, task: Task, since: datetime) -> Task:
        if task.schedule.depends_on_records:
            self._later(partial(self._alone._follow_changes, task, since))  # noqa: SLF001 - of its own kind
        return task

    def _after_change(self, task: Task) -> Task:
        self._later(partial(self._alone._after_change, task))  # noqa: SLF001 - the same
        return task

    def _cancel_descendants(self, task: Task) -> Task:
        self._later(partial(self._alone._cancel_descendants, task))  # noqa: SLF001 - the same
        return task

    def cancel_run(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a run is cancelled with its calls and what it waits for, in several commits."""
        _refuse("a run is cancelled with its calls, in several commits")

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a task is removed with its executions, in many commits."""
        _refuse("a task is removed with its executions, in many commits")


class _LaterDispatcher:
    """A queue that gets what is created once the caller's commit has taken effect."""

    def __init__(self, dispatcher: Dispatcher, later: Callable[[Callable[[], object]], None]) -> None:
        self._dispatcher = dispatcher
        self._later = later

    def create(self, message: QueueMessage) -> None:
        self._later(partial(self._dispatcher.create, message))  # guard: joined dispatch

    def close(self) -> None:
        """Do nothing: the queue belongs to the app."""


def _refuse(why: str, *_: Any, **__: Any) -> NoReturn:
    raise InvalidInput(
        "transaction",
        f"cannot carry this change: {why}",
        "Make it on its own, before or after.",
    )
