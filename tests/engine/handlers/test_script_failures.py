"""Scripts that fail, that are edited during their execution, and that are refused at creation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from tests.cases import try_each
from tests.engine.handlers.script_harness import (
    CompromisedInterpreter,
    ToolApp,
    error_parts,
    run,
    script_task,
    task_with_interpreter,
)

from cloudsched import App, Execution, RetryPolicy, Schedule, Settings, Task
from cloudsched.adapters.quickjs.interpreter import QuickJs
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.settings import Sandbox
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.ports.interpreter import Round, ScriptInput, ScriptRequest
from cloudsched.errors import InterpreterUnavailable, InvalidInput, LimitExceeded, ScriptFailed
from cloudsched.testing import START, Simulation


@pytest.fixture
def tools(app: App) -> ToolApp:
    return ToolApp(app)


# ── How it fails ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("\nthrow new RangeError('too late')", "ScriptFailed", "The script failed in line 2: RangeError: too late"),
        ("await tools.broken()", "ScriptFailed", "ConnectionError: no line"),
        ("return 'x'.repeat(2000)", "LimitExceeded", "1 KiB"),
        ("for (let i = 0; i < 4; i++) await tools.lookup({id: i})", "LimitExceeded", "more than 3 calls"),
        ("for (let i = 0; i < 4; i++) await sleep(1)", "LimitExceeded", "more than 3 calls and sleeps"),
    ],
)
def test_a_script_that_fails_is_not_retried(tools: ToolApp, source: str, kind: str, message: str) -> None:
    """Every attempt would fail in the same way; an exceeded limit is named."""
    sandbox = Sandbox(time=timedelta(seconds=30), output=1024, calls=3)
    execution = run(tools, source, sandbox=sandbox, retry=RetryPolicy(max_retries=5))
    assert error_parts(execution)[0] == kind
    assert message in error_parts(execution)[1]
    assert len(execution.attempts) == 1


def test_a_script_that_exceeds_its_time_limit_is_not_retried(tools: ToolApp) -> None:
    """Its limit is named as any other is. It is short only once the script is compiled, which has to be in time."""
    with script_task(tools, "while (true);", retry=RetryPolicy(max_retries=5)) as (sim, task):
        short = QuickJs(memory=Sandbox().memory, time=timedelta(seconds=0.1), output=Sandbox().output)
        tools.app.container.replace(interpreter=short)
        sim.run_until_idle(timedelta(days=366))
        (execution,) = sim.executions(task.id)
    kind, message = error_parts(execution)
    assert (kind, "0.1 s" in message, len(execution.attempts)) == ("LimitExceeded", True, 1)


@pytest.mark.parametrize(
    "result", ["'\\ud800'", "JSON.parse('['.repeat(20) + ']'.repeat(20))", "{'': 1}", "{['__a__']: 1}"]
)
def test_a_result_that_cannot_be_stored_fails_the_execution(tools: ToolApp, result: str) -> None:
    """It fails at once, as for any handler."""
    execution = run(tools, f"return {result}", retry=RetryPolicy(max_retries=5))
    assert error_parts(execution)[0] == "InvalidInput"
    assert len(execution.attempts) == 1


def test_a_crash_of_the_interpreter_costs_an_attempt(tools: ToolApp) -> None:
    """The machine may be the cause, so the retry policy of the task applies."""
    dead = InterpreterUnavailable("The interpreter", "died")
    with task_with_interpreter(tools, CompromisedInterpreter(dead), retry=RetryPolicy(max_retries=2)) as (sim, task):
        sim.run_until_idle(timedelta(days=366))
        (execution,) = sim.executions(task.id)
    assert [each.error.type for each in execution.attempts if each.error] == ["InterpreterUnavailable"] * 3


STACKS: dict[str, Round | Exception] = {
    "unstorable": Round(has_ended=True, result="\ud800"),
    "failed": ScriptFailed("no such thing", "TypeError", 3),
    "limited": LimitExceeded("The script runs for more than 5 s."),
    "dead": InterpreterUnavailable("The interpreter", "died"),
    "broken": KeyError("a fault of ours"),
}


@pytest.mark.parametrize("what", STACKS)
def test_no_failure_shows_the_service_s_code_to_the_author(tools: ToolApp, what: str) -> None:
    """The author, who is not trusted, sees the reason and the line of the script, but no files of the service."""
    with task_with_interpreter(tools, CompromisedInterpreter(STACKS[what]), retry=RetryPolicy(max_retries=1)) as (
        sim,
        task,
    ):
        sim.run_until_idle(timedelta(days=366))
        (execution,) = sim.executions(task.id)
    errors = [execution.error, *(each.error for each in execution.attempts)]
    assert [error and error.traceback for error in errors] == [None] * len(errors)
    assert all(error and error.message and ".py" not in error.message for error in errors)


def fix_and_retry(tools: ToolApp, sim: Simulation, task: Task, source: str) -> Execution:
    """Give a failed task another script, retry it, and return the execution."""
    tools.app.update(task.id, script={"source": source})
    tools.app.retry(task.id)
    sim.run_until_idle(timedelta(days=366))
    (execution,) = sim.executions(task.id)
    return execution


@pytest.mark.parametrize("catch", ["", "catch (e) { await tools.lookup({id: 9}); throw e }"])
def test_the_call_that_made_a_script_fail_is_made_again(tools: ToolApp, catch: str) -> None:
    """The fixed script may call another tool; calls made because of the failure are dropped with it."""
    broken = f"try {{ await tools.broken() }} {catch or 'finally {}'}"
    source = f"await tools.lookup({{id: 1}});\n{broken}\nreturn 'done'"
    with script_task(tools, source) as (sim, task):
        sim.run_until_idle(timedelta(days=366))
        assert "CallFailed" in error_parts(sim.executions(task.id)[0])[1]
        tools.did.clear()
        execution = fix_and_retry(tools, sim, task, source.replace("broken()", "lookup({id: 2})"))
    assert (execution.content, tools.did) == ("done", ["lookup 2"])


class RepeatingInterpreter(CompromisedInterpreter):
    """An interpreter that requests refused calls, regardless of its list of tools."""

    @contextmanager
    def run(self, _: ScriptInput) -> Iterator[CompromisedInterpreter]:
        self.rest = list(self.rounds)
        yield self


def test_a_refused_call_is_checked_again_on_a_retry(tools: ToolApp) -> None:
    """A retry does not bypass the list of tools, even if the interpreter ignores it."""
    asks = (ScriptRequest(1, "secret", {}), ScriptRequest(2, "lookup", {"id": 1}))
    text = "tool: there is no tool 'secret' for this script (It is no longer a tool, or never was one.)"
    thrown = Round(has_ended=True, failure=ScriptFailed(text, "InvalidInput"))
    with task_with_interpreter(tools, RepeatingInterpreter(Round(asks), thrown)) as (sim, task):
        sim.run_until_idle(timedelta(days=366))
        assert "no tool 'secret'" in error_parts(sim.executions(task.id)[0])[1]
        failed_by = sim.executions(task.id)[0].failure_cause
        assert failed_by is not None
        assert (failed_by.steps, failed_by.position) == ((2,), 3)
        tools.app.retry(task.id)
        sim.run_until_idle(timedelta(days=366))
        assert "no tool 'secret'" in error_parts(sim.executions(task.id)[0])[1]
    assert tools.did == ["lookup 1"]


BEFORE = "await sleep(86400); await tools.lookup({id: 1}); return before"
EDITS = [
    ("await sleep(86400); await tools.lookup({id: 2}); return 'after'", "after"),
    ("await tools.lookup({id: 2}); await sleep(86400); return 'after'", "JournalMismatch"),
    ("return 'after'", "JournalMismatch"),
]


@pytest.mark.parametrize(("after", "outcome"), EDITS)
def test_a_failed_script_continues_after_an_edit_that_keeps_its_past(tools: ToolApp, after: str, outcome: str) -> None:
    """A retry replays the recorded steps against the new source, as with changed code of any handler."""
    with script_task(tools, BEFORE) as (sim, task):
        sim.run_until_idle(timedelta(days=366))
        assert "before" in error_parts(sim.executions(task.id)[0])[1]
        execution = fix_and_retry(tools, sim, task, after)
        assert outcome == (execution.content or error_parts(execution)[0])
        assert tools.did == ["lookup 1"]


class Known(BaseModel):
    """The tool's arguments at first."""

    id: int


