"""Callers of an API, each with a key of its own, for tests of who may do what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast

from tests import greeting_app
from tests.harness import LocalClient
from werkzeug.test import TestResponse
from werkzeug.wrappers import Request, Response

from cloudsched import App, Context, Schedule
from cloudsched.config.access import Access
from cloudsched.testing import Simulation
from cloudsched.web.auth import authentication
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role
from cloudsched.web.functions import serve_api

TASK = {"title": "Greet", "handler": "greet", "payload": {"name": "Ada"}}
GREETING: dict[str, Any] = {"owner": "ada", **TASK}
"""The smallest request that creates a task."""
PEOPLE: dict[str, tuple[Role, str | None]] = {
    "ada": (Role.USER, "ada"),
    "bob": (Role.USER, "bob"),
    "reader": (Role.READER, "ada"),
    "phone": (Role.USER, "ada"),
    "viewer": (Role.VIEWER, None),
    "admin": (Role.ADMIN, None),
    "worker": (Role.WORKER, None),
}
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ERROR = {"error": {"type": "E", "message": "m"}}
VERBS = ("heartbeat", "complete", "fail", "release")
ENDS = ("complete", "fail", "release")
KEYS: dict[str, tuple[Role, str | None]] = {
    "ada": (Role.USER, "ada"),
    "gpu-1": (Role.WORKER, None),
    "gpu-2": (Role.WORKER, None),
    "root": (Role.ADMIN, None),
    "ops": (Role.ADMIN, None),
}


class Answer(TestResponse):
    """An answer whose JSON need not be asked whether it is there."""

    @property
    def json(self) -> Any:  # noqa: ANN401 - what a test expects
        return self.get_json()


class ApiClient(LocalClient):
    def open(self, *arguments: Any, **options: Any) -> Answer:
        return cast("Answer", super().open(*arguments, **options))


def open_api(app: App, serve: Callable[[App, Request], Response] = serve_api) -> ApiClient:
    """Return a client of one of the deployables, the API if none is named, on its own machine."""
    return ApiClient(Request.application(lambda request: serve(app, request)))


def make_keys(people: Mapping[str, tuple[Any, ...]], **limits: Any) -> tuple[dict[str, str], Access]:
    """Return a key for each caller, and the access that accepts them."""
    made = {name: create_key(name, *each) for name, each in people.items()}
    return {name: key for name, (key, _) in made.items()}, Access(
        api_keys=tuple(str(kept) for _, kept in made.values()), **limits
    )


class RoleHarness:
    """An API with one key for each of six callers."""

    def __init__(self, sim: Simulation, keys: dict[str, str]) -> None:
        self.sim = sim
        self._keys = keys
        self._client = open_api(sim.app)

    def ask(self, who: str | None, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Send a request with a caller's credential, or without one."""
        key = {} if who is None else {"X-Api-Key": self._keys[who]}
        content: dict[str, Any] = {} if body is None else {"json": body}
        return self._client.open(path, method=method, headers={**key, **headers}, **content)

    def fetch(self, who: str | None, path: str) -> Any:  # noqa: ANN401 - JSON
        return self.ask(who, "GET", path).json

    def create_task(self, who: str | None, task: object, **headers: str) -> Answer:
        return self.ask(who, "POST", "/v1/tasks", task, **headers)

    def headers(self, who: str) -> dict[str, str]:
        """Return a caller's credential."""
        return {"X-Api-Key": self._keys[who]}

    def task(self, owner: str, **more: object) -> str:
        return str(self.create_task("admin", {**TASK, "owner": owner, **more}).json["id"])


@contextmanager
def open_roles(app: App = greeting_app.app, **settings: Any) -> Iterator[RoleHarness]:
    """Open an API for Ada and Bob, a reader of Ada's tasks, two servers, and a worker of all queues."""
    keys, access = make_keys(PEOPLE)
    with Simulation(app, access=access, **{"public_url": "https://api.example"} | settings) as sim:
        yield RoleHarness(sim, keys)


class ApiWorld:
    """An API with a key for each caller, and handlers that let a test act while they run."""

    def __init__(self, sim: Simulation, keys: dict[str, str]) -> None:
        self.sim = sim
        self._keys = keys
        self.while_running: Callable[[Context], object] = lambda _: None
        self._client = open_api(sim.app)

    def ask(
        self, who: str, path: str, body: object = None, method: str = "POST", headers: dict[str, str] | None = None
    ) -> Answer:
        """Send a request with a caller's credential."""
        content: dict[str, Any] = {} if body is None else {"json": body}
        named = {"X-Api-Key": self._keys[who], **(headers or {})}
        return self._client.open(path, method=method, headers=named, **content)

    def ask_with(self, path: str, headers: dict[str, str]) -> Answer:
        """GET with credentials of the test's own."""
        return cast("Answer", self._client.get(path, headers=headers))

    def offer(self, task_id: str, **fields: Any) -> None:
        """Create a task of ada's for the queue ``gpu``, and let it come due."""
        usual = {"owner": "ada", "title": "T", "handler": "work", "schedule": Schedule.once(self.sim.now + SECOND)}
        self.sim.app.create(**{"id": task_id, "pull": "gpu", **usual, **fields})
        self.sim.advance(2 * SECOND)

    def claim(self, who: str) -> dict[str, Any]:
        """Claim one run of the queue ``gpu``, which has to be there."""
        (claim,) = self.ask(who, "/v1/queues/gpu/claim", {"worker": "box"}).json["claims"]
        found: dict[str, Any] = claim
        return found

    def create(self, who: str = "ada", **fields: Any) -> str:
        """Create a task for ada, let it come due, and return its id."""
        owner = {} if who == "ada" else {"owner": "ada"}
        due = {"schedule": {"at": (self.sim.now + SECOND).isoformat()}}
        answer = self.ask(who, "/v1/tasks", {"title": "T", **owner, **due, **fields})
        assert answer.status_code == 201, answer.text
        self.sim.advance(2 * SECOND)
        return str(answer.json["id"])

    def claim_all(self, who: str, queue: str = "gpu") -> list[dict[str, Any]]:
        """Claim everything that a queue offers a caller."""
        found: list[dict[str, Any]] = self.ask(who, f"/v1/queues/{queue}/claim", {"limit": 9}).json["claims"]
        return found

    def report(self, who: str, verb: str, run: str, token: str) -> Answer:
        return self.ask(who, f"{run}/{verb}", {"leaseToken": token, **(ERROR if verb == "fail" else {})})


def run_path(claim: dict[str, Any]) -> str:
    return f"/v1/tasks/{claim['task']['id']}/executions/{claim['executionId']}"


def clear_authenticators() -> None:
    """Forget all authenticators, with the keys of the token issuers that they have fetched."""
    authentication._cached_authenticator.cache_clear()  # noqa: SLF001 - nothing but tests needs it
