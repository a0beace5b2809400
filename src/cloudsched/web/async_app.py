"""An app's methods for code that runs on an event loop, such as an ``async def`` route of a web app."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar, cast, overload

from cloudsched.app import App

if TYPE_CHECKING:
    from cloudsched.engine.ports.authority import Authority

P = ParamSpec("P")
R = TypeVar("R")


class awaited(Generic[P, R]):  # noqa: N801 - used like a decorator
    """A method of `App` that is awaited: it runs in a thread, and the loop goes on."""

    def __init__(self, method: Callable[Concatenate[App, P], R]) -> None:
        self._method = method
        self._name = method.__name__
        functools.update_wrapper(cast("Any", self), method)

    @overload
    def __get__(self, app: None, kind: type) -> awaited[P, R]: ...

    @overload
    def __get__(self, app: AsyncApp, kind: type | None = None) -> Callable[P, Coroutine[Any, Any, R]]: ...

    def __get__(self, app: AsyncApp | None, kind: type | None = None) -> Any:
        """Return the method of an app."""
        if app is None:
            return self
        method = getattr(app.app, self._name)

        @functools.wraps(self._method)
        async def call(*arguments: P.args, **named: P.kwargs) -> R:
            return cast("R", await asyncio.to_thread(method, *arguments, **named))

        return call


class AsyncApp:
    """`App`'s methods, to be awaited: each runs in a thread of the event loop's, with the caller's context variables.

    An await that is cancelled does not take back what the method does: with an `id` of your own, call it again.

    Args:
        app: The app.
    """

    def __init__(self, app: App) -> None:
        self.app: Final = app

    def acting_with(self, authority: Authority) -> Self:
        """Return the app with the rights of a caller that is not its own code. See `App.acting_with`."""
        return type(self)(self.app.acting_with(authority))

    create = awaited(App.create)
    """See `App.create`."""
    run_now = awaited(App.run_now)
    """See `App.run_now`."""
    put = awaited(App.put)
    """See `App.put`."""
    put_content = awaited(App.put_content)
    """See `App.put_content`."""
    get = awaited(App.get)
    """See `App.get`."""
    tasks = awaited(App.tasks)
    """See `App.tasks`."""
    update = awaited(App.update)
    """See `App.update`."""
    patch = awaited(App.patch)
    """See `App.patch`."""
    pause = awaited(App.pause)
    """See `App.pause`."""
    resume = awaited(App.resume)
    """See `App.resume`."""
    cancel = awaited(App.cancel)
    """See `App.cancel`."""
    delete = awaited(App.delete)
    """See `App.delete`."""
    trigger = awaited(App.trigger)
    """See `App.trigger`."""
    snooze = awaited(App.snooze)
    """See `App.snooze`."""
    retry = awaited(App.retry)
    """See `App.retry`."""
    backfill = awaited(App.backfill)
    """See `App.backfill`."""
    upcoming = awaited(App.upcoming)
    """See `App.upcoming`."""
    executions = awaited(App.executions)
    """See `App.executions`."""
    find_executions = awaited(App.find_executions)
    """See `App.find_executions`."""
    execution = awaited(App.execution)
    """See `App.execution`."""
    deliveries = awaited(App.deliveries)
    """See `App.deliveries`."""
    put_person = awaited(App.put_person)
    """See `App.put_person`."""
    send_event = awaited(App.send_event)
    """See `App.send_event`."""
    tree = awaited(App.tree)
    """See `App.tree`."""
    inbox = awaited(App.inbox)
    """See `App.inbox`."""
    draft = awaited(App.draft)
    """See `App.draft`."""
    confirm = awaited(App.confirm)
    """See `App.confirm`."""
