"""Why a task ran, as the API says it. `test_explanations.py` has every reason."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tests.web.conftest import Call

from cloudsched import Schedule, Task
from cloudsched.domain.explanation.findings import Reason
from cloudsched.testing import START, Simulation

HOURLY = Schedule.every(timedelta(hours=1), start=START + timedelta(minutes=5), timezone="Europe/Paris")


def test_of_another_day(call: Call, create: Callable[..., Task], sim: Simulation) -> None:
    """The answer names the instant, and a text that is none is refused; without one, it is about the present."""
    task = create(handler="greet", payload={"name": "Ada"}, schedule=HOURLY)
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
