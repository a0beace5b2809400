"""Stored scripts: tasks run them by name, they call each other, and lend nobody rights."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.authorities import with_authority
from tests.instants import HOUR, MINUTE
from tests.scripts.script_harness import DAY, ToolApp, error_parts

from cloudsched import App, Execution, Schedule, Task
from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.authority import OWN_CODE
from cloudsched.errors import Forbidden, InvalidInput, NotFound
from cloudsched.scripts import called_scripts
from cloudsched.scripts.documents import ScriptTree, StoredScript
from cloudsched.scripts.stored_scripts import Scripts
from cloudsched.scripts.wiring import ScriptsWiring
from cloudsched.testing import START, Simulation

USERS, SERVERS = Requesters.USERS, Requesters.SERVERS


class ScriptStore:
    """An app with tools, and stored scripts in a simulation."""

    def __init__(self, sim: Simulation, tools: ToolApp) -> None:
        self.sim = sim
        self.did = tools.did

    @property
    def stored(self) -> Scripts:
        return ScriptsWiring.of(self.sim.app.container).scripts

    def put(
        self, name: str, source: str, owner: str = "ada", *, requesters: Requesters = SERVERS, **more: Any
    ) -> StoredScript:
        return self.stored.put(name, owner, source=source, by=with_authority(requesters), **more)

    def create(self, name: str, *, requesters: Requesters = SERVERS, **fields: Any) -> Task:
        soon = Schedule.once(self.sim.now + MINUTE)
        fields = {"owner": "ada", "title": "Mine", "schedule": soon, "script": {"name": name}, **fields}
        task, _ = self.sim.app.container.scheduler.create(TaskDraft.of(**fields), by=with_authority(requesters))
        return task

    def run(self, name: str, **fields: Any) -> Execution:
        """Run a script to its end; return its record."""
        task = self.create(name, **fields)
        self.sim.run_until_idle()
        (execution,) = self.sim.executions(task.id)
        return execution


@pytest.fixture
def is_replayed() -> bool:
    """Whether each script runs again at each of its durable points."""
    return False


@pytest.fixture
def scripts(app: App, *, is_replayed: bool) -> Iterator[ScriptStore]:
    tools = ToolApp(app)

    @app.handler("double", tool=True, access="users")
    def double(payload: dict[str, int]) -> int:
        tools.did.append(f"double {payload['n']}")
        return payload["n"] * 2

    with Simulation(app, replay=is_replayed) as sim:
        yield ScriptStore(sim, tools)


# ── Abuse ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["theirs", "../ada", "a.b", "", "__proto__", "x" * 65])
def test_a_script_reaches_only_scripts_of_its_owner(scripts: ScriptStore, name: str) -> None:
    """Another owner's, and what is no name, is refused: the call rejects, and says that there is none."""
    scripts.put("theirs", "return 'the secret'", owner="grace")
    key = scripts.stored.get("theirs", "grace").id
    for asked in (name, key):
        source = (
            f"try {{ return await scripts[{asked!r}]({{}}) }} catch (error) {{ return [error.name, error.status] }}"
        )
        scripts.put("main", source)
        assert scripts.run("main").content == ["InvalidInput", "REFUSED"]


def test_a_task_names_only_scripts_of_its_owner(scripts: ScriptStore) -> None:
    """Also if a server creates it; an edit that gives it another's is refused, too."""
    scripts.put("theirs", "return 1", owner="grace")
    with pytest.raises(InvalidInput, match="has stored no such script") as refused:
        scripts.create("theirs")
    assert refused.value.field == "script.name"
    scripts.put("mine", "return 1")
    task = scripts.create("mine")
    with pytest.raises(InvalidInput, match="has stored no such script"):
        scripts.sim.app.update(task.id, script={"name": "theirs"})


def test_recursion_ends(scripts: ScriptStore) -> None:
    """A script that calls itself without end is refused at the tenth call in a row, and each caller sees a failure."""
    scripts.put("loop", "return await scripts.loop({depth: input.depth + 1})")
    task = scripts.create("loop", payload={"depth": 0})
    scripts.sim.run_until_idle()
    assert error_parts(scripts.sim.executions(task.id)[0])[0] == "ScriptFailed"
    depths = [tree.task.parent.depth for tree in _descendants(scripts, task.id) if tree.task.parent]
    assert sorted(depths) == list(range(1, 11))


def _descendants(scripts: ScriptStore, task_id: str) -> list[Any]:
    found = list[Any]()
    waiting = [scripts.sim.app.tree(task_id)]
    while waiting:
        children = waiting.pop().children
        found += children
        waiting += children
    return found


