"""Tasks with a script: what it can do, that its calls are tasks, its replay, and how it fails or is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from tests.cases import try_each
from tests.instants import HOUR, MINUTE, SECOND
from tests.scripts.script_harness import (
    DAY,
    CompromisedInterpreter,
    ToolApp,
    error_parts,
    run,
    script_task,
    task_with_interpreter,
)

from cloudsched import App, Execution, RetryPolicy, Schedule, Settings, Task
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.settings import Sandbox
from cloudsched.domain.documents.journal import StepKind
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.ports.interpreter import Round, ScriptInput, ScriptRequest
from cloudsched.errors import InterpreterUnavailable, InvalidInput, LimitExceeded, ScriptFailed
from cloudsched.scripts.quickjs.interpreter import QuickJs
from cloudsched.scripts.wiring import ScriptsWiring
from cloudsched.testing import START, Simulation


@pytest.fixture
def tools(app: App) -> ToolApp:
    return ToolApp(app)


# ── What a script can do ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_script_is_given_its_payload_and_calls_tools(tools: ToolApp) -> None:
    """The call is a child task of the same owner."""
    source = """
        const found = await tools.lookup({id: input.id});
        return {found, title: task.title, id: task.id};
    """
    with script_task(tools, source, payload={"id": 7}, owner="grace") as (sim, task):
        assert task.handler == "cloudsched.script"
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
        assert execution.content == {"found": {"name": "customer 7", "owner": "grace"}, "title": "Mine", "id": task.id}
        (call,) = tools.app.tree(task.id).children
        assert (call.task.handler, call.task.owner, call.task.status) == ("lookup", "grace", "COMPLETED")


def test_a_script_cannot_name_whose_its_calls_are(tools: ToolApp) -> None:
    """Trusted code may; what a user wrote calls in the name of its task's owner, whatever it says."""
    source = """
        const tries = [() => tools.lookup({id: 1, owner: "eve"}), () => tools.lookup({id: 2}, {owner: "eve"})];
        for (const each of tries) try { await each() } catch (error) { log(error.message) }
        return (await tools.lookup({id: 3})).owner;
    """
    with script_task(tools, source, owner="grace") as (sim, task):
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
        assert execution.content == "grace"
        assert {each.owner for each in tools.app.tasks().items} == {"grace"}


def test_the_clock_of_a_script_is_that_at_which_it_went_on(tools: ToolApp) -> None:
    """Its task was paused while its call ended: a deadline that passed meanwhile has passed for the script, too."""
    with script_task(tools, "await tools.slow({minutes: 5}); return Date.now()") as (sim, task):
        sim.advance(MINUTE)
        tools.app.pause(task.id)
        sim.advance(3 * HOUR)
        tools.app.resume(task.id)
        resumed = sim.now
        sim.advance(MINUTE)
        (execution,) = sim.executions(task.id)
        assert execution.content >= resumed.timestamp() * 1000
        [call] = [each for each in execution.steps if each.kind is StepKind.CALL]
        assert call.finished_at is not None
        assert call.finished_at < resumed


QUARTER = f"""
    const seen = [];
    for (let month = 1; month <= 3; month++) {{
        await sleep(30 * {DAY});
        const {{name}} = await tools.lookup({{id: month}});
        log(`month ${{month}}`);
        seen.push([name, new Date().toISOString(), Math.random()]);
    }}
    return seen;
"""


def test_a_script_of_ninety_days_makes_each_call_once(tools: ToolApp) -> None:
    """It sleeps and calls across replays, its clock advances, and a replay at each durable point changes nothing."""
    once = run(tools, QUARTER)
    assert tools.did == ["lookup 1", "lookup 2", "lookup 3"]
    assert [each[:2] for each in once.content] == [
        ["customer 1", "2027-01-31T00:01:00.000Z"],
        ["customer 2", "2027-03-02T00:01:00.000Z"],
        ["customer 3", "2027-04-01T00:01:00.000Z"],
    ]
    assert [step.text for step in once.progress] == ["month 1", "month 2", "month 3"]
    assert len({each[2] for each in once.content}) == 3
    assert [step.kind for step in once.steps] == ["NOW", *["SLEEP", "CALL"] * 3]


def test_each_replay_is_the_same(tools: ToolApp) -> None:
    """Random numbers, the clock and the log do not depend on the number of replays."""
    source = """
        const all = [Math.random(), Date.now()];
        log("first");
        all.push(await tools.lookup({id: 1}), await tools.slow({minutes: 5}), Math.random(), Date.now());
        const again = await tools.lookup({id: 2});
        return JSON.stringify([all, again, Math.random(), Date.now(), input]);
    """
    fields = {"id": "fixed", "payload": {"a": [1, None]}}
    plain, replayed = (run(tools, source, replay=replay, **fields) for replay in (False, True))
    assert plain.content == replayed.content
    assert [step.text for step in replayed.progress] == ["first"]


def test_calls_of_one_round_run_in_parallel(tools: ToolApp) -> None:
    """Calls that are awaited together start together, without Promise.all and beside a sleep as well."""
    source = """
        const calls = [5, 3, 4].map(minutes => tools.slow({minutes}));
        return await Promise.all([...calls, sleep(60)]);
    """
    execution = run(tools, source)
    assert execution.content == [5, 3, 4, None]
    assert tools.did == ["slow 3", "slow 4", "slow 5"]
    assert execution.finished_at == START + 6 * MINUTE


