"""Clients of the HTTP API, typed, with paging, retries, and the same errors as the library's.

::

    with Client("https://api.example", token=firebase_id_token) as client:
        task = client.create(title="Greet", handler="greet", payload={"name": "Ada"}, schedule={"rrule": "FREQ=DAILY"})
        for execution in client.executions(task.id):
            print(execution.scheduled_for, execution.status)

    async with AsyncClient("https://api.example", key=key) as client:
        task = await client.create(owner="ada", title="Greet", handler="greet", payload={"name": "Ada"})
        async for execution in client.executions(task.id):
            print(execution.scheduled_for, execution.status)

If the service does not respond or is overloaded, requests that are safe to repeat are retried a few
times, with growing waits. These are reads, creations (which carry an idempotency key), and a worker's
reports on its claims. Instants are datetimes in UTC, and durations are numbers of seconds.
"""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self, TypeVar
from urllib.parse import quote

from cloudsched.client.connection import RETRIES, AsyncConnection, Connection, Endpoint
from cloudsched.client.flow import ApiRequest, Flow, FlowStep, Sleep, run_steps
from cloudsched.client.operations import Operations
from cloudsched.domain.call_arguments import check_arguments
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import httpx

T = TypeVar("T")
C = TypeVar("C", bound="Client | AsyncClient")


class Client(Operations):
    """A client of one API. It may be used by several threads.

    Args:
        url: The API's address, without a path unless the API is mounted under one.
        token: A Firebase ID token or a Google OIDC token, or a function that returns one for each request.
        key: An API key.
        platform_token: A token for Cloud Run itself, for a private service that uses `token` for its own users.
        timeout: The seconds that one request may take in all: to connect, to answer in full, and its repetitions with
            their pauses. A list sends a request for each page.
        max_retries: How often a request that is safe to repeat is sent again. 0 if you repeat your calls yourself.
        transport: An httpx transport of yours, in place of connections to `url`. It is closed with this client.
        http_client: An HTTP client of yours, with its own proxies, certificates and headers. It is never closed here.
    """

    face: Final = "client"

    def __init__(  # noqa: PLR0913 - each is what a caller has or has not
        self,
        url: str,
        *,
        token: str | Callable[[], str] | None = None,
        key: str | None = None,
        platform_token: str | Callable[[], str] | None = None,
        timeout: float = 30,
        max_retries: int = RETRIES,
        transport: httpx.BaseTransport | None = None,
        http_client: httpx.Client | None = None,
    ) -> None:
        endpoint = Endpoint(url, key, timeout, max_retries)
        self._connection = Connection(endpoint, token, platform_token, transport, http_client)
        self._headers: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    @check_arguments
    def acting_for(self, user: str) -> Self:
        """Return a client that acts for a user, with exactly the authority of that user.

        This client's credential has to be an admin's or a delegate's. Both share the connections: close
        this one.

        >>> client.acting_for("ada").get(task.id).title
        'Water the plants'
        """
        return _copy_for(self, user)

    def run_flow(self, flow: Flow[T]) -> T:
        """Run a flow to its end, and return its result. The client's methods use this."""
        return run_steps(
            FlowStep(flow, self.face), lambda wanted: self._connection.send(_add_headers(wanted, self._headers))
        )


class AsyncClient(Operations):
    """A client of one API for an event loop: `Client`'s methods are awaited, and its lists iterated by ``async for``.

    Args:
        url: The API's address, without a path unless the API is mounted under one.
        token: As for `Client`, but the function may be asynchronous.
        key: An API key.
        platform_token: As for `Client`, but the function may be asynchronous.
        timeout: As for `Client`.
        max_retries: As for `Client`.
        transport: As for `Client`, but an asynchronous one.
        http_client: As for `Client`, but an asynchronous one, which belongs to one event loop.
    """

    face: Final = "client"

    def __init__(  # noqa: PLR0913 - each is what a caller has or has not
        self,
        url: str,
        *,
        token: str | Callable[[], str] | Callable[[], Awaitable[str]] | None = None,
        key: str | None = None,
        platform_token: str | Callable[[], str] | Callable[[], Awaitable[str]] | None = None,
        timeout: float = 30,
        max_retries: int = RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        endpoint = Endpoint(url, key, timeout, max_retries)
        self._connection = AsyncConnection(endpoint, token, platform_token, transport, http_client)
        self._headers: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    @check_arguments
    def acting_for(self, user: str) -> Self:
        """Return a client that acts for a user. See `Client.acting_for`."""
        return _copy_for(self, user)

    async def run_flow_async(self, flow: Flow[T]) -> T:
        """Run a flow to its end, and return its result. The client's methods use this."""
        step = FlowStep(flow, self.face)
        while (wanted := step.next()) is not None:
            if isinstance(wanted, Sleep):
                await asyncio.sleep(wanted.seconds)
                continue
            try:
                step.response = await self._connection.send(_add_headers(wanted, self._headers))
            except CloudschedError as error:
                step.error = error
        return step.result


def _copy_for(client: C, user: str) -> C:
    copied = copy.copy(client)
    copied._headers = {"X-On-Behalf-Of": quote(user, safe="@|:")}  # noqa: SLF001 - a client of this module
    return copied


def _add_headers(request: ApiRequest, headers: dict[str, str]) -> ApiRequest:
    if not headers:
        return request
    return replace(request, headers={**request.headers, **headers})
