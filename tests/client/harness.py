"""What the tests of the client share: a request, and a network that loses responses."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest
from werkzeug.wrappers import Request, Response

from cloudsched.client import AsyncClient
from cloudsched.errors import CloudschedError
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api

GREET: dict[str, Any] = {"owner": "ada", "title": "Greet", "handler": "greet", "payload": {"name": "Ada"}}
IN_BOTH_COLOURS = pytest.mark.parametrize("is_async", [False, True])
DAILY = {"rrule": "FREQ=DAILY", "dtstart": "2027-01-01T09:00:00"}


class Flaky:
    """A proxy before an API, which may fail in its place; it records the requests."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.asked: list[Request] = []
        self.fails: list[Callable[[], Response]] = []
        """How the next requests are answered instead."""
        self.loses = False
        """Whether what is answered instead was done all the same."""

    def fail(self, *statuses: int) -> None:
        """Answer the next requests with these, one each."""
        self.fails = [partial(Response, status=status) for status in statuses]

    def __call__(self, request: Request) -> Response:
        self.asked.append(request)
        if not self.fails:
            return serve_api(self.sim.app, request)
        if self.loses:
            serve_api(self.sim.app, request)
        return self.fails.pop(0)()


class Awaited:
    """An asynchronous client whose methods are awaited, and whose lists are iterated, by a runner."""

    def __init__(self, client: AsyncClient, runner: asyncio.Runner) -> None:
        self._client = client
        self._runner = runner

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - what the method returns
            result = method(*arguments, **named)
            if isinstance(result, AsyncClient):
                return Awaited(result, self._runner)
            return self._runner.run(result) if inspect.iscoroutine(result) else _iterate(result, self._runner)

        return call


def _iterate(items: AsyncIterator[Any], runner: asyncio.Runner) -> Iterator[Any]:
    """Yield the items one by one, so that no page is asked for before it is needed."""

    async def fetch() -> Any:  # noqa: ANN401 - an item
        return await anext(items, _END)

    while (item := runner.run(fetch())) is not _END:
        yield item


_END = object()


def catch_error(call: Callable[[], object]) -> CloudschedError:
    """Return the error that a call raises, which must be one of the library's."""
    with pytest.raises(CloudschedError) as caught:
        call()
    return caught.value
