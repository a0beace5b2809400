"""Follow-ups that a worker reports: what a run in the process may create, and no more than its task's author may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.web.callers import HOUR, KEYS, SECOND, Answer, ApiWorld, make_keys, run_path

from cloudsched import App, Settings, Task
from cloudsched.testing import Simulation

FOLLOWED = {"tell", "bank", "pay"}


@pytest.fixture
def app() -> App:
    """Handlers: work of workers and what may follow it, of which users may not name ``pay``."""
    app = App(Settings())
    app.handler("paint", access="users", pull="gpu")(lambda: None)
    app.handler("tell", access="users")(lambda: None)
    app.handler("pay")(lambda: None)
    return app


def complete(world: ApiWorld, claim: dict[str, Any], who: str, *then: object, **more: object) -> Answer:
    body = {"leaseToken": claim["leaseToken"], "content": "done", "then": then, **more}
    return world.ask(who, f"{run_path(claim)}/complete", body)


def list_followed(world: ApiWorld) -> list[Task]:
    return [each for each in world.sim.app.tasks().items if each.handler in FOLLOWED]


@pytest.mark.parametrize("asked_by", ["ada", "root"])
def test_a_worker_s_follow_up_is_its_task_s_owners_and_comes_once(world: ApiWorld, asked_by: str) -> None:
    """However often the report is repeated, also with other follow-ups: the first counts. It counts as its author's."""
    task = world.create(asked_by, handler="paint")
    (claim,) = world.claim_all("gpu-1")
    for handler in ("tell", "tell", "pay"):
        assert complete(world, claim, "gpu-1", {"handler": handler}).status_code == 200
    (followed,) = list_followed(world)
    assert (followed.owner, followed.handler, followed.is_made_by_run) == ("ada", "tell", True)
    assert followed.is_for_user == (asked_by == "ada")
    (record,) = world.sim.executions(task)
    assert record.content == "done"
    world.sim.advance(SECOND)
    assert world.sim.app.get(followed.id).status == "COMPLETED"


REFUSED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "another owner": ("root", "then.0.owner", {"handler": "tell", "owner": "bob"}),
    "an unknown handler": ("root", "then.0.handler", {"handler": "none"}),
    "a wrong payload": ("root", "then.0.payload.n", {"handler": "tell", "payload": {"n": 1}}),
    "an unknown field": ("root", "then.0.colour", {"handler": "tell", "colour": "red"}),
    "another owner's id": ("root", "then.0.id", {"handler": "tell", "id": "bobs"}),
    "the id of what somebody made": ("root", "then.0.id", {"handler": "tell", "id": "made"}),
    "text that cannot be stored": ("root", "then.0", {"handler": "tell", "title": "\ud800"}),
    "no task": ("root", "then", {}),
    "what users may not name, for a user": ("ada", "then.0.handler", {"handler": "pay"}),
    "a user's queue": ("ada", "then.0.pull", {"handler": "tell", "pull": "gpu"}),
}


@pytest.mark.parametrize(("asked_by", "field", "draft"), REFUSED.values(), ids=REFUSED)
def test_a_refused_follow_up_changes_nothing_and_the_work_can_be_reported_without(
    world: ApiWorld, asked_by: str, field: str, draft: dict[str, Any]
) -> None:
    """The answer names the place. Not even those beside it are created, and the claim is still held."""
    world.sim.app.create(id="bobs", owner="bob", handler="pay", schedule="every day at 9", timezone="UTC")
    world.sim.app.create(id="made", owner="ada", handler="pay", schedule="every day at 9", timezone="UTC")
    before = [each.id for each in list_followed(world)]
    task = world.create(asked_by, handler="paint")
    (claim,) = world.claim_all("gpu-1")
    whole = {"handler": "tell"}
    refused = complete(world, claim, "gpu-1", *([draft, whole] if draft else [whole] * 21))
    assert (refused.status_code, refused.json["field"].startswith(field)) == (400, True), refused.text
    assert "bob'" not in refused.text.replace("is 'bob', and", "")
    assert [each.id for each in list_followed(world)] == before
    assert complete(world, claim, "gpu-1", whole).status_code == 200
    assert len(list_followed(world)) == len(before) + 1
    assert [each.status for each in world.sim.executions(task)] == ["SUCCEEDED"]


def test_a_user_s_worker_is_within_the_user_s_quotas(simulate: Callable[..., Simulation]) -> None:
    """As at the API: no more tasks, and none more often, than the user could create."""
    keys, access = make_keys(KEYS, max_active_tasks=3, least_interval=HOUR)
    world = ApiWorld(simulate(access=access), keys)
    world.create("ada", handler="paint")
    (claim,) = world.claim_all("ada")
    whole = {"handler": "tell", "schedule": {"rrule": "FREQ=DAILY"}}
    refused = complete(world, claim, "ada", *[whole] * 3)
    assert (refused.status_code, refused.json["field"]) == (400, "then")
    often = complete(world, claim, "ada", {**whole, "schedule": {"rrule": "FREQ=MINUTELY"}})
    assert (often.status_code, often.json["field"]) == (400, "then.0.schedule")
    assert complete(world, claim, "ada", *[whole] * 2).status_code == 200


def test_a_cancelled_run_has_no_follow_ups(world: ApiWorld) -> None:
    """They belong to a success."""
    world.create("root", handler="paint")
    (claim,) = world.claim_all("gpu-1")
    body = {"leaseToken": claim["leaseToken"], "status": "CANCELLED", "then": [{"handler": "tell"}]}
    assert world.ask("gpu-1", f"{run_path(claim)}/complete", body).json["field"] == "then"
