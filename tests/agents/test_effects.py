"""What the tools' annotations and receipts promise, tried with every tool."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.agents.conftest import KEYS, Caller
from tests.agents.test_tools import NEW

from cloudsched import Context, Fail
from cloudsched.agents.tools import TOOLS
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation


@dataclass(frozen=True)
class Case:
    """How a tool is called: with the arguments, on a task that a handler and some time have brought into a state."""

    arguments: dict[str, Any] = field(default_factory=dict)
    handler: str = "remind"
    runs_first: bool = False
    has_id: bool = True


CASES = {
    "find_tasks": Case({"words": "stretch"}, has_id=False),
    "read_task": Case(runs_first=True),
    "preview": Case({"when": "every day at 9:00"}, has_id=False),
    "list_handlers": Case(has_id=False),
    "read_log": Case(runs_first=True),
    "create_task": Case({**NEW, "title": "Another", "when": "in 2 hours"}, has_id=False),
    "change_task": Case({"when": "an hour later", "payload_merge": {"city": "Bern"}}),
    "move_next": Case({"to": "an hour later"}),
    "skip_next": Case(),
    "pause_task": Case({"until": "2 January"}),
    "resume_task": Case(),
    "cancel_task": Case(),
    "run_task": Case(),
    "snooze_task": Case(runs_first=True),
    "retry_run": Case(handler="fails", runs_first=True),
    "answer": Case({"event": "approval"}, handler="ask", runs_first=True),
    "i_am_in": Case({"zone": "Asia/Tokyo"}, has_id=False),
}


def look(sim: Simulation) -> dict[str, Any]:
    """Return all that is stored of tasks, of their runs and of the person, beside the heartbeat of the clock."""
    stored: dict[str, Any] = {}
    for task in sim.app.tasks(TaskQuery(), limit=100).items:
        wire = task.to_wire()
        definition = {name: wire.get(name) for name in ("title", "payload", "schedule", "status", "pausedUntil")}
        runs = [(each.id, str(each.status), str(each.content)) for each in sim.executions(task.id)]
        pending = sorted((each.execution_id, str(each.due_at)) for each in task.runs)
        stored[task.id] = (definition, runs, pending, [str(each.action) for each in task.history])
    person = PeopleWiring.of(sim.app.container).people.get("ada")
    return {**stored, "person": person.timezone}


def prepare(sim: Simulation, case: Case, **fields: Any) -> dict[str, Any]:
    """Return the arguments of a call, on a new task if it is about one."""
    sim.app.handler("fails", access="users", retry=False)(lambda: Fail("it always does"))

    @sim.app.handler("ask", access="users")
    def ask(ctx: Context) -> object:
        return ctx.wait_for("approval").payload

    payload = {"text": "stretch", "city": "Rome"} if case.handler == "remind" else {}
    task = sim.app.create(
        owner="ada",
        title="Stretch",
        handler=case.handler,
        payload=payload,
        schedule="every day at 9:00",
        timezone="Europe/Paris",
        **fields,
    )
    if case.runs_first:
        sim.advance(timedelta(hours=9))
    return {**({"id": task.id} if case.has_id else {}), **case.arguments}


@pytest.mark.parametrize("name", TOOLS)
def test_no_annotation_says_what_does_not_hold(name: str, sim: Simulation, ada: Caller) -> None:
    """A tool that reads changes nothing, one that repeats changes no more, one that adds leaves the rest as it was."""
    case = CASES[name]
    arguments = prepare(sim, case)
    if name == "resume_task":
        ada("pause_task", id=arguments["id"])
    caller = Caller(ada.url, KEYS["admin"]) if name == "read_log" else ada  # what handlers of servers log is theirs
    effects = TOOLS[name].effects
    before = look(sim)
    answer = caller(name, **arguments)
    assert isinstance(answer, dict), answer
    once = look(sim)
    assert (once == before) == effects.reads
    if effects.adds:
        kept = {task_id: each[0] for task_id, each in before.items() if task_id != "person"}
        assert kept.items() <= {task_id: each[0] for task_id, each in once.items() if task_id in kept}.items()
        assert "destructiveHint" in TOOLS[name].effects.to_annotations()
    if not effects.starts:
        sim.advance(timedelta(minutes=1))
        assert count_runs(sim) == sum(len(each[1]) for each in before.values() if isinstance(each, tuple))

    if effects.repeats:
        sim.advance(timedelta(minutes=1))
        once = look(sim)
        caller(name, **arguments)
        assert look(sim) == once


def count_runs(sim: Simulation) -> int:
    return sum(len(sim.executions(each.id)) for each in sim.app.tasks(TaskQuery(owner="ada"), limit=100).items)


@pytest.mark.parametrize("name", [name for name, each in TOOLS.items() if not each.effects.reads])
def test_every_change_is_answered_with_its_receipt(name: str, sim: Simulation, ada: Caller) -> None:
    """No instant is past, all are in the person's zone, and nothing is told without what stands in the way of it."""
    arguments = prepare(sim, CASES[name], delivery_channels=["EMAIL"])  # she has no address
    if name == "resume_task":
        ada("pause_task", id=arguments["id"])
    if name == "create_task":
        arguments["channels"] = ["EMAIL"]
    answer = ada(name, **arguments)
    assert answer["told"]
    if name == "i_am_in":
        return
    assert all(datetime.fromisoformat(each) > sim.now for each in answer["next"])
    assert all(each.endswith("+01:00") for each in answer["next"])
    assert {"scheduled", "due_by", "doubts"} <= answer.keys()
    assert answer["scheduled"] == (not answer["doubts"])
    assert answer["doubts"]
    assert (", but " in answer["told"]) == (name != "cancel_task")


