"""What waits and who works, over HTTP: nothing is claimed, nobody sees what is another's, and little is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.web.callers import MINUTE, PEOPLE, SECOND, RoleHarness, make_keys
from tests.web.conftest import Call, fetch

from cloudsched import App, Settings
from cloudsched.adapters.operation_counts import Counts, count_store
from cloudsched.adapters.sqlite.records import SqliteRecords
from cloudsched.errors import StoreUnavailable
from cloudsched.features.pull.presence import MAX_NAMES_OF_USER, MAX_WORKERS, PresenceNotes, WorkerPresence
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.testing import Simulation
from cloudsched.web.auth.roles import Role

app = App(Settings())
"""An app with a handler for workers."""


app.handler("render", access="users")(lambda: None)


def queue_up(call: Call, sim: Simulation, *tasks: dict[str, Any]) -> None:
    """Create tasks of workers, and let them come due a minute apart."""
    for task in tasks:
        body = {"owner": "ada", "title": "Render", "handler": "render", "pull": "gpu", **task}
        assert call("POST", "/v1/tasks", body).status_code == 201
        sim.advance(MINUTE)
    sim.advance(5 * MINUTE)


def test_queues_say_what_waits_and_who_listens(call: Call, sim: Simulation) -> None:
    """One entry for each skill; looking at it claims nothing, and workers get it in the order that was shown."""
    cuda = {"queue": "gpu", "skill": "cuda"}
    queue_up(
        call, sim, {"id": "a"}, {"id": "b", "pull": cuda}, {"id": "c", "priority": "HIGH"}, {"id": "d", "pull": "gpu-2"}
    )
    shown = fetch(call, "/v1/queues")["queues"]
    assert [(one["queue"], one.get("skill"), one["waiting"]["value"], one["workers"]) for one in shown] == [
        ("gpu", None, 2, 0),
        ("gpu-2", None, 1, 0),
        ("gpu", "cuda", 1, 0),
    ]
    tasks = fetch(call, "/v1/queues/gpu/tasks")["tasks"]
    assert [(one["taskId"], one.get("skill"), one["priority"]) for one in tasks] == [
        ("c", None, "HIGH"),
        ("a", None, "NORMAL"),
        ("b", "cuda", "NORMAL"),
    ]
    first = fetch(call, "/v1/queues/gpu/tasks?pageSize=2")
    rest = fetch(call, f"/v1/queues/gpu/tasks?pageSize=2&pageToken={first['nextPageToken']}")
    assert [one["taskId"] for one in (*first["tasks"], *rest["tasks"])] == ["c", "a", "b"]
    assert call("GET", f"/v1/queues/gpu-2/tasks?pageToken={first['nextPageToken']}").status_code == 400
    order = [
        claim["task"]["id"]
        for _ in range(3)
        for claim in call("POST", "/v1/queues/gpu/claim", {"worker": "box", "skills": ["cuda"]}).json["claims"]
    ]
    assert order == ["c", "a", "b"]
    (queue,) = [one for one in fetch(call, "/v1/queues")["queues"] if one["queue"] == "gpu"]
    assert (queue["waiting"], queue["workers"]) == ({"value": 0, "atLeast": False}, 1)


@pytest.mark.parametrize("tasks", [1, 3])
def test_what_waits_in_a_queue_is_counted_in_runs(call: Call, sim: Simulation, tasks: int) -> None:
    """However many of them are of one task; a claim takes one away, and a pause of the task all of its own."""
    every = {"rrule": "FREQ=MINUTELY;COUNT=10", "dtstart": "2027-01-01T00:01:00", "timezone": "UTC"}
    queue_up(call, sim, *({"id": f"t{n}", "schedule": every, "overlap": "allow"} for n in range(tasks)))
    sim.advance(20 * MINUTE)

    def count() -> tuple[int, list[int]]:
        (queue,) = fetch(call, "/v1/queues")["queues"]
        assert not queue["waiting"]["atLeast"]
        return queue["waiting"]["value"], [one["runs"] for one in fetch(call, "/v1/queues/gpu/tasks")["tasks"]]

    opened = [len(sim.app.get(f"t{number}").runs) for number in range(tasks)]
    assert min(opened) > 1
    assert count() == (sum(opened), opened)
    call("POST", "/v1/queues/gpu/claim", {"worker": "box"})
    assert count() == (sum(opened) - 1, [opened[0] - 1, *opened[1:]])
    call("POST", "/v1/tasks/t0/pause")
    left = opened[1:]
    assert count() == (sum(left), left)


def test_a_queue_of_many_tasks_says_that_more_may_wait(call: Call, sim: Simulation) -> None:
    """Of those after the first twenty, only the tasks are counted."""
    queue_up(call, sim, *({"id": f"t{number}"} for number in range(20)))
    assert fetch(call, "/v1/queues")["queues"][0]["waiting"] == {"value": 20, "atLeast": False}
    queue_up(call, sim, {"id": "one-more"})
    assert fetch(call, "/v1/queues")["queues"][0]["waiting"] == {"value": 21, "atLeast": True}


def test_a_worker_is_noted_once_a_minute(call: Call, sim: Simulation) -> None:
    """However often it asks; after three minutes it does not listen, after a day it is forgotten."""
    for _ in range(3):
        call("POST", "/v1/queues/gpu/claim", {"worker": "box", "skills": ["cuda"]})
        sim.advance(10 * SECOND)
    (worker,) = fetch(call, "/v1/workers")["workers"]
    assert (worker["worker"], worker["queue"], worker["skills"], worker["isListening"]) == (
        "box",
        "gpu",
        ["cuda"],
        True,
    )
    assert worker["seenAt"].startswith("2027-01-01T00:00:00")
    sim.advance(3 * MINUTE)
    (worker,) = fetch(call, "/v1/workers")["workers"]
    assert not worker["isListening"]
    call("POST", "/v1/queues/gpu/claim", {"worker": "box"})
    (worker,) = fetch(call, "/v1/workers")["workers"]
    assert worker["isListening"]
    sim.advance(timedelta(days=1, minutes=2))
    sim.app.container.store.sweep.expire(sim.now)  # what the sweep does, and Firestore itself
    assert fetch(call, "/v1/workers")["workers"] == []


def test_two_processes_note_a_worker_once(sim: Simulation) -> None:
    """The second one reads what the first has written; between them nothing is read."""
    counts = Counts()
    store = count_store(sim.app.container.store, counts)
    notes = [PresenceNotes(store, sim.app.container.clock) for _ in range(2)]
    for each in (*notes, *notes):
        each.note(WorkerFilter("gpu", worker="box"), THIS_PROCESS)
    assert (counts.reads, counts.commits) == (2, 1)


def test_a_user_s_names_make_few_documents(sim: Simulation) -> None:
    """A user could send any number of names: they are sorted into a few notes."""
    eve = replace(THIS_PROCESS, subject="user:eve", is_user=True)
    notes = PresenceNotes(sim.app.container.store, sim.app.container.clock)
    for number in range(200):
        notes.note(WorkerFilter("gpu", owner="eve", worker=f"w{number}"), eve)
    assert len(sim.app.container.store.records.list(WorkerPresence, "eve", limit=500)) <= MAX_NAMES_OF_USER


def test_a_user_hides_no_server_s_worker(call: Call, sim: Simulation) -> None:
    """However many queues they ask for work: lists that are cut begin with the workers of servers."""
    queue_up(call, sim, {"id": "a"})
    eve = replace(THIS_PROCESS, subject="user:eve", is_user=True)
    notes = PresenceNotes(sim.app.container.store, sim.app.container.clock)
    for number in range(MAX_WORKERS + 1):
        notes.note(WorkerFilter(f"q{number}", owner="eve", worker="w"), eve)
    for number in range(20):
        notes.note(WorkerFilter("gpu", worker=f"real-{number}"), THIS_PROCESS)
    shown = [one["worker"] for one in fetch(call, "/v1/workers")["workers"]]
    assert {f"real-{number}" for number in range(20)} <= set(shown)
    (queue,) = [one for one in fetch(call, "/v1/queues")["queues"] if one["queue"] == "gpu"]
    assert queue["workers"] == 20


def test_a_store_that_fails_keeps_no_worker_from_work(
    call: Call, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note is left out."""

    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("x", "y")

    queue_up(call, sim, {"id": "a"})
    monkeypatch.setattr(SqliteRecords, "write", fail)
    claims = call("POST", "/v1/queues/gpu/claim", {}).json["claims"]
    assert [claim["task"]["id"] for claim in claims] == ["a"]


