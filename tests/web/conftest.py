"""The whole API on a simulation: werkzeug's client in front, the embedded store behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest
from tests import greeting_app
from tests.web.callers import GREETING, KEYS, Answer, ApiWorld, RoleHarness, make_keys, open_api, open_roles

from cloudsched import App
from cloudsched.client import task_inquiries
from cloudsched.testing import Simulation


class Call(Protocol):
    def __call__(self, method: str, path: str, body: object = ..., **more: Any) -> Answer: ...


@pytest.fixture(autouse=True)
def _allow_slow_last_poll() -> Iterator[None]:
    """Give a busy machine a minute, and not five seconds, to answer a client's last poll."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_inquiries, "MIN_POLL_TIMEOUT", 60.0)
        yield


@pytest.fixture
def app(request: pytest.FixtureRequest) -> App:
    """The app of the test's module, or the one with the greeting handlers."""
    found: App = getattr(request.module, "app", greeting_app.app)
    return found


@pytest.fixture
def roles(app: App) -> Iterator[RoleHarness]:
    with open_roles(app) as opened:
        yield opened


@pytest.fixture
def world(simulate: Callable[..., Simulation]) -> ApiWorld:
    """An API for the callers of `KEYS`."""
    keys, access = make_keys(KEYS)
    return ApiWorld(simulate(access=access), keys)


@pytest.fixture
def call(sim: Simulation) -> Call:
    """Send a request to the API, with a body that is JSON, or bytes as they are."""
    client = open_api(sim.app)

    def send(method: str, path: str, body: object = None, **more: Any) -> Answer:
        content = {"data": body} if isinstance(body, bytes) else {} if body is None else {"json": body}
        return client.open(path, method=method, **content, **more)

    return send


def fetch(call: Call, path: str) -> Any:  # noqa: ANN401 - JSON
    return call("GET", path).json


def create(call: Call, **fields: Any) -> Answer:
    return call("POST", "/v1/tasks", {**GREETING, **fields})


@pytest.fixture
def greeting() -> dict[str, Any]:
    """Return the smallest request that creates a task."""
    return GREETING
