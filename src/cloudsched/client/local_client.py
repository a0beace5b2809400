"""Clients of an API in the same process: each request is a call of a function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from cloudsched.client.flow import ApiRequest, Flow, FlowStep, JsonResponse, run_steps
from cloudsched.client.operations import Operations

T = TypeVar("T")
Send = Callable[[ApiRequest], JsonResponse]
"""Sends a request, and returns the answer. Raises CloudschedError."""


class LocalApi:
    """Runs flows on an API in this process."""

    face: Final = "app"

    def __init__(self, send: Send) -> None:
        self._send = send

    def run_flow(self, flow: Flow[T]) -> T:
        """Run a flow to its end, and return its result."""
        return run_steps(FlowStep(flow, self.face), self._send)


class LocalClient(LocalApi, Operations):
    """A client of an app in this process, for one user. It has the methods of `Client`, and needs no address."""

    def __init__(self, find_sender: Callable[[str], Send], user: str) -> None:
        super().__init__(find_sender(user))
        self._find_sender = find_sender

    def acting_for(self, user: str) -> LocalClient:
        """Return the same for another user, with exactly the authority of that user."""
        return LocalClient(self._find_sender, user)


class AsyncLocalClient(Operations):
    """A `LocalClient` whose methods are awaited. Each runs in a thread of the event loop's."""

    def __init__(self, client: LocalClient) -> None:
        self._client = client

    def acting_for(self, user: str) -> AsyncLocalClient:
        """Return the same for another user, with exactly the authority of that user."""
        return AsyncLocalClient(self._client.acting_for(user))

    async def run_flow_async(self, flow: Flow[T]) -> T:
        """Run a flow to its end, and return its result."""
        return await asyncio.to_thread(self._client.run_flow, flow)
