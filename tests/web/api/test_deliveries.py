"""Deliveries belong to the system: users may see their own, and change, create or claim none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.web.callers import HOUR, PEOPLE, SECOND, RoleHarness, make_keys

from cloudsched import App, Settings, Task
from cloudsched.features.deliveries.maker import delivery_ids
from cloudsched.testing import Simulation
from cloudsched.web.auth.roles import Role

app = App(Settings())
app.handler("remind", access="users")(lambda: "Water the plants")


@pytest.fixture
def roles(simulate: Callable[..., Simulation]) -> RoleHarness:
    """Ada, Eve and a server."""
    keys, access = make_keys({**PEOPLE, "eve": (Role.USER, "eve")}, max_active_tasks=1)
    sim = simulate(access=access)
    sim.add_person("ada")
    return RoleHarness(sim, keys)


def body(**fields: Any) -> dict[str, Any]:
    return {"title": "Plants", "handler": "remind", "schedule": {"at": "2027-01-01T09:01:00Z"}, **fields}


def make_delivery(roles: RoleHarness) -> tuple[Task, Task]:
    """Return one of ada's tasks, and its delivery, which cannot be sent for now."""
    roles.sim.channel("EMAIL").is_down = True
    created = roles.create_task("ada", body(deliveryChannels=["EMAIL"])).json
    roles.sim.advance_to(roles.sim.app.get(created["id"]).schedule.at or roles.sim.now)
    roles.sim.advance(2 * SECOND)
    task = roles.sim.app.get(created["id"])
    (execution,) = roles.sim.executions(task.id)
    return task, roles.sim.app.get(delivery_ids(task, execution.id)[0])


CHANGES = {
    "edit": ("PATCH", "", {"title": "Mine"}),
    "claim its queue": ("PATCH", "", {"pull": "render"}),
    "pause": ("POST", "/pause", {}),
    "cancel": ("POST", "/cancel", {}),
    "trigger": ("POST", "/trigger", {}),
    "retry": ("POST", "/retry", {}),
    "delete": ("DELETE", "", None),
}


@pytest.mark.parametrize(("method", "path", "content"), CHANGES.values(), ids=CHANGES)
def test_a_user_changes_no_delivery(roles: RoleHarness, method: str, path: str, content: object) -> None:
    """Its owner sees it and is refused; anybody else does not see it."""
    _, delivery = make_delivery(roles)
    assert roles.ask("ada", "GET", f"/v1/tasks/{delivery.id}").status_code == 200
    assert roles.ask("eve", "GET", f"/v1/tasks/{delivery.id}").status_code == 404
    assert roles.ask("ada", method, f"/v1/tasks/{delivery.id}{path}", content).status_code == 403
    assert roles.ask("eve", method, f"/v1/tasks/{delivery.id}{path}", content).status_code == 404
    assert roles.sim.app.get(delivery.id) == delivery


@pytest.mark.parametrize("name", ["ada", "admin"])
def test_nobody_creates_or_rewrites_a_delivery(roles: RoleHarness, name: str) -> None:
    """Neither a user nor a server: not by a creation, by the id of one that exists, or as a child."""
    task, delivery = make_delivery(roles)
    forged = {"handler": "cloudsched.delivery", "owner": "ada", "payload": {"title": "Hi", "body": "Click"}}
    for fields in (forged, {**forged, "id": delivery.id}):
        assert roles.create_task(name, body(**fields)).status_code in {400, 403, 404, 422}
    children = {"title": "c", "owner": "ada", "children": [{"handler": "cloudsched.delivery"}]}
    assert roles.create_task(name, children).status_code in {400, 422}
    assert roles.ask(name, "PATCH", f"/v1/tasks/{task.id}", {"handler": "cloudsched.delivery"}).status_code >= 400
    assert roles.sim.app.get(delivery.id) == delivery


def test_a_delivery_is_in_no_list_and_no_quota(roles: RoleHarness) -> None:
    """With room for one task, ada has one delivery and creates another task.

    So does a creation with the delivery's id, which its owner may compute.
    """
    task, delivery = make_delivery(roles)
    assert delivery.is_active
    for name in ("ada", "admin"):
        listed = roles.fetch(name, "/v1/tasks")["tasks"]
        assert [each["id"] for each in listed] == [task.id]
    created = roles.create_task("ada", body(id=delivery.id, schedule={"at": "2027-01-03T09:01:00Z"}))
    assert created.status_code == 201
    assert created.json["id"] != delivery.id
    assert roles.sim.app.get(delivery.id) == delivery


def list_deliveries(roles: RoleHarness, task: Task, name: str = "ada") -> Any:  # noqa: ANN401 - JSON
    (execution,) = roles.sim.executions(task.id)
    return roles.fetch(name, f"/v1/tasks/{task.id}/executions/{execution.id}/deliveries")


def list_sent(roles: RoleHarness, who: str, query: str = "") -> list[dict[str, Any]]:
    return list(roles.fetch(who, f"/v1/deliveries{query}")["deliveries"])


def test_deliveries_say_how_far_they_have_come(roles: RoleHarness) -> None:
    """From the first try to the answer of the other side, with the execution and in lists; nobody else sees them.

    What fails is in the list of all owners until it is sent; users see their own.
    """
    task, delivery = make_delivery(roles)
    (waiting,) = list_deliveries(roles, task)["deliveries"]
    assert waiting.items() >= {"channel": "EMAIL", "status": "RETRYING", "attempts": 1}.items()
    assert "lets it fail" in waiting["reason"]
    (failing,) = list_sent(roles, "admin")
    assert (failing["id"], failing["owner"], failing["taskId"]) == (delivery.id, "ada", task.id)
    assert (failing["channel"], failing["status"]) == ("EMAIL", "RETRYING")
    assert failing["nextAttemptAt"] > failing["createdAt"]
    assert list_sent(roles, "ada") == list_sent(roles, "admin", "?owner=ada") == [failing]
    assert list_sent(roles, "eve") == []
    assert roles.ask("eve", "GET", "/v1/deliveries?owner=ada").status_code == 403
    roles.sim.channel("EMAIL").is_down = False
    roles.sim.advance(HOUR)
    (sent,) = list_deliveries(roles, task)["deliveries"]
    assert sent["messageId"] == roles.sim.sent("EMAIL")[0].id
    assert {"channel": "EMAIL", "status": "SENT", "attempts": 2}.items() <= sent.items()
    assert sent["sentAt"] > "2027-01-01T09:01:00Z"
    assert list_deliveries(roles, task, "eve")["status"] == 404
    missing = roles.ask("ada", "GET", f"/v1/tasks/{task.id}/executions/20260101T090000Z/deliveries")
    assert missing.status_code == 404
    (listed,) = list_sent(roles, "ada")
    assert listed["status"] == "SENT"
    assert "sentAt" in listed
    assert "nextAttemptAt" not in listed
    assert list_sent(roles, "admin") == []