def test_the_calls_below_one_run_are_bounded_together(scripts: ScriptStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts that each call several make a tree: it stops growing at the limit, and a later run has its own."""
    monkeypatch.setattr(called_scripts, "MAX_TREE_CALLS", 20)
    scripts.put("bomb", "await Promise.all([1, 2, 3].map(() => scripts.bomb({})))")
    task = scripts.create("bomb", schedule=Schedule.every(timedelta(days=30), start=START + MINUTE))
    scripts.sim.advance(timedelta(days=1))
    assert len(_descendants(scripts, task.id)) <= 20
    (tree,) = scripts.sim.app.container.store.records.list(ScriptTree, "ada", limit=10)
    assert tree.calls == 20
    (execution,) = scripts.sim.executions(task.id)
    assert execution.status == "FAILED"
    scripts.sim.advance(timedelta(days=30))
    assert len(scripts.sim.app.container.store.records.list(ScriptTree, "ada", limit=10)) == 2


@pytest.mark.parametrize("writer", [USERS, SERVERS])
@pytest.mark.parametrize("creator", [USERS, SERVERS])
def test_a_users_hand_in_a_script_limits_it_to_users_tools(
    scripts: ScriptStore, writer: Requesters, creator: Requesters
) -> None:
    """If a user wrote the script or the task, only tools for users are there: a server's task lends no rights."""
    source = "try { return await tools.lookup({id: 1}) } catch { return await tools.double({n: 1}) }"
    scripts.put("both", source, requesters=writer)
    content = scripts.run("both", requesters=creator).content
    assert (content == 2) == (USERS in {writer, creator})


def test_a_users_script_gets_no_rights_from_a_servers_script_that_it_calls(scripts: ScriptStore) -> None:
    """A server's script for the same owner, called by a user's, may call only what users may."""
    scripts.put("trusted", "return await tools.lookup({id: input.id})", requesters=SERVERS)
    scripts.put("users", "return await scripts.trusted({id: 5})", requesters=USERS)
    assert scripts.run("trusted", payload={"id": 1}).status == "SUCCEEDED"
    assert scripts.run("users", id="by-server").status == "FAILED"
    assert scripts.did == ["lookup 1"]


def test_a_server_s_script_is_no_user_s_to_replace_or_delete(scripts: ScriptStore) -> None:
    """What runs it would give the user's result for the server's; a server may take over a user's."""
    scripts.put("shared", "return await tools.lookup({id: 1})", requesters=SERVERS)
    with pytest.raises(Forbidden, match="A server stored this script"):
        scripts.put("shared", "return 1", requesters=USERS)
    assert scripts.run("shared").status == "SUCCEEDED"
    scripts.put("users", "return await tools.lookup({id: 1})", requesters=USERS)
    assert scripts.run("users").status == "FAILED"
    scripts.put("users", "return await tools.lookup({id: 1})", requesters=SERVERS)
    assert scripts.run("users").status == "SUCCEEDED"
    with pytest.raises(Forbidden):
        scripts.put("users", "return 1", requesters=USERS)


def test_lists_of_tools_narrow_each_other(scripts: ScriptStore) -> None:
    """A task may take tools away from a stored script, and give it none."""
    scripts.put("narrow", "return Object.keys(tools).length", tools=["double"])
    source = "try { return await tools.lookup({id: 1}) } catch { return await tools.double({n: 2}) }"
    scripts.put("narrow", source, tools=["double"])
    assert scripts.run("narrow").content == 4
    assert scripts.run("narrow", script={"name": "narrow", "tools": ["lookup"]}).status == "FAILED"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"source": "return (", "name": "a"}, "source"),
        ({"source": "x" * (64 * 1024 + 1), "name": "a"}, "source"),
        ({"source": "return 1", "name": "then"}, "name"),
        ({"source": "return 1", "name": "a/b"}, "name"),
        ({"source": "return 1", "name": "a", "tools": ["secret"]}, "tools.0"),
        ({"source": "return 1", "name": "a", "tools": ["double"] * 101}, "tools"),
        ({"source": "return 1", "name": "a", "description": "x" * 200_000}, "description"),
    ],
)
def test_a_wrong_script_is_refused(scripts: ScriptStore, fields: dict[str, Any], problem: str) -> None:
    """What does not compile, is too large or names what is not there is not stored; the error names the field."""
    with pytest.raises(InvalidInput) as refused:
        scripts.put(fields.pop("name"), **fields)
    assert refused.value.field == problem
    assert not scripts.stored.list("ada")


