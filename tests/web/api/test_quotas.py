"""Quotas over the API: repeated creations are answered as the first was, and what trees make counts, and waits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.web.callers import DAY, PEOPLE, SECOND, RoleHarness, make_keys

from cloudsched import App, Context, Settings
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.commit import VersionedTask
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.testing import Simulation

MINUTE, DAYS = timedelta(minutes=1), 40 * DAY
LIMIT = 5


@pytest.fixture
def task_counts() -> list[int]:
    """The numbers of ada's unfinished tasks, as each run of ``work`` found them."""
    return []


@pytest.fixture
def app(task_counts: list[int]) -> App:
    """Work that takes a minute, and handlers that call it in every possible way."""
    app = App(Settings())

    @app.handler("work", access="users", tool=True)
    def work(ctx: Context) -> str:
        task_counts.append(len(list_unfinished(app)))
        ctx.sleep(MINUTE)
        return "done"

    @app.handler("gather", access="users")
    def gather(ctx: Context, payload: dict[str, int]) -> int:
        return len(ctx.gather(*(ctx.call("work") for _ in range(payload["count"]))))

    @app.handler("forget", access="users")
    def forget(ctx: Context, payload: dict[str, int]) -> str:
        for _ in range(payload["count"]):
            ctx.call("work")
        return "forgotten"

    @app.handler("fail", access="users", retry=False)
    def fail(ctx: Context, payload: dict[str, int]) -> None:
        forget(ctx, payload)
        raise ValueError("broken")

    @app.handler("go_on", access="users")
    def go_on(ctx: Context, payload: dict[str, int]) -> str:
        forget(ctx, payload)
        ctx.step("step", lambda: None)
        ctx.sleep(30 * DAY)
        return "slept"

    @app.handler("break", access="users", retry=False)
    def break_down(ctx: Context) -> None:
        ctx.step("try", lambda: None)
        raise ValueError("broken")

    @app.handler("nest", access="users")
    def nest(ctx: Context, payload: dict[str, int]) -> str:
        depth = payload["depth"]
        return str((ctx.call("nest", {"depth": depth - 1}) if depth else ctx.call("work")).result())

    return app


@pytest.fixture
def open_limited_api(simulate: Callable[..., Simulation]) -> Callable[..., RoleHarness]:
    """Open an API with these limits for ada, who is a user, and a server."""

    def open_api(**limits: int) -> RoleHarness:
        keys, access = make_keys(PEOPLE, **limits)
        return RoleHarness(simulate(access=access), keys)

    return open_api


def list_unfinished(app: App) -> list[Any]:
    """Return ada's unfinished tasks."""
    statuses = (TaskStatus.ACTIVE, TaskStatus.PAUSED)
    return [each for status in statuses for each in app.tasks(TaskQuery("ada", status), limit=500).items]


def create(roles: RoleHarness, who: str = "ada", **fields: Any) -> str:
    """Create a task of ada's that is due at once, and return its id."""
    due = {"schedule": {"at": roles.sim.now.isoformat()}}
    return str(roles.create_task(who, {"owner": "ada", **due, **fields}).json["id"])


# ── Repeated creations ───────────────────────────────────────────────────────────────────────────────────────────────

NEW: dict[str, Any] = {"handler": "work", "schedule": {"at": "2027-06-01T09:00:00Z"}}


@pytest.mark.parametrize("limits", [{"max_active_tasks": 1}, {"max_creations": 1}], ids=str)
@pytest.mark.parametrize("named", ["key", "id"])
def test_a_repeated_creation_is_answered_as_the_first_was(
    open_limited_api: Callable[..., RoleHarness], limits: dict[str, int], named: str
) -> None:
    """When the quota is full, too: it creates nothing. A new task, or the key for another one, is refused."""
    roles = open_limited_api(**limits)
    body, headers = (NEW, {"Idempotency-Key": "k"}) if named == "key" else ({**NEW, "id": "mine"}, {})
    first = roles.create_task("ada", body, **headers)
    again = roles.create_task("ada", body, **headers)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json == first.json
    assert roles.create_task("ada", NEW).status_code == 429
    if named == "key":
        other = roles.create_task("ada", {**NEW, "title": "Other"}, **headers)
        assert (other.status_code, other.json["type"]) != (429, first.json.get("type"))


