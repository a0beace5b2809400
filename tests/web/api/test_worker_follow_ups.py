"""Follow-ups that a worker reports: what a run in the process may create, and no more than its task's author may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.web.callers import HOUR, KEYS, SECOND, Answer, ApiWorld, make_keys, run_path

from cloudsched import App, Settings
from cloudsched.testing import Simulation

app = App(Settings())
"""Work of workers and what may follow it, of which users may not name ``pay``."""
app.handler("paint", access="users", pull="gpu")(lambda: None)
app.handler("tell", access="users")(lambda: None)
app.handler("pay")(lambda: None)


@pytest.fixture
def world(simulate: Callable[..., Simulation]) -> ApiWorld:
    """With tasks that no run made, and quotas of users."""
    keys, access = make_keys(KEYS, max_active_tasks=4, least_interval=HOUR)
    sim = simulate(access=access)
    for owner in ("ada", "bob"):
        sim.app.create(id=f"of-{owner}", owner=owner, handler="pay", schedule="every day at 9", timezone="UTC")
    return ApiWorld(sim, keys)


def complete(world: ApiWorld, claim: dict[str, Any], *then: object) -> Answer:
    return world.ask("gpu-1", f"{run_path(claim)}/complete", {"leaseToken": claim["leaseToken"], "then": then})


REFUSED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "another owner": ("root", "then.0.owner", {"owner": "bob"}),
    "an unknown handler": ("root", "then.0.handler", {"handler": "none"}),
    "an unknown field": ("root", "then.0.colour", {"colour": "red"}),
    "another owner's id": ("root", "then.0.id", {"id": "of-bob"}),
    "the id of what no run made": ("root", "then.0.id", {"id": "of-ada"}),
    "text that cannot be stored": ("root", "then.0", {"title": "\ud800"}),
    "what a user may not name": ("ada", "then.0.handler", {"handler": "pay"}),
    "a queue that a user may not name": ("ada", "then.0.pull", {"pull": "gpu"}),
    "more often than a user may": ("ada", "then.0.schedule", {"schedule": {"rrule": "FREQ=MINUTELY"}}),
    "more than a user may have": ("ada", "then", {}),
}


@pytest.mark.parametrize(("asked_by", "field", "wrong"), REFUSED.values(), ids=REFUSED)
def test_follow_ups_are_refused_as_a_whole_or_come_once(
    world: ApiWorld, asked_by: str, field: str, wrong: dict[str, Any]
) -> None:
    """A refusal names the place and changes nothing, so that the work is reported without it.

    Then the first report counts. What it creates is of its task's owner, and counts as its author's.
    """
    world.create(asked_by, handler="paint")
    (claim,) = world.claim_all("gpu-1")
    whole = {"handler": "tell"}
    refused = complete(world, claim, {**whole, **wrong}, *[whole] * (1 if wrong else 2))
    assert (refused.status_code, refused.json["field"].startswith(field)) == (400, True), refused.text
    for then in (whole, whole, {"handler": "pay"}):
        assert complete(world, claim, then).status_code == 200
    (made,) = [each for each in world.sim.app.tasks().items if each.is_made_by_run]
    assert (made.owner, made.handler, made.is_for_user) == ("ada", "tell", asked_by == "ada")
    world.sim.advance(SECOND)
    assert world.sim.app.get(made.id).status == "COMPLETED"
