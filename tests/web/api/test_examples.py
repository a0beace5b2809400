"""Each example of a request in the OpenAPI document is what the API takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from tests.web.conftest import Call

from cloudsched import Context
from cloudsched.testing import Simulation
from cloudsched.web.api.openapi import build_document

DOCUMENT = build_document()
Case = tuple[str, str, str, str, str, dict[str, Any]]
CASES: list[Case] = [
    (operation["operationId"], name, path, method.upper(), kind, example["value"])
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    for kind, content in operation.get("requestBody", {}).get("content", {}).items()
    for name, example in content["examples"].items()
]
WEEKDAYS = {"rrule": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9", "timezone": "Europe/Paris"}


@dataclass
class World:
    """An API in which there is what the examples are about: a task, what has run of it, a claim, a person."""

    call: Call
    sim: Simulation

    def task(self, handler: str = "anything", **fields: Any) -> str:
        """Create a task, and return its id."""
        body = {"owner": "ada", "title": "Report", "handler": handler, **fields}
        answer = self.call("POST", "/v1/tasks", body)
        assert answer.status_code == 201, answer.text
        return str(answer.get_json()["id"])

    def weekly(self) -> dict[str, Any]:
        """Have a task with a schedule that has run for weeks."""
        task_id = self.task(schedule=WEEKDAYS)
        self.sim.advance(timedelta(days=40))
        return {"taskId": task_id}

    def waiting(self) -> dict[str, Any]:
        """Have a task that waits for its event."""

        def ask(ctx: Context) -> object:
            return ctx.wait_for("approved")

        if "ask" not in self.sim.app.container.registry:
            self.sim.app.handler("ask")(ask)
        task_id = self.task("ask")
        self.sim.advance(timedelta(minutes=1))
        return {"taskId": task_id, "event": "approved"}

    def failed(self) -> dict[str, Any]:
        """Have an execution that has failed for good, and name it in place of the example's."""
        task_id = self.task(pull="gpu", retry={"maxRetries": 0})
        token = self._claim()
        error = {"type": "OSError", "message": "no"}
        path = f"/v1/tasks/{task_id}/executions/{token['executionId']}/fail"
        self.call("POST", path, {"leaseToken": token["leaseToken"], "error": error})
        return {"taskId": task_id, "executionId": token["executionId"]}

    def offered(self) -> dict[str, Any]:
        """Have work for the example's worker."""
        self.task("render", pull={"queue": "gpu", "skill": "cuda"})
        self.sim.advance(timedelta(minutes=1))
        return {"queue": "gpu"}

    def claimed(self) -> dict[str, Any]:
        """Have a claim, whose token takes the place of the example's."""
        return {"taskId": self.task("render", pull="gpu"), **self._claim()}

    def owner(self) -> dict[str, Any]:
        """Have somebody."""
        return {"owner": "ada"}

    def names(self) -> dict[str, Any]:
        """Have names for what is stored."""
        return {"calendarId": "days", "scriptName": "count"}

    def nothing(self) -> dict[str, Any]:
        """Have nothing."""
        return {}

    def _claim(self) -> dict[str, Any]:
        self.sim.advance(timedelta(minutes=1))
        (claim,) = self.call("POST", "/v1/queues/gpu/claim", {}).get_json()["claims"]
        return {"executionId": claim["executionId"], "leaseToken": claim["leaseToken"]}


NEEDS: dict[str, Callable[[World], dict[str, Any]]] = {
    "update_task": World.weekly,
    "trigger": World.weekly,
    "snooze": World.weekly,
    "backfill": World.weekly,
    "retry": World.failed,
    "send_event": World.waiting,
    "claim": World.offered,
    "heartbeat": World.claimed,
    "complete": World.claimed,
    "fail": World.claimed,
    "release": World.claimed,
    "put_person": World.owner,
    "put_budget": World.owner,
    "put_calendar": World.names,
    "put_script": World.names,
}
"""What has to be there before an example is sent."""


@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES])
def test_the_example_is_accepted(case: Case, call: Call, sim: Simulation) -> None:
    """It is sent as it is, but for ids, codes and tokens, which are those of this run; the answer is a success."""
    operation, name, path, method, kind, value = case
    names = NEEDS.get(operation, World.nothing)(World(call, sim))
    own: dict[str, Any] = {field: names[field] for field in ("executionId", "leaseToken", "code") if field in value}
    if operation == "create_feed":
        own["owner"] = "ada"  # an admin is nobody's owner
    for field, given in names.items():
        path = path.replace(f"{{{field}}}", given)
    answer = call(method, path, value | own, content_type=kind)
    assert answer.status_code in {200, 201, 202}, f"{name}: {answer.text}"
    if operation == "batch_create_tasks":
        assert [each["status"] for each in answer.get_json()["results"]] == [201] * len(value["tasks"])
    if operation == "claim":
        assert answer.get_json()["claims"]