def test_a_repeated_batch_is_answered_as_the_first_was(open_limited_api: Callable[..., RoleHarness]) -> None:
    """The first tasks use up the quota; a repetition returns them, and creates more only if it has room."""
    roles = open_limited_api(max_active_tasks=LIMIT)
    body = {"tasks": [{**NEW, "title": str(number)} for number in range(20)]}

    def send() -> list[Any]:
        answer = roles.ask("ada", "POST", "/v1/tasks/batchCreate", body, **{"Idempotency-Key": "b"})
        return [each["status"] for each in answer.json["results"]]

    assert send() == [201] * LIMIT + [429] * (20 - LIMIT)
    assert send() == [200] * LIMIT + [429] * (20 - LIMIT)
    ended = list_unfinished(roles.sim.app)[0]
    roles.sim.app.cancel(ended.id)
    assert send() == [200] * LIMIT + [201] + [429] * (19 - LIMIT)


# ── Revivals ─────────────────────────────────────────────────────────────────────────────────────────────────────────

LATER: dict[str, Any] = {"schedule": {"at": "2027-07-01T09:00:00Z"}}


def edit(roles: RoleHarness, task_id: str) -> int:
    return roles.ask("ada", "PATCH", f"/v1/tasks/{task_id}", LATER).status_code


def create_again(roles: RoleHarness, task_id: str) -> int:
    own = roles.sim.app.get(task_id).title
    return roles.create_task("ada", {**NEW, **LATER, "id": own, "title": own}).status_code


def create_again_in_a_batch(roles: RoleHarness, task_id: str) -> int:
    own = roles.sim.app.get(task_id).title
    body = {"tasks": [{**NEW, **LATER, "id": own, "title": own}]}
    results = roles.ask("ada", "POST", "/v1/tasks/batchCreate", body).json["results"]
    return int(results[0]["status"])


def retry(roles: RoleHarness, task_id: str) -> int:
    return roles.ask("ada", "POST", f"/v1/tasks/{task_id}/retry").status_code


def retry_from_a_step(roles: RoleHarness, task_id: str) -> int:
    return roles.ask("ada", "POST", f"/v1/tasks/{task_id}/retry", {"fromStep": 1}).status_code


def retry_in_a_batch(roles: RoleHarness, task_id: str) -> int:
    body = {"action": "retryFailed", "filter": {"ids": [task_id]}}
    answer = roles.ask("ada", "POST", "/v1/tasks/batchChange", body)
    roles.sim.advance(10 * SECOND)
    (execution,) = roles.sim.executions(answer.json["id"])
    content = dict(execution.content)
    return 200 if content["changed"] else 429 if "may have" in str(content["refusals"]) else 500


REVIVALS = {each.__name__: each for each in (edit, create_again, create_again_in_a_batch, retry, retry_from_a_step)}


def make_ended(roles: RoleHarness, count: int, *, fails: bool) -> list[str]:
    """Return the ids of tasks of ada's that have ended, made while there was room."""
    ended = []
    for number in range(count):
        body = {**NEW, "id": f"t{number}", "title": f"t{number}"}
        if fails:
            body |= {"handler": "break", "schedule": {"at": roles.sim.now.isoformat()}}
        made = roles.create_task("ada", body)
        ended.append(str(made.json["id"]))
        if fails:
            roles.sim.advance(SECOND)
        else:
            roles.ask("ada", "POST", f"/v1/tasks/{ended[-1]}/cancel")
    assert list_unfinished(roles.sim.app) == []
    return ended