def test_a_round_waits_for_all_of_it(tools: ToolApp) -> None:
    """Promise.race returns the first request of the round, once all of the round have finished."""
    source = "return await Promise.race([tools.slow({minutes: 9}), tools.slow({minutes: 3})])"
    execution = run(tools, source)
    assert execution.content == 9
    assert execution.finished_at == START + 10 * MINUTE


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize(
    ("payload", "why"),
    [('{id: "x"}', "payload.id"), ('"text"', "object"), ('{id: 1, text: "\\ud800"}', "surrogate"), ("[]", "object")],
)
def test_arguments_that_a_tool_does_not_accept_are_refused(
    tools: ToolApp, payload: str, why: str, *, replay: bool
) -> None:
    """No task is created; the script may catch the error, and every replay goes the same way."""
    source = f"""
        const refused = await tools.lookup({payload}).catch(error => error);
        await tools.lookup({{id: 2}});
        return [refused.name, refused.status, refused.message];
    """
    name, status, message = run(tools, source, replay=replay).content
    assert (name, status) == ("InvalidInput", "REFUSED")
    assert why in message
    assert tools.did == ["lookup 2"]


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize(("number", "is_exact"), [(2**53, True), (-(2**53), True), (2**53 + 1, False), (2**62, False)])
def test_no_number_changes_on_its_way_through_a_script(
    tools: ToolApp, number: int, *, is_exact: bool, replay: bool
) -> None:
    """A number that JavaScript cannot represent exactly is refused; the call itself is still made."""

    @tools.app.handler("count", tool=True)
    def count(payload: dict[str, int]) -> dict[str, int]:
        tools.did.append(f"count {payload['n']}")
        return {"n": number}

    source = "return await tools.count({n: 1}).catch(e => [e.name, e.status, e.message])"
    content = run(tools, source, replay=replay).content
    assert content == {"n": number} if is_exact else content[:2] == ["InvalidInput", "SUCCEEDED"]
    assert is_exact or "result.n: is an integer beyond 2^53" in content[2]
    assert tools.did == ["count 1"]


def test_the_log_is_bounded(tools: ToolApp) -> None:
    """The last 50 lines are kept, 200 characters of each."""
    source = "for (let i = 0; i < 60; i++) log('x'.repeat(300)); log({a: [1]}); log(undefined); log('\\ud800')"
    lines = [step.text for step in run(tools, source).progress]
    assert len(lines) == 50
    assert lines[0] == "x" * 200
    assert lines[-3:] == ['{"a":[1]}', "undefined", "\\ud800"]


# ── Which tools ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["secret", "nope", "cloudsched.script", "cloudsched.children"])
@pytest.mark.usefixtures("sim")
def test_a_name_that_is_no_tool_is_refused_at_creation(tools: ToolApp, name: str) -> None:
    """A script can name only handlers that are registered with `tool=True`."""
    with pytest.raises(InvalidInput) as refused:
        tools.app.create(owner="ada", title="T", script={"source": "return 1", "tools": ["lookup", name]})
    assert (refused.value.field, "broken, lookup, slow" in refused.value.hint) == ("script.tools.1", True)


def test_a_script_sees_its_tools_and_no_other_handler(tools: ToolApp) -> None:
    """It sees the tools that it names, or all tools if it names none."""
    assert run(tools, "return Object.keys(tools)").content == ["broken", "lookup", "slow"]
    assert run(tools, "return Object.keys(tools)", names=["lookup"]).content == ["lookup"]
    assert run(tools, "return Object.keys(tools)", names=[]).content == []
    kind, message = error_parts(run(tools, "await tools.slow({minutes: 1})", names=["lookup"]))
    assert kind == "ScriptFailed"
    assert 'no tool "slow" for this script. It may call: lookup' in message


@pytest.mark.parametrize("name", ["secret", "slow", "cloudsched.script", "", "\ud800", "x" * 1000])
def test_a_call_that_is_not_allowed_is_refused_at_run_time(tools: ToolApp, name: str) -> None:
    """The engine does not trust the interpreter: even a compromised one cannot call a handler that is not allowed."""
    interpreter = CompromisedInterpreter(Round((ScriptRequest(1, name, {}),)), Round(has_ended=True, result="done"))
    with task_with_interpreter(tools, interpreter) as (sim, task):
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
        assert (execution.content, tools.did) == ("done", [])
        assert [(step.kind, step.status, step.child) for step in execution.steps[1:]] == [("CALL", "FAILED", None)]
        assert tools.app.tree(task.id).children == ()
    (answer,) = interpreter.answers[1]
    assert (answer.failure["name"], answer.failure["status"]) == ("InvalidInput", "REFUSED")
    assert "there is no tool" in answer.failure["message"]


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
    sandbox = Sandbox(time=30 * SECOND, output=1024, calls=3)
    execution = run(tools, source, sandbox=sandbox, retry=RetryPolicy(max_retries=5))
    assert error_parts(execution)[0] == kind
    assert message in error_parts(execution)[1]
    assert len(execution.attempts) == 1


def test_a_script_that_exceeds_its_time_limit_is_not_retried(tools: ToolApp) -> None:
    """Its limit is named as any other is. It is short only once the script is compiled, which has to be in time."""
    with script_task(tools, "while (true);", retry=RetryPolicy(max_retries=5)) as (sim, task):
        short = QuickJs(memory=Sandbox().memory, time=0.1 * SECOND, output=Sandbox().output)
        ScriptsWiring.of(tools.app.container).replace(interpreter=short)
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
            sim.advance(HOUR)
            recorded = before.execution(task.id, "20270101T000000Z").steps[1]
        with Simulation(after, store=store, start=START + HOUR) as sim:
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
    monkeypatch.setattr("cloudsched.scripts.quickjs.interpreter.find_spec", lambda _: None)
    tools.app.create(owner="ada", handler="secret")
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
