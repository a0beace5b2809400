"""Operations as flows: written once, run by `Client` and by `AsyncClient`.

A flow is a generator that yields what it needs, a request or a pause, and is sent the response. It does no I/O, so it
is the same for both clients; they differ only in who runs it. A request that failed is raised inside the flow.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, overload

if TYPE_CHECKING:
    from cloudsched.client.responses import ApiResponse

P = ParamSpec("P")
T = TypeVar("T")

PAGE_SIZE = 100
"""How many items of a list are requested at a time."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request to the API."""

    method: str
    path: str
    """The path, encoded."""
    content: dict[str, Any] | None = None
    """The body, as JSON."""
    query: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    is_idempotent: bool = False
    """Whether it may be repeated although its method is not idempotent."""
    time_limit: float | None = None
    """How many seconds it may take at most; then it is sent once."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait of so many seconds."""

    seconds: float


Flow = Generator[ApiRequest | Pause, "ApiResponse", T]
"""What an operation does, and what it returns."""


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list that is read page by page."""

    path: str
    name: str
    """The field with the items."""
    query: dict[str, Any]
    parse: Callable[[Any], T]


class FlowRunner(Protocol):
    """Runs flows, and blocks until they end."""

    def run_flow(self, flow: Flow[T]) -> T:
        """Return what a flow returns."""
        ...


class AsyncFlowRunner(Protocol):
    """Runs flows on an event loop."""

    async def run_flow_async(self, flow: Flow[T]) -> T:
        """Return what a flow returns."""
        ...


class operation(Generic[P, T]):  # noqa: N801 - used as a decorator
    """A method that is a flow: `Client` returns its result, `AsyncClient` an awaitable of it."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Flow[T]]) -> None:
        self._flow = flow
        functools.update_wrapper(cast("Any", self), flow)

    @overload
    def __get__(self, client: None, kind: type) -> operation[P, T]: ...

    @overload
    def __get__(self, client: FlowRunner, kind: type | None = None) -> Callable[P, T]: ...

    @overload
    def __get__(self, client: AsyncFlowRunner, kind: type | None = None) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, client: Any, kind: type | None = None) -> Any:
        """Return the method of a client."""
        if client is None:
            return self
        run = client.run_flow_async if hasattr(client, "run_flow_async") else client.run_flow

        @functools.wraps(self._flow)
        def call(*arguments: P.args, **named: P.kwargs) -> Any:  # noqa: ANN401 - a result, or an awaitable of it
            return run(self._flow(client, *arguments, **named))

        return call


class listing(Generic[P, T]):  # noqa: N801 - used as a decorator
    """A method that lists items: `Client` returns an iterator over all pages, `AsyncClient` an asynchronous one."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Listing[T]]) -> None:
        self._describe = describe
        functools.update_wrapper(cast("Any", self), describe)

    @overload
    def __get__(self, client: None, kind: type) -> listing[P, T]: ...

    @overload
    def __get__(self, client: FlowRunner, kind: type | None = None) -> Callable[P, Iterator[T]]: ...

    @overload
    def __get__(self, client: AsyncFlowRunner, kind: type | None = None) -> Callable[P, AsyncIterator[T]]: ...

    def __get__(self, client: Any, kind: type | None = None) -> Any:
        """Return the method of a client."""
        if client is None:
            return self
        iterate = _iterate_async if hasattr(client, "run_flow_async") else _iterate

        @functools.wraps(self._describe)
        def call(*arguments: P.args, **named: P.kwargs) -> Any:  # noqa: ANN401 - one of the two kinds of iterators
            return iterate(client, self._describe(client, *arguments, **named))

        return call


def _iterate(client: FlowRunner, wanted: Listing[T]) -> Iterator[T]:
    token: str | None = None
    while True:
        items, token = client.run_flow(_fetch_page(wanted, token))
        yield from items
        if token is None:
            return


async def _iterate_async(client: AsyncFlowRunner, wanted: Listing[T]) -> AsyncIterator[T]:
    token: str | None = None
    while True:
        items, token = await client.run_flow_async(_fetch_page(wanted, token))
        for item in items:
            yield item
        if token is None:
            return


def _fetch_page(wanted: Listing[T], token: str | None) -> Flow[tuple[list[T], str | None]]:
    query = {"pageSize": PAGE_SIZE, **wanted.query, **({} if token is None else {"pageToken": token})}
    response = yield ApiRequest("GET", wanted.path, query=query)
    return response.read_list(wanted.name, wanted.parse), response.content.get("nextPageToken")