@pytest.mark.parametrize("way", REVIVALS)
def test_a_revival_counts_like_a_creation(open_limited_api: Callable[..., RoleHarness], way: str) -> None:
    """Whatever starts a task again that has ended: no more of them than the quota; a server may do what it likes."""
    roles = open_limited_api(max_active_tasks=LIMIT)
    ended = make_ended(roles, 3 * LIMIT, fails="retry" in way)
    answers = [REVIVALS[way](roles, task_id) for task_id in ended]
    assert answers == [200] * LIMIT + [429] * 2 * LIMIT
    assert len(list_unfinished(roles.sim.app)) == LIMIT
    counted = roles.ask("ada", "PATCH", f"/v1/tasks/{ended[0]}", {"title": "New"})
    assert counted.status_code == 200, "it is one of those that count"
    assert roles.create_task("ada", NEW).status_code == 429
    assert roles.ask("admin", "PATCH", f"/v1/tasks/{ended[-1]}", LATER).status_code == 200


def test_a_retry_in_a_batch_needs_room(open_limited_api: Callable[..., RoleHarness]) -> None:
    """A batch is carried out by a task, which counts while it runs."""
    roles = open_limited_api(max_active_tasks=LIMIT)
    (failed,) = make_ended(roles, 1, fails=True)
    for _ in range(LIMIT):
        assert roles.create_task("ada", NEW).status_code == 201
    roles.sim.app.pause(list_unfinished(roles.sim.app)[0].id)  # what is paused counts
    before = roles.sim.app.get(failed)
    assert retry_in_a_batch(roles, failed) == 429
    assert roles.sim.app.get(failed) == before
    for task in list_unfinished(roles.sim.app)[:2]:
        roles.sim.app.cancel(task.id)
    assert retry_in_a_batch(roles, failed) == 200


# ── What trees make ──────────────────────────────────────────────────────────────────────────────────────────────────

SCRIPT = "return await Promise.all(Array.from({length: 20}, () => tools.work({})))"
TREES: dict[str, tuple[dict[str, Any], int]] = {
    "parallel children": ({"children": [{"handler": "work"}] * 100, "parallel": True}, 100),
    "children in order": ({"children": [{"handler": "work"}] * 7}, 7),
    "calls that are awaited": ({"handler": "gather", "payload": {"count": 20}}, 20),
    "calls that are not awaited": ({"handler": "forget", "payload": {"count": 20}}, 20),
    "calls of a handler that fails": ({"handler": "fail", "payload": {"count": 20}}, 20),
    "calls before a step and a sleep": ({"handler": "go_on", "payload": {"count": 20}}, 20),
    "a script's calls": ({"script": {"source": SCRIPT}}, 20),
}
"""Trees, and how many runs of ``work`` each has."""


@pytest.mark.parametrize("tree", TREES)
def test_calls_of_a_users_tree_stay_within_the_quota(
    open_limited_api: Callable[..., RoleHarness], task_counts: list[int], tree: str
) -> None:
    """However many calls it makes, and however: they wait for room, all of them run, and none fails for it."""
    fields, calls = TREES[tree]
    roles = open_limited_api(max_active_tasks=LIMIT)
    task_id = create(roles, **fields)
    roles.sim.run_until_idle(DAYS)
    assert len(task_counts) == 2 * calls, "each ran once, and once more after its sleep"
    assert max(task_counts) == min(LIMIT, calls + 1) or tree == "children in order"
    expected = "FAILED" if fields.get("handler") == "fail" else "COMPLETED"
    assert roles.sim.app.get(task_id).status == expected
    assert all(each.task.status == "COMPLETED" for each in roles.sim.app.tree(task_id).children)


def test_calls_wait_for_the_rate_of_creations(open_limited_api: Callable[..., RoleHarness]) -> None:
    """In no minute are more tasks created than the limit says, and in the end all are."""
    roles = open_limited_api(max_creations=LIMIT)
    task_id = create(roles, **TREES["calls that are awaited"][0])
    roles.sim.run_until_idle(DAYS)
    root = roles.sim.app.tree(task_id)
    assert (root.task.status, len(root.children)) == ("COMPLETED", 20)
    created = sorted([root.task.created_at, *(each.task.created_at for each in root.children)])
    assert all(later - earlier >= MINUTE for earlier, later in zip(created, created[LIMIT:], strict=False))


WITHOUT_ROOM: dict[str, tuple[int, dict[str, Any]]] = {
    "one task with children": (1, TREES["children in order"][0]),
    "one task with a deep tree": (1, {"handler": "nest", "payload": {"depth": 4}}),
    "tasks that take all the room": (LIMIT, TREES["calls that are awaited"][0]),
}


