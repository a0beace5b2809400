"""The result and the error of a task's last execution, in the answer that has the task."""

from __future__ import annotations

from typing import Any

from tests.web.callers import DAY, HOUR
from tests.web.conftest import Call, fetch

from cloudsched import App, Settings
from cloudsched.client.views import TaskView
from cloudsched.testing import Simulation

HOURLY = {"rrule": "FREQ=HOURLY", "dtstart": "2027-01-01T01:00:00"}
RESULT = {"rows": [1, None, {"a": None}], "text": "ä"}


app = App(Settings())
"""An app whose handler fails while its task's payload says so."""


@app.handler("work", access="users", retry=0)
def work(payload: dict[str, Any]) -> dict[str, Any]:
    if payload:
        raise KeyError("x")
    return RESULT


def make(call: Call) -> None:
    body = {"id": "t", "owner": "ada", "handler": "work", "schedule": HOURLY}
    assert call("POST", "/v1/tasks", body).status_code == 201


def read_reads(sim: Simulation, call: Call, **headers: str) -> tuple[int, Any]:
    """Return the reads that a GET of the task costs, and its answer."""
    before = sim.counts.copy()
    answer = call("GET", "/v1/tasks/t", headers=headers)
    return sim.counts.since(before).reads, answer


def test_a_task_shows_what_its_last_execution_shows(call: Call, sim: Simulation) -> None:
    """One request says how it went. A later run takes the place of an earlier one's result and error."""
    make(call)
    assert fetch(call, "/v1/tasks/t").keys().isdisjoint({"lastResult", "lastError"})
    for payload in ({}, {"fail": True}, {}):
        call("PATCH", "/v1/tasks/t", {"payload": None})
        call("PATCH", "/v1/tasks/t", {"payload": payload})
        sim.advance(HOUR)
        task = fetch(call, "/v1/tasks/t")
        execution = fetch(call, f"/v1/tasks/t/executions/{task['lastExecutionId']}")
        assert [task.get("lastResult"), task.get("lastError")] == [execution.get("content"), execution.get("error")]
        view = TaskView.from_response(task)
        assert view.last_result == execution.get("content")
        assert (view.last_error and view.last_error.type) == (execution.get("error") or {}).get("type")
        assert ("lastError" in task, "lastResult" in task) == (bool(payload), not payload)


def test_it_costs_a_read_only_where_there_is_something_to_read(call: Call, sim: Simulation) -> None:
    """None before the first run, and none for a caller who has the task already. Each result has a tag of its own.

    Only the answer for one task has them: a page of tasks costs one read a task, and changes show what has changed.
    """
    make(call)
    before, _ = read_reads(sim, call)
    sim.advance(HOUR)
    after, answer = read_reads(sim, call)
    known, unchanged = read_reads(sim, call, **{"If-None-Match": answer.headers["ETag"]})
    assert (after - before, known - before, unchanged.status_code) == (1, 0, 304)
    tags = {answer.headers["ETag"]}
    for _ in range(2):
        sim.advance(HOUR)
        tags.add(call("GET", "/v1/tasks/t").headers["ETag"])
    assert len(tags) == 3
    (listed,) = fetch(call, "/v1/tasks?owner=ada")["tasks"]
    for shown in (listed, call("PATCH", "/v1/tasks/t", {"title": "U"}).json):
        assert "lastResult" not in shown


def test_a_record_that_is_gone_leaves_the_task_readable(call: Call, sim: Simulation) -> None:
    """Records may be kept for less time than their task."""
    make(call)
    call("PATCH", "/v1/tasks/t", {"executionRetention": 86400})
    sim.advance(HOUR)
    call("POST", "/v1/tasks/t/pause")
    sim.advance(9 * DAY)
    sim.app.sweep()
    task = call("GET", "/v1/tasks/t")
    assert call("GET", f"/v1/tasks/t/executions/{task.json['lastExecutionId']}").status_code == 404
    assert task.status_code == 200
    assert "lastResult" not in task.json