class Stricter(Known):
    """The tool's arguments after a deployment."""

    country: str


def find(query: Known) -> int:
    return query.id


def find_stricter(query: Stricter) -> int:
    return query.id


@pytest.mark.parametrize("given", ["{id: 1}", "{id: 'x'}", "7"])
@pytest.mark.parametrize(("later", "tool"), [(find_stricter, True), (find, False)])
def test_a_recorded_call_or_refusal_survives_a_deployment(given: str, later: Callable[..., int], *, tool: bool) -> None:
    """The recorded outcome stays even if a deployment changes the tool; later calls are checked by the new tool."""
    source = f"""
        const ask = () => tools.find({given}).catch(error => [error.status, error.message]);
        const first = await ask();
        await sleep(86400);
        return [first, await ask()];
    """
    with closing(SqliteStore()) as store:
        before, after = App(Settings()), App(Settings())
        before.handler("find", tool=True)(find)
        after.handler("find", tool=tool)(later)
        with Simulation(before, store=store) as sim:
            task = before.create(owner="ada", title="T", script={"source": source}, schedule=Schedule.once(START))
            sim.advance(timedelta(hours=1))
            recorded = before.execution(task.id, "20270101T000000Z").steps[1]
        with Simulation(after, store=store, start=START + timedelta(hours=1)) as sim:
            sim.run_until_idle(timedelta(days=366))
            (execution,) = sim.executions(task.id)
    first, second = execution.content
    assert first == 1 if recorded.child else first[0] == "REFUSED"
    assert second[0] == "REFUSED"
    assert ("no tool" in second[1]) != tool