OF_PROGRAMS = re.compile(
    r"Idempotency-Key|/v1/|@app\.|\b(PUT|POST|GET|PATCH)\b|[Tt]ry again|deliveryChannels|executionId"
)


@pytest.mark.parametrize("name", TOOLS)
def test_wrong_arguments_are_told_in_the_words_of_the_tool(name: str, sim: Simulation, ada: Caller) -> None:
    """All that a tool does not take is refused, whatever it is, and what it takes is named as it names it."""
    tool = TOOLS[name]
    assert tool.schema["additionalProperties"] is False
    arguments = prepare(sim, CASES[name])
    before = look(sim)
    wrong: list[dict[str, Any]] = [{**arguments, "colour": "red"}, {**arguments, "dry_run": True}]
    wrong += [{**arguments, each: {"a": object()}} for each in tool.arguments.model_fields if "payload" not in each]
    wrong += [
        {**arguments, each: text}
        for each in tool.arguments.model_fields
        for text in ("é\u0000 😀" * 100, "\ud83d")
        if each not in {"title", "key", "words"}
    ]
    for each in wrong:
        told = ada(name, **each)
        assert isinstance(told, str), (each, told)
        assert not OF_PROGRAMS.search(told), told
        (changed,) = {key for key, value in each.items() if arguments.get(key) != value} or {"colour"}
        assert changed in told or "find_tasks" in told or "awaited" in told or "may not" in told, (changed, told)
    assert look(sim) == before


def test_a_key_may_be_any_text(sim: Simulation, ada: Caller) -> None:
    """The same one creates no second task, and with other arguments it is refused."""
    made = [ada("create_task", **NEW, key="Grüße, 世界 \n") for _ in range(2)]
    assert made[0]["id"] == made[1]["id"]
    refused = ada("create_task", **{**NEW, "title": "Other"}, key="Grüße, 世界 \n")
    assert "'key'" in refused
    assert not OF_PROGRAMS.search(refused)
    assert ada("create_task", **NEW, key="other")["id"] != made[0]["id"]
    assert len(sim.app.tasks().items) == 2


def test_a_cursor_pages_through_all_tasks(sim: Simulation, ada: Caller) -> None:
    """Each is found once, with words as without."""
    for number in range(45):
        sim.app.create(owner="ada", title=f"Task {number}", handler="report", schedule="every day at 9:00")
    for words in ("", "task"):
        found: list[str] = []
        cursor = None
        while True:
            page = ada("find_tasks", words=words, cursor=cursor)
            found += [each["id"] for each in page["tasks"]]
            cursor = page["cursor"]
            if cursor is None:
                break
        assert len(found) == len(set(found)) == 45


def test_what_agents_read_is_said_of_every_argument() -> None:
    """A reader who knows nothing else has a sentence for each."""
    for name, each in TOOLS.items():
        assert len(each.description) > 40, name
        undescribed = [
            key for key, value in each.schema["properties"].items() if "description" not in json.dumps(value)
        ]
        assert not undescribed, name
