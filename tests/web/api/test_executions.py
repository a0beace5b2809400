"""Executions of all tasks over HTTP: failures first, and what cannot be asked."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.callers import DAY, SECOND
from tests.web.conftest import Call, fetch

from cloudsched import App, Context, RetryPolicy, Settings
from cloudsched.testing import Simulation

PAST = "2026-12-31T00:00:00Z"
LATER = {"rrule": "FREQ=YEARLY", "dtstart": "2027-06-01T09:00:00"}


app = App(Settings())
"""An app with a handler that works, one that fails and one that waits."""


app.handler("work", access="users")(lambda: {"secret": "result"})


@app.handler("fail", access="users", retry=0)
def fail() -> None:
    raise KeyError("x")


@app.handler("try", access="users", retry=RetryPolicy(base=DAY, cap=DAY))
def try_again() -> None:
    raise KeyError("x")


@app.handler("wait", access="users")
def wait(ctx: Context) -> None:
    ctx.wait_for("word", timeout=9 * DAY)


def run(call: Call, sim: Simulation, *handlers: str, **more: Any) -> None:
    """Run a task of each handler, one a minute."""
    for number, handler in enumerate(handlers):
        body = {"owner": "ada", "title": f"A {handler}", "handler": handler, "id": f"{handler}{number}"}
        assert call("POST", "/v1/tasks", {"schedule": LATER, **body, **more}).status_code in {200, 201}
        call("POST", f"/v1/tasks/{body['id']}/trigger")
        sim.advance(61 * SECOND)


def find(call: Call, query: str = "") -> list[tuple[str, str]]:
    """Return task and status of what is listed."""
    return [(one["taskId"], one["status"]) for one in fetch(call, f"/v1/executions?{query}")["executions"]]


def test_failures_come_first_then_what_is_open(call: Call, sim: Simulation) -> None:
    """However late the others ran; a filter by a status has only these."""
    run(call, sim, "fail", "work", "try", "wait", "work", schedule=LATER)
    found = find(call)
    assert found[0] == ("fail0", "FAILED")
    assert set(found[1:3]) == {("try2", "RETRYING"), ("wait3", "SUSPENDED")}
    assert found[3:] == [("work4", "SUCCEEDED"), ("work1", "SUCCEEDED")]
    assert find(call, "status=SUSPENDED") == [("wait3", "SUSPENDED")]
    assert find(call, "status=SUCCEEDED&handler=work&owner=ada&pageSize=1") == [("work4", "SUCCEEDED")]
    assert find(call, f"until={PAST}") == find(call, "from=2030-01-01T00:00:00Z") == []
    (failed,) = fetch(call, "/v1/executions?status=FAILED")["executions"]
    assert (failed["title"], failed["handler"], failed["error"]["type"]) == ("A fail", "fail", "KeyError")


def test_a_category_finds_executions(call: Call, sim: Simulation) -> None:
    """What has ended by what its task was then, what is open by what its task is now; failures first, as ever."""
    run(call, sim, "work", "fail", "try", category="REPORT", schedule=LATER)
    run(call, sim, "wait", schedule=LATER)
    assert find(call, "category=REPORT") == [("fail1", "FAILED"), ("try2", "RETRYING"), ("work0", "SUCCEEDED")]
    assert find(call, "category=REPORT&status=FAILED&owner=ada") == [("fail1", "FAILED")]
    assert find(call, "category=OTHERS") == [("wait0", "SUSPENDED")]
    assert find(call, "category=ANALYSIS") == find(call, f"category=REPORT&until={PAST}") == []
    for task in ("work0", "try2"):
        assert call("PATCH", f"/v1/tasks/{task}", {"category": "ANALYSIS"}).status_code == 200
    assert find(call, "category=REPORT") == [("fail1", "FAILED"), ("work0", "SUCCEEDED")]
    assert find(call, "category=ANALYSIS") == [("try2", "RETRYING")]
    (ended,) = fetch(call, "/v1/tasks/work0/executions")["executions"]
    assert ended["category"] == "REPORT"


def test_filters_go_together(call: Call, sim: Simulation) -> None:
    """An execution has all that is asked for, whatever index there is."""
    run(call, sim, "work", "fail", category="REPORT")
    assert find(call, "handler=fail&category=REPORT&outcome=FAILED&status=FAILED") == [("fail1", "FAILED")]
    assert find(call, "outcome=RAN&status=FAILED") == []


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("category=NEWS", "category"),
        ("status=ACTIVE", "status"),
        ("since=2027-01-01T00:00:00Z", "There are: calls, category, error, errorType, from, handler, label"),
        ("pageSize=0", "pageSize"),
        ("pageToken=0.x", "pageToken"),
    ],
)
def test_what_is_no_filter_is_refused(call: Call, query: str, says: str) -> None:
    """The answer says what there is."""
    answer = call("GET", f"/v1/executions?{query}")
    assert answer.status_code == 400
    assert says in answer.text