# ── What is refused at once ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_script_that_does_not_compile_is_refused_and_not_stored(tools: ToolApp) -> None:
    """Creation and edit are refused with line and message; an existing task stays as it is."""
    with script_task(tools, "return 1") as (sim, task):
        before = sim.counts.commits
        script = {"source": "return 1;\nreturn (;"}
        with pytest.raises(InvalidInput, match="line 2: ") as created:
            tools.app.create(owner="ada", title="T", script=script)
        with pytest.raises(InvalidInput, match="line 2: ") as edited:
            tools.app.update(task.id, script=script)
        assert created.value.field == edited.value.field == "script.source"
        assert sim.counts.commits == before


@pytest.mark.usefixtures("sim")
def test_only_scripts_are_refused_without_the_package(tools: ToolApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint has the command that installs the package."""
    monkeypatch.setattr("cloudsched.adapters.quickjs.interpreter.find_spec", lambda _: None)
    tools.app.create(owner="ada", title="T", handler="secret")
    with pytest.raises(InvalidInput) as refused:
        tools.app.create(owner="ada", title="T", script={"source": "return 1"})
    assert refused.value.field == "script"
    assert "cloudsched with its extra sandbox" in refused.value.hint


@try_each(
    "fields, field",
    [
        ({"handler": "secret", "script": {"source": "return 1"}}, "script"),
        ({"children": [{"handler": "secret"}], "script": {"source": "return 1"}}, "script"),
        ({"pull": {"queue": "gpu"}, "script": {"source": "return 1"}}, "pull"),
        ({"handler": "cloudsched.script"}, "handler"),
        ({"script": {"source": ""}}, "script.source"),
        ({"script": {"source": "x" * 70_000}}, "script.source"),
        ({"script": {"source": "é" * 40_000}}, "script.source"),
        ({"script": {}}, "handler"),
        ({"children": [{"handler": "secret"}, {"handler": "cloudsched.script"}]}, "children.1.handler"),
        ({"script": {"source": "return 1", "more": 1}}, "script.more"),
        ({"script": {"source": "return 1"}, "payload": {"a": float("nan")}}, "payload.a"),
        ({"script": {"source": "return 1"}, "payload": {"a": [1, {"id": 2**53 + 1}]}}, "payload.a.1.id"),
    ],
)
@pytest.mark.usefixtures("sim")
def test_an_invalid_script_draft_is_refused(tools: ToolApp, fields: dict[str, Any], field: str) -> None:
    """A task has exactly one of handler, children and script, and the script has a limited size."""
    with pytest.raises(InvalidInput) as refused:
        tools.app.put(TaskDraft.from_wire({"owner": "ada", "title": "T", **fields}))
    assert refused.value.field == field
