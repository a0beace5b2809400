"""Why a task runs when it does or does not run, as the API says it. `test_explanations.py` has every reason."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.web.conftest import Call

from cloudsched import App, Schedule, Settings, Task
from cloudsched.domain.explanation.findings import Reason
from cloudsched.engine.tasks.explanations import explain_task
from cloudsched.testing import START, Simulation

HOURLY = Schedule.every(timedelta(hours=1), start=START + timedelta(minutes=5), timezone="Europe/Paris")


@pytest.fixture
def app() -> App:
    """A handler that succeeds or fails."""
    app = App(Settings())

    @app.handler("work", retry=2)
    def work(payload: dict[str, Any]) -> None:
        if payload.get("fails"):
            raise ConnectionError("the printer is out of paper")

    return app


@pytest.fixture
def why(call: Call) -> Callable[..., dict[str, Any]]:
    """Return the explanation of a task, after checking what holds for all of them."""

    def ask(task: Task) -> dict[str, Any]:
        answer = call("GET", f"/v1/tasks/{task.id}/explain")
        assert answer.status_code == 200, answer.text
        content: dict[str, Any] = answer.get_json()
        assert content["summary"] == content["findings"][0]["sentence"]
        assert all(each["sentence"].endswith((".", "paper")) for each in content["findings"]), content
        return content

    return ask


def reasons(explanation: dict[str, Any]) -> list[str]:
    return [each["reason"] for each in explanation["findings"]]


def test_what_is_to_come(why: Callable[..., Any], create: Callable[..., Task], sim: Simulation) -> None:
    """The next occurrence in the task's zone; once it is due and its dispatch was lost, that; then the late sweep."""
    task = create(schedule=HOURLY)
    assert reasons(why(task)) == [Reason.SCHEDULED]
    sim.advance(timedelta(minutes=30))
    found = why(task)
    assert reasons(found) == [Reason.SCHEDULED, Reason.LAST_OUTCOME]
    assert "(Europe/Paris)" in found["summary"]
    assert "SUCCEEDED" in found["findings"][-1]["sentence"]
    sim.queue.purge()
    sim.clock.advance(timedelta(minutes=36))
    assert reasons(why(task))[0] == Reason.DUE
    sim.clock.advance(timedelta(minutes=10))
    assert Reason.SWEEP_IS_LATE in reasons(why(task))


def test_who_holds_the_lock(call: Call, create: Callable[..., Task], sim: Simulation, app: App) -> None:
    """An admin learns which task, a user only how many runs hold it; the holder runs, then it is late."""
    holder = create(title="First", lock_key="printer", pull="gpu")
    waiter = create(title="Second", lock_key="printer", schedule=Schedule.once(START + timedelta(minutes=2)))
    sim.advance(timedelta(minutes=1))
    (claim,) = call("POST", "/v1/queues/gpu/claim", {"worker": "w1"}).get_json()["claims"]
    assert claim["task"]["id"] == holder.id
    sim.advance(timedelta(minutes=1, seconds=30))
    found = {
        shown: explain_task(app.container.store, app.container.clock, app.get(waiter.id), shows_holders=shown)
        for shown in (True, False)
    }
    assert {each.findings[0].reason for each in found.values()} == {Reason.WAITING_FOR_LOCK}
    assert holder.id in found[True].summary
    assert holder.id not in str(found[False])
    assert reasons(call("GET", f"/v1/tasks/{holder.id}/explain").get_json())[0] == Reason.RUNNING
    sim.clock.advance(timedelta(hours=2))
    assert reasons(call("GET", f"/v1/tasks/{holder.id}/explain").get_json())[0] == Reason.LEASE_ENDED


def test_of_another_day(call: Call, create: Callable[..., Task], sim: Simulation) -> None:
    """The answer names the instant, and a text that is none is refused; without one, it is about the present."""
    task = create(schedule=HOURLY)
    sim.advance(timedelta(days=2))
    path = f"/v1/tasks/{task.id}/explain"
    at = (START + timedelta(days=1, minutes=5)).isoformat()
    answer = call("GET", path, query_string={"at": at})
    assert answer.status_code == 200, answer.text
    found = answer.get_json()
    assert (found["at"], found["findings"][0]["reason"]) == (at.replace("+00:00", "Z"), Reason.OUTCOME)
    assert "at" not in call("GET", path).get_json()
    for text in ("friday", "2027-01-01T00:00:00", "1"):
        assert call("GET", path, query_string={"at": text}).status_code == 400