@pytest.mark.parametrize(("limit", "fields"), WITHOUT_ROOM.values(), ids=WITHOUT_ROOM)
def test_tasks_that_wait_for_calls_do_not_take_their_room(
    open_limited_api: Callable[..., RoleHarness], limit: int, fields: dict[str, Any]
) -> None:
    """Where tasks that only wait for calls fill the quota, each may make one call: none waits for ever."""
    roles = open_limited_api(max_active_tasks=limit)
    created = [create(roles, **fields) for _ in range(limit)]
    assert roles.create_task("ada", NEW).status_code == 429
    roles.sim.run_until_idle(DAYS)
    assert {roles.sim.app.get(each).status for each in created} == {"COMPLETED"}


def wait_for_room(open_limited_api: Callable[..., RoleHarness]) -> tuple[RoleHarness, str, str]:
    """Let a task wait for room for its calls, beside another task; return both ids."""
    roles = open_limited_api(max_active_tasks=3)
    other = create(roles, **NEW)
    task_id = create(roles, handler="gather", payload={"count": 2})
    for each in range(2):
        roles.sim.advance(timedelta(seconds=each))
    return roles, task_id, other


def test_a_call_goes_on_when_another_task_makes_room(
    open_limited_api: Callable[..., RoleHarness], task_counts: list[int]
) -> None:
    """It continues within ten minutes without a notification; its own resumed calls do not help.

    Until then the task and its record say why it waits, and what to do.
    """
    roles, task_id, other = wait_for_room(open_limited_api)
    reason = "An owner may have 3 tasks that have not ended. Cancel or delete some of them."
    task = roles.fetch("ada", f"/v1/tasks/{task_id}")
    assert task["status"] == "ACTIVE"
    assert task["message"] == f"Created. Calls wait for room: {reason}"
    (record,) = roles.fetch("ada", f"/v1/tasks/{task_id}/executions")["executions"]
    assert record["status"] == "SUSPENDED"
    assert record["message"] == f"It waits for 2 calls; a call waits for room: {reason}"
    roles.sim.app.cancel(other)
    running = len(task_counts)
    roles.sim.advance(timedelta(minutes=10))
    assert len(task_counts) > running
    assert roles.sim.app.get(task_id).status == "COMPLETED"


def test_a_waiting_call_goes_on_through_the_sweep(open_limited_api: Callable[..., RoleHarness]) -> None:
    """If the queue loses everything, the sweep finds the task that waits for room.

    A process that died after it had made a call makes it again: it is the same call, although the quota is full.
    """
    roles, task_id, other = wait_for_room(open_limited_api)
    (call,) = roles.sim.app.tree(task_id).children
    container = roles.sim.app.container

    def find_caller(*, anew: bool) -> VersionedTask:  # noqa: ARG001 - it is read each time
        found = container.store.load(task_id)
        assert found is not None
        return found

    assert not container.child_tasks.create(call.task, find_caller)
    roles.sim.app.cancel(other)
    roles.sim.queue.purge()
    roles.sim.advance(timedelta(minutes=20))
    assert roles.sim.app.get(task_id).status == "COMPLETED"


def test_the_trees_of_servers_are_not_limited(
    open_limited_api: Callable[..., RoleHarness], task_counts: list[int]
) -> None:
    """A server's task makes its calls at once, for whomever it works; once ada has edited it, it is hers."""
    roles = open_limited_api(max_active_tasks=LIMIT)
    task_id = create(roles, "admin", **TREES["calls that are awaited"][0])
    roles.sim.advance(MINUTE)
    assert len(roles.sim.app.tree(task_id).children) == 20
    roles.sim.run_until_idle(DAYS)
    task_counts.clear()
    again = create(roles, "admin", **TREES["calls that are awaited"][0])
    assert roles.ask("ada", "PATCH", f"/v1/tasks/{again}", {"title": "Mine"}).status_code == 200
    roles.sim.run_until_idle(DAYS)
    assert max(task_counts) == LIMIT
