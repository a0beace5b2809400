"""What a quick handler cannot run is refused by every way to a task, with its field and what to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from cloudsched import App, Context, Done, ExecutionStatus, Schedule, Settings, TaskDraft
from cloudsched.adapters.operation_counts import Counts
from cloudsched.domain.documents.policy import Overlap
from cloudsched.engine.handlers.declaration import Declaration
from cloudsched.engine.tasks.declared_tasks import Action
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from tests.web.conftest import Call

    from cloudsched.testing import Simulation

CONFLICTS = [
    ("lockKey", "door"),
    ("pull", "gpu"),
    ("overlap", "skip"),
    ("overlap", "buffer"),
    ("expectedDuration", "PT1M"),
]
NAMES = {"lockKey": "lock_key", "expectedDuration": "expected_duration"}
DAILY = Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T09:00:00")


@pytest.fixture
def app() -> App:
    app = App(Settings())

    @app.handler("blink", quick=True)
    def blink() -> None: ...

    @app.handler("slow")
    def slow() -> None: ...

    return app


def declare(app: App, handler: str = "blink", **more: Any) -> list[Any]:
    """Return what a declaration of a task changes, as one in a file or in code does."""
    return app.declared_tasks().compare([Declaration("t", handler, "every day at 9", "UTC", "ada", None, more)])


@pytest.mark.parametrize(("field", "value"), CONFLICTS)
def test_a_declaration_is_refused(sim: Simulation, field: str, value: str) -> None:
    """When it is compared, before anything is stored; as a new task, and as a change of one."""
    app = sim.app
    more: dict[str, Any] = {NAMES.get(field, field): value}
    with pytest.raises(InvalidInput) as refused:
        declare(app, **more)
    assert refused.value.field == field
    app.declared_tasks().apply(declare(app))
    with pytest.raises(InvalidInput, match=f"^{field}"):
        declare(app, **more)


def test_a_declaration_that_changes_to_a_quick_handler_is_applied(sim: Simulation) -> None:
    """Its task had the other handler's defaults, which a quick handler cannot have: it gets those of the new one."""
    app = sim.app
    app.declared_tasks().apply(declare(app, "slow"))
    assert app.get("t").overlap is not Overlap.ALLOW
    app.declared_tasks().apply(declare(app))
    task = app.get("t")
    assert (task.handler, task.overlap, task.expected_duration) == ("blink", Overlap.ALLOW, timedelta(seconds=10))
    assert declare(app) == []
    (change,) = declare(app, "slow")
    assert change.action is Action.UPDATE
    app.declared_tasks().apply([change])
    assert app.get("t").overlap is not Overlap.ALLOW


def test_a_declared_task_becomes_quick_with_its_handler(sim: Simulation) -> None:
    """Its code is what says how it runs: an occurrence is one commit from the next deployment on, and only once."""
    app, handlers = sim.app, sim.app.container.registry.registrations.handlers
    quick = handlers["blink"]
    handlers["blink"] = replace(quick, is_quick=False)
    app.declared_tasks().apply(declare(app))
    handlers["blink"] = quick
    (change,) = declare(app)
    assert change.detail == "overlap of its handler"
    app.declared_tasks().apply([change])
    assert declare(app) == []
    sim.advance(timedelta(days=1))  # the dispatch from before the edit is read, and dropped
    before = sim.counts.copy()
    sim.advance(timedelta(days=1))
    assert sim.counts.since(before) == Counts(reads=1, commits=1, writes=2, dispatches=1)


@pytest.mark.parametrize(("field", "value"), CONFLICTS)
def test_of_a_batch_only_that_task_is_refused(call: Call, sim: Simulation, field: str, value: str) -> None:
    """The others are created."""
    tasks: list[dict[str, Any]] = [{"id": "good", "owner": "ada", "handler": "blink", "title": "T"}]
    tasks.append({**tasks[0], "id": "bad", field: value})
    answer = call("POST", "/v1/tasks/batchCreate", {"tasks": tasks})
    assert answer.status_code == 200, answer.text
    good, bad = answer.get_json()["results"]
    assert good["task"]["overlap"] == "allow"
    assert (bad["problem"]["status"], bad["problem"]["field"]) == (400, field)
    assert [each.id for each in sim.app.tasks().items] == ["good"]


@pytest.mark.parametrize(("field", "value"), CONFLICTS)
def test_creations_edits_and_checks_are_refused(call: Call, sim: Simulation, field: str, value: str) -> None:
    """By POST, as a new task and as one that exists, by `validateOnly`, and by PATCH."""
    task = {"owner": "ada", "handler": "blink", "title": "T"}
    assert call("POST", "/v1/tasks", {**task, "id": "mine"}).status_code == 201
    answers = [
        call("POST", "/v1/tasks", {**task, field: value}),
        call("POST", "/v1/tasks?validateOnly=true", {**task, field: value}),
        call("POST", "/v1/tasks", {**task, "id": "mine", field: value}),
        call("PATCH", "/v1/tasks/mine", {field: value}),
    ]
    assert [(each.status_code, each.get_json()["field"]) for each in answers] == [(400, field)] * 4
    assert len(sim.app.tasks().items) == 1


@pytest.mark.parametrize(("field", "value"), CONFLICTS)
def test_a_follow_up_is_refused_and_its_occurrence_has_failed(sim: Simulation, field: str, value: str) -> None:
    """Of an ordinary handler and of a quick one; the record says which field."""
    after = TaskDraft.of(owner="ada", title="A", handler="blink", **{NAMES.get(field, field): value})

    @sim.app.handler("start")
    def start() -> Done:
        return Done(then=(after,))

    @sim.app.handler("start quick", quick=True)
    def start_quick(ctx: Context) -> Done:
        return Done(ctx.execution_id, then=(after,))

    for number, handler in enumerate(("start", "start quick")):
        sim.app.create(id=f"s{number}", owner="ada", handler=handler, schedule=Schedule.once(sim.now))
    sim.advance(timedelta(minutes=5))
    for number in range(2):
        (record,) = sim.executions(f"s{number}")
        assert (record.status, record.attempt_count) == (ExecutionStatus.FAILED, 1)
        assert record.error is not None
        assert f"then.0.{field}" in record.error.message
    assert len(sim.app.tasks().items) == 2
