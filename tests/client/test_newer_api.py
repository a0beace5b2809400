"""What the client makes of an API that is newer than it: it reads what it knows and keeps the rest."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.authorities import A_USER

from cloudsched.client.views import ExplanationView, PersonView, TaskView, reader
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.documents.responses import Person, Task
from cloudsched.domain.explanation.findings import Explanation
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.engine.tasks.explanations import explain_task
from cloudsched.errors import Unavailable
from cloudsched.web.api.responses import show_person, task_to_json

if TYPE_CHECKING:
    from cloudsched import App
    from cloudsched.testing import Simulation


@pytest.fixture
def content(sim: Simulation) -> dict[str, Any]:
    """Return a task as the API sends it."""
    task = sim.app.create(handler="greet", payload={"name": "Ada"}, owner="ada", schedule="every day at 9", title="T")
    return task_to_json(task)


def test_the_client_reads_by_the_models_that_the_api_answers_with(app: App, content: dict[str, Any]) -> None:
    """Each field of a task, a person and an explanation is written once, and what is read is what was sent."""
    assert issubclass(TaskView, Task)
    assert issubclass(PersonView, Person)
    assert issubclass(ExplanationView, Explanation)
    task = TaskView.from_response(content)
    assert task.to_wire() == content
    assert isinstance(task.schedule, Schedule)
    spec = PersonSpec.model_validate({"email": {"address": "ada@example.com"}, "devices": [{"token": "t"}]})
    sent = show_person(app.container.people.put("ada", spec, by=A_USER).person).to_wire()
    assert reader(PersonView)(sent).to_wire() == sent


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("category", "GARDENING"),
        ("deliveryChannels", ["PIGEON"]),
        ("schedule", {"at": "when the moon is full"}),
        ("retry", {"maxRetries": "endless"}),
        ("parent", 7),
    ],
)
def test_a_value_that_only_a_newer_api_knows_is_kept(content: dict[str, Any], field: str, value: object) -> None:
    """A list of tasks is not lost because one of them has a category that this client does not know."""
    task = TaskView.from_response({**content, field: value})
    assert task.model_dump(by_alias=True, warnings=False)[field] == value
    assert task.title == "T"


def test_fields_that_only_a_newer_api_has_are_kept_at_any_depth(sim: Simulation, content: dict[str, Any]) -> None:
    """In a task, in its schedule, and in an execution, which is the stored document itself."""
    content["schedule"]["leapSeconds"] = "smear"
    task = TaskView.from_response({**content, "mood": "fine"})
    assert (task.model_extra, task.schedule.model_extra) == ({"mood": "fine"}, {"leapSeconds": "smear"})
    sim.advance(timedelta(days=1))
    sent = next(iter(sim.executions(task.id))).to_wire()
    sent["attempts"][0]["host"] = "box"
    execution = reader(Execution)({**sent, "region": "moon"})
    assert (execution.model_extra, execution.attempts[0].model_extra) == ({"region": "moon"}, {"host": "box"})


@pytest.mark.parametrize(
    ("field", "value"), [("status", "DREAMING"), ("id", None), ("priority", "ULTRA"), ("revision", {})]
)
def test_what_is_no_task_is_refused(content: dict[str, Any], field: str, value: object) -> None:
    """What says which task it is and how it is getting on must be readable; otherwise it may be a proxy's answer."""
    assert TaskView.from_response(content).priority is Priority.NORMAL
    with pytest.raises(Unavailable, match="it is not a task"):
        TaskView.from_response({**content, field: value})


def test_a_reason_that_only_a_newer_api_knows_is_kept(app: App, content: dict[str, Any]) -> None:
    """Its sentence says what there is to say."""
    parts = app.container
    sent = explain_task(parts.store, parts.clock, app.get(content["id"]), shows_holders=True).to_wire()
    sent["findings"][0]["reason"] = "eclipse"
    explanation = reader(ExplanationView)(sent)
    assert (explanation.findings[0].reason, explanation.summary) == ("eclipse", sent["summary"])