def test_locks_show_holders_and_the_wait_list(call: Call, sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order in which they get it; by key, paged. Of many that wait, the first ones, and that there are more."""
    for number in range(4):
        queue_up(call, sim, {"id": f"h{number}", "title": f"H{number}", "lockKey": "printer"})
    queue_up(call, sim, {"id": "own", "lockKey": "a/b", "lockScope": "owner"})
    call("POST", "/v1/queues/gpu/claim", {"limit": 9})
    locks = fetch(call, "/v1/locks")["locks"]
    shown = [(one["key"], one["scope"], one.get("owner")) for one in locks]
    assert shown == [("a/b", "OWNER", "ada"), ("printer", "GLOBAL", None)]
    (printer,) = [one for one in locks if one["key"] == "printer"]
    assert [(one["taskId"], one["title"]) for one in printer["holders"]] == [("h0", "H0")]
    assert [one["taskId"] for one in printer["waiters"]] == ["h1", "h2", "h3"]
    for most, is_cut in ((3, False), (2, True)):
        monkeypatch.setattr("cloudsched.features.locks.queries.MAX_WAITERS", most)
        _, cut = fetch(call, "/v1/locks")["locks"]
        assert (len(cut["waiters"]), cut["hasMoreWaiters"]) == (most, is_cut)
    first = fetch(call, "/v1/locks?pageSize=1")
    second = fetch(call, f"/v1/locks?pageSize=1&pageToken={first['nextPageToken']}")
    assert [one["key"] for page in (first, second) for one in page["locks"]] == ["a/b", "printer"]
    assert "nextPageToken" not in second
    assert call("GET", "/v1/locks?pageToken=x").status_code == 400


def test_everybody_sees_their_own(simulate: Callable[..., Simulation]) -> None:
    """A user sees no queue, task, worker or lock of another; a worker's key sees of it all what it may claim."""
    keys, access = make_keys({**PEOPLE, "bob": (Role.READER, "bob"), "w": (Role.WORKER, None)})
    sim = simulate(access=access)
    sim.app.handler("mine", access="users", user_queues=("q-ada",))(lambda: None)
    roles = RoleHarness(sim, keys)

    def ask(who: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - a response
        return roles.ask(who, "GET" if body is None else "POST", path, body)

    for owner in ("ada", "bob"):
        work = {"owner": owner, "handler": "render", "pull": f"q-{owner}"}
        hold = {**work, "pull": f"lock-{owner}", "lockKey": "k", "lockScope": "owner"}
        assert [ask("admin", "/v1/tasks", body).status_code for body in (work, hold)] == [201, 201]
    sim.advance(7 * MINUTE)
    ask("ada", "/v1/queues/q-ada/claim", {"worker": "mine", "handlers": ["none"]})
    for owner in ("ada", "bob"):
        assert ask("admin", f"/v1/queues/lock-{owner}/claim", {"worker": "server"}).json["claims"]
    ask("w", "/v1/queues/q-ada/claim", {"worker": "box", "handlers": ["none"]})
    for path, name, seen in (
        ("queues", "queue", {"admin": ["lock-ada", "lock-bob", "q-ada", "q-bob"], "ada": ["q-ada"], "bob": ["q-bob"]}),
        ("queues/q-ada/tasks", "owner", {"admin": ["ada"], "ada": ["ada"], "bob": []}),
        ("workers", "worker", {"admin": ["box", "mine", "server", "server"], "ada": ["mine"], "bob": []}),
        ("locks", "owner", {"admin": ["ada", "bob"], "ada": ["ada"], "bob": ["bob"]}),
    ):
        for who, expected in seen.items():
            (found,) = [each for each in ask(who, f"/v1/{path}").json.values() if isinstance(each, list)]
            assert sorted(one[name] for one in found) == expected, (path, who)
        assert ask("bob", f"/v1/{path}?owner=ada").status_code == 403
        assert ask("w", f"/v1/{path}").status_code == (200 if "tasks" in path else 403)
    (queue,) = ask("ada", "/v1/queues").json["queues"]
    assert queue["workers"] == 2
