"""Follow-ups and ids from payloads over HTTP: what callers and workers may do with them, and what not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import BaseModel
from tests.web.api.test_claim_identity import KEYS, ApiWorld
from tests.web.api.test_worker_operations import run_path

from cloudsched import App, Settings
from cloudsched.config.access import Access
from cloudsched.testing import Simulation
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role


class Order(BaseModel):
    order: str


@pytest.fixture
def app() -> App:
    app = App(Settings())

    @app.handler("remind", access="users", pull="gpu", task_id=lambda payload: f"remind-{payload.order}")
    def remind(_: Order) -> None: ...

    return app


@pytest.fixture
def world(simulate: Callable[..., Simulation]) -> ApiWorld:
    made = {name: create_key(name, *rest) for name, rest in {**KEYS, "bob": (Role.USER, "bob")}.items()}
    sim = simulate(access=Access(api_keys=tuple(str(kept) for _, kept in made.values())))
    return ApiWorld(sim, {name: key for name, (key, _) in made.items()})


TASK = {"title": "T", "handler": "remind", "payload": {"order": "7"}}


def test_a_creation_about_the_same_thing_is_an_edit_with_or_without_a_key(world: ApiWorld) -> None:
    """An idempotency key would be a second id; the one that follows from the payload is the better."""
    first = world.ask("ada", "/v1/tasks", TASK)
    assert first.status_code == 201, first.text
    for key in ("k1", "k2"):
        again = world.ask("ada", "/v1/tasks", {**TASK, "title": key}, headers={"Idempotency-Key": key})
        assert (again.status_code, again.get_json()["id"]) == (200, first.get_json()["id"])


def test_a_user_cannot_reach_another_users_task_by_its_payload(world: ApiWorld) -> None:
    """The same payload of two users is two tasks."""
    tasks = [world.ask(user, "/v1/tasks", TASK) for user in ("ada", "bob")]
    assert [each.status_code for each in tasks] == [201, 201]
    assert tasks[0].get_json()["id"] != tasks[1].get_json()["id"]


def test_a_worker_cannot_create_tasks_by_completing_one(world: ApiWorld) -> None:
    """`then` is no field of the request, and nothing has ended."""
    task_id = world.ask("ada", "/v1/tasks", {**TASK, "schedule": {"at": "2027-01-01T00:00:01Z"}}).get_json()["id"]
    world.sim.run_until_idle()
    (claim,) = world.ask("root", "/v1/queues/gpu/claim", {"worker": "box"}).get_json()["claims"]
    body = {"leaseToken": claim["leaseToken"], "content": 1, "then": [TASK]}
    refused = world.ask("root", f"{run_path(claim)}/complete", body)
    assert (refused.status_code, refused.get_json()["field"]) == (400, "then")
    assert world.sim.app.get(task_id).runs