def test_an_owner_has_a_hundred_scripts(scripts: ScriptStore) -> None:
    """One more is refused; replacing one is not."""
    for number in range(100):
        scripts.put(f"s{number}", "return 1")
    with pytest.raises(InvalidInput, match="100 scripts"):
        scripts.put("more", "return 1")
    assert scripts.put("s1", "return 2").version == 2


def test_a_script_that_breaks_its_names_breaks_only_itself(scripts: ScriptStore) -> None:
    """Built-ins that a script replaces do not change which script it calls, nor its caller's rights."""
    scripts.put("one", "return 1")
    source = """
        const { stringify } = JSON;
        String.prototype.toJSON = () => "secret";
        Array.prototype.toJSON = () => ["secret"];
        Promise.prototype.then = () => undefined;
        const one = await scripts.one({});
        delete Array.prototype.toJSON;
        return [typeof scripts.then, one];
    """
    scripts.put("main", source)
    execution = scripts.run("main")
    assert execution.content == ["undefined", 1]
    assert scripts.did == []


@pytest.mark.parametrize("payload", ["1", "[1]", "'text'", "null", "9007199254740993n"])
def test_what_a_script_is_given_is_an_object(scripts: ScriptStore, payload: str) -> None:
    """Anything else rejects in the caller."""
    scripts.put("one", "return input")
    scripts.put("main", f"try {{ return await scripts.one({payload}) }} catch (error) {{ return error.name }}")
    assert scripts.run("main").content in {"InvalidInput", "TypeError"}


# ── Versions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_deleted_script_ends_what_is_under_way_and_no_more(scripts: ScriptStore) -> None:
    """Its run goes on to its end; the next one fails and says why; stored again, it runs."""
    scripts.put("daily", f"await sleep({DAY / 2}); return 1")
    task = scripts.create("daily", schedule=Schedule.every(timedelta(days=1), start=START + MINUTE))
    scripts.sim.advance(HOUR)
    scripts.stored.delete("daily", "ada", by=OWN_CODE)
    with pytest.raises(NotFound):
        scripts.stored.get("daily", "ada")
    scripts.sim.advance(timedelta(days=1, hours=1))
    succeeded, failed = scripts.sim.executions(task.id)
    assert (failed.status, succeeded.content) == ("FAILED", 1)
    assert failed.error
    assert "no stored script 'daily'" in failed.error.message
    scripts.put("daily", "return 2")
    scripts.sim.advance(timedelta(days=1))
    assert scripts.sim.executions(task.id)[-1].content == 2


def test_a_large_script_is_kept_for_what_is_under_way(scripts: ScriptStore) -> None:
    """One of 64 KiB is replayed after its stored form has changed."""
    tail = f"await sleep({DAY}); return 1 //"
    scripts.put("large", tail + "x" * (64 * 1024 - len(tail)))
    task = scripts.create("large")
    scripts.sim.advance(HOUR)
    scripts.put("large", "return 2")
    scripts.sim.run_until_idle()
    assert scripts.sim.executions(task.id)[0].content == 1


# ── Calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_replayed", [True])
def test_scripts_call_each_other_as_tasks(scripts: ScriptStore) -> None:
    """The caller is suspended until the other has ended days later; the call is a child of the same owner."""
    scripts.put("wait", f"await sleep({3 * DAY}); return (await tools.double({{n: input.n}})) + 1")
    scripts.put("main", "const [a, b] = await Promise.all([1, 2].map((n) => scripts.wait({n}))); return a * b")
    task = scripts.create("main")
    scripts.sim.advance(timedelta(days=1))
    run = scripts.sim.app.get(task.id).runs[0]
    assert run.suspension is not None
    assert [each.task.title for each in scripts.sim.app.tree(task.id).children] == ["scripts.wait, called by Mine"] * 2
    scripts.sim.run_until_idle(timedelta(days=366))
    (execution,) = scripts.sim.executions(task.id)
    assert execution.content == 15
    assert sorted(scripts.did) == ["double 1", "double 2"]
    assert [each.name for each in execution.steps if each.kind == "CALL"] == ["scripts.wait"] * 2
    assert {each.task.owner for each in _descendants(scripts, task.id)} == {"ada"}


def test_a_called_script_that_fails_rejects_in_its_caller(scripts: ScriptStore) -> None:
    """With how it ended; the caller may go on. A script of a task's own calls stored ones, too."""
    scripts.put("broken", "throw new Error('no line')")
    source = "try { await scripts.broken({}) } catch (error) { return [error.name, error.status, error.message] }"
    name, status, message = scripts.run("unused", script={"source": source}).content
    assert (name, status) == ("CallFailed", "FAILED")
    assert "no line" in message
