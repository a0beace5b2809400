"""What takes an app, or a client of its API: both have the same methods, and handlers go by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from cloudsched.app import App, AsyncApp
    from cloudsched.client import AsyncClient, Client, TaskView
    from cloudsched.domain.documents.task import Task
    from cloudsched.web.own_api import AsyncOwnClient, OwnClient

    AppLike: TypeAlias = App | Client | OwnClient
    AsyncAppLike: TypeAlias = AsyncApp | AsyncClient | AsyncOwnClient
    TaskLike: TypeAlias = Task | TaskView
else:  # so that neither imports the other

    class AppLike:
        """An `App`, or a `Client` of its API, or what `App.acting_for` returns."""

    class AsyncAppLike:
        """An `AsyncApp`, or an `AsyncClient`: the same methods, awaited."""

    class TaskLike:
        """A task, as either returns it."""
