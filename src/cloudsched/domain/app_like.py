"""The common interface of an app and a client of its API, so that code may be given either.

`App` and `Client` are an `AppLike`, `AsyncApp` and `AsyncClient` an `AsyncAppLike`. Handlers go by name,
since a client does not have the functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Unpack

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from datetime import timedelta

    from cloudsched.domain.documents.task import TaskStatus
    from cloudsched.domain.transitions.task_arguments import RunArguments, TaskArguments, TaskChanges


class TaskLike(Protocol):
    """A task, as both return it."""

    @property
    def id(self) -> str:
        """Return its id."""

    @property
    def owner(self) -> str:
        """Return its owner."""

    @property
    def title(self) -> str:
        """Return its title."""

    @property
    def handler(self) -> str:
        """Return the name of its handler."""

    @property
    def status(self) -> TaskStatus:
        """Return its status."""


class AppLike(Protocol):
    """An app, or a client of its API."""

    def create(self, /, **fields: Unpack[TaskArguments]) -> TaskLike:
        """Create a task, or edit the one of the same id and owner. See `App.create`."""

    def run_now(self, handler: str, payload: Any = ..., /, **fields: Unpack[RunArguments]) -> TaskLike:  # noqa: ANN401 - as the handler takes it
        """Create a task that runs once, now. See `App.run_now`."""

    def get(self, task_id: str, /) -> TaskLike:
        """Return a task. Raises NotFound."""

    def update(self, /, task_id: str, **changes: Unpack[TaskChanges]) -> TaskLike:
        """Change some of a task's fields. See `App.update`."""

    def pause(self, task_id: str, /) -> TaskLike:
        """Pause a task until it is resumed."""

    def resume(self, task_id: str, /) -> TaskLike:
        """Resume a paused task from now."""

    def cancel(self, task_id: str, /) -> TaskLike:
        """Cancel a task. It and its executions stay."""

    def delete(self, task_id: str, /) -> None:
        """Remove a task and its executions."""

    def trigger(self, task_id: str, payload: Any = None, /) -> TaskLike:  # noqa: ANN401 - as the handler takes it
        """Run a task once, now, without changing its plan."""

    def snooze(self, task_id: str, duration: timedelta | str = ..., /) -> TaskLike:
        """Repeat a task's last run later."""


class AsyncAppLike(Protocol):
    """An `AsyncApp`, or an `AsyncClient`: the same methods, awaited."""

    def create(self, /, **fields: Unpack[TaskArguments]) -> Awaitable[TaskLike]:
        """Create a task. See `AppLike`, here and below."""

    def run_now(self, handler: str, payload: Any = ..., /, **fields: Unpack[RunArguments]) -> Awaitable[TaskLike]:  # noqa: ANN401 - as the handler takes it
        """Create a task that runs once, now."""

    def get(self, task_id: str, /) -> Awaitable[TaskLike]:
        """Return a task. Raises NotFound."""

    def update(self, /, task_id: str, **changes: Unpack[TaskChanges]) -> Awaitable[TaskLike]:
        """Change some of a task's fields."""

    def pause(self, task_id: str, /) -> Awaitable[TaskLike]:
        """Pause a task until it is resumed."""

    def resume(self, task_id: str, /) -> Awaitable[TaskLike]:
        """Resume a paused task from now."""

    def cancel(self, task_id: str, /) -> Awaitable[TaskLike]:
        """Cancel a task. It and its executions stay."""

    def delete(self, task_id: str, /) -> Awaitable[None]:
        """Remove a task and its executions."""

    def trigger(self, task_id: str, payload: Any = None, /) -> Awaitable[TaskLike]:  # noqa: ANN401 - as the handler takes it
        """Run a task once, now, without changing its plan."""

    def snooze(self, task_id: str, duration: timedelta | str = ..., /) -> Awaitable[TaskLike]:
        """Repeat a task's last run later."""
