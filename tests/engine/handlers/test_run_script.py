"""Tasks with a script: what it can do, that its calls are tasks, and that it is replayed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.engine.handlers.script_harness import (
    DAY,
    CompromisedInterpreter,
    ToolApp,
    error_parts,
    run,
    script_task,
    task_with_interpreter,
)

from cloudsched import App
from cloudsched.domain.documents.journal import StepKind
from cloudsched.engine.ports.interpreter import Round, ScriptRequest
from cloudsched.errors import InvalidInput
from cloudsched.testing import START


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
        assert execution.content == {
            "found": {"name": "customer 7", "owner": "grace"},
            "title": "Mine",
            "id": task.id,
        }
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
        sim.advance(timedelta(minutes=1))
        tools.app.pause(task.id)
        sim.advance(timedelta(hours=3))
        tools.app.resume(task.id)
        resumed = sim.now
        sim.advance(timedelta(minutes=1))
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
    assert execution.finished_at == START + timedelta(minutes=6)


def test_a_round_waits_for_all_of_it(tools: ToolApp) -> None:
    """Promise.race returns the first request of the round, once all of the round have finished."""
    source = "return await Promise.race([tools.slow({minutes: 9}), tools.slow({minutes: 3})])"
    execution = run(tools, source)
    assert execution.content == 9
    assert execution.finished_at == START + timedelta(minutes=10)


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
