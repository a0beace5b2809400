"""Queues are managed by the API and `cloudsched admin queues`, with Google's client, at the local Cloud Tasks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import CommandResult, serve_api_of
from werkzeug.test import Client as LocalClient
from werkzeug.test import TestResponse
from werkzeug.wrappers import Request

from cloudsched import App, Settings
from cloudsched.adapters.google.cloud_tasks import CloudTasksDispatcher
from cloudsched.emulator import CloudTasksEmulator
from cloudsched.testing import Simulation
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role
from cloudsched.web.functions import serve_api

Ask = Callable[..., TestResponse]
ROLES = {"admin": (Role.ADMIN, None), "user": (Role.USER, "ada"), "worker": (Role.WORKER, None)}
QUEUES = ("cloudsched", "cloudsched-low", "cloudsched-x", "other")
LOCATION = "projects/demo/locations/l/queues"

MADE = {name: create_key(name, *role) for name, role in ROLES.items()}


@pytest.fixture(name="app")
def open_app(tmp_path: Path) -> Iterator[App]:
    """Open the app of a deployment, one of whose queues holds a dispatch."""
    with CloudTasksEmulator(queues=[f"{LOCATION}/{each}" for each in QUEUES]) as emulator:
        parts = {
            "CLOUDSCHED_STORE": "sqlite",
            "CLOUDSCHED_DATA": str(tmp_path / "tasks.db"),
            "GOOGLE_CLOUD_PROJECT": "demo",
            "CLOUDSCHED_LOCATION": "l",
            "CLOUDSCHED_EXECUTOR_URL": "http://e.test",
            "CLOUD_TASKS_EMULATOR_HOST": emulator.address,
            "CLOUDSCHED_SECRET": "a-secret-of-many-letters",
            "CLOUDSCHED_API_KEYS": " ".join(str(entry) for _, entry in MADE.values()),
        }
        app = App(Settings.from_environment(parts))
        app.handler("greet")(lambda: None)
        app.create(owner="ada", title="Greet", handler="greet", schedule="every day at 9:00", timezone="UTC")
        yield app
        app.close()


@pytest.fixture
def ask(app: App) -> Ask:
    """Send requests with the key of a role to its API."""
    client = LocalClient(Request.application(lambda request: serve_api(app, request)))
    return lambda method, path, body=None, who="admin": client.open(
        path, method=method, json=body, headers={"X-Api-Key": MADE[who][0]}
    )


def test_an_admin_sees_and_changes_the_queues_of_the_deployment(ask: Ask) -> None:
    """With state, rates, depth and priorities. A purge empties a queue; one rate leaves the other as it was."""
    usual = {"state": "RUNNING", "maxDispatchesPerSecond": 500.0, "maxConcurrentDispatches": 1000}
    normal, low = ask("GET", "/v1/dispatch-queues").get_json()["queues"]
    assert normal == {"queue": QUEUES[0], **usual, "depth": 1, "priorities": ["NORMAL"]}
    assert low == {"queue": QUEUES[1], **usual, "depth": 0, "priorities": ["LOW"]}
    path = "/v1/dispatch-queues/cloudsched"
    assert ask("PATCH", path, {"state": "PAUSED"}).get_json() == {**normal, "state": "PAUSED"}
    assert ask("GET", "/v1/dispatch-queues").get_json()["queues"][0]["state"] == "PAUSED"
    assert ask("PATCH", path, {"state": "RUNNING"}).get_json() == normal
    assert ask("PATCH", path, {"maxDispatchesPerSecond": 2.5}).get_json() == {**normal, "maxDispatchesPerSecond": 2.5}
    assert ask("POST", f"{path}/purge").get_json()["depth"] == 0
    for refused in ({"state": "DISABLED"}, {"maxDispatchesPerSecond": 0}, {"maxConcurrentDispatches": 5001}):
        assert ask("PATCH", path, refused).status_code == 400
    noted = [each for each in ask("GET", "/v1/audit").get_json()["entries"] if "queue" in each]
    assert [each["action"] for each in noted] == ["QUEUE_PURGED", "QUEUE_CHANGED", "QUEUE_RESUMED", "QUEUE_PAUSED"]
    assert {(each["queue"], each["by"]["subject"]) for each in noted} == {("cloudsched", "key:admin")}
    assert noted[1]["fields"] == [{"field": "maxDispatchesPerSecond", "after": "2.5"}]
    assert all("queue" not in each for each in ask("GET", "/v1/audit", who="user").get_json()["entries"])


@pytest.mark.parametrize("who", ROLES)
def test_nobody_reaches_another_queue(ask: Ask, who: str) -> None:
    """Neither one of the same project, nor a missing one, which an update would create; only an admin reaches any."""
    for queue in ("other", "cloudsched-x", "cloudsched-high", "..", "..%2Fother", "cloudsched%2F..%2Fother", "%2E%2E"):
        for method, verb, body in (("POST", "/purge", None), ("PATCH", "", {"state": "PAUSED"})):
            answer = ask(method, f"/v1/dispatch-queues/{queue}{verb}", body, who)
            assert answer.status_code in ({404, 405} if who == "admin" else {403, 404, 405}), (queue, answer.text)
    if who != "admin":
        assert "RUNNING" not in ask("GET", "/v1/dispatch-queues", who=who).text
        assert ask("PATCH", "/v1/dispatch-queues/cloudsched", {"state": "PAUSED"}, who).status_code == 403
    states = [(each["queue"], each["state"]) for each in ask("GET", "/v1/dispatch-queues").get_json()["queues"]]
    assert states == [("cloudsched", "RUNNING"), ("cloudsched-low", "RUNNING")]


def test_commands_change_a_queue_and_the_doctor_sees_it(
    app: App, run_command: Callable[..., CommandResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A purge asks first. A queue that is paused, or holds more than an hour's work, is named with what mends it."""
    monkeypatch.setenv("CLOUDSCHED_KEY", MADE["admin"][0])
    with serve_api_of(app) as url:

        def type_words(*words: str) -> str:
            done = run_command("admin", "queues", "--url", url, *words)
            assert done.code == 0, done.err
            return done.out

        def examine() -> dict[str, str]:
            report = json.loads(run_command("doctor", "--url", url, "--no-canary", "--json").out)
            return next(each for each in report["findings"] if each["area"] == "queues")

        assert examine()["verdict"] == "ok"
        assert "PAUSED" in type_words("pause", "cloudsched-low")
        found = examine()
        assert (found["verdict"], "cloudsched admin queues resume cloudsched-low" in str(found)) == ("wrong", True)
        assert "RUNNING" in type_words("resume", "cloudsched-low")
        assert "0.0001 a second" in type_words("rate", "cloudsched", "--per-second", "0.0001")
        assert "holds 1 dispatches" in str(examine())
        assert run_command("admin", "queues", "--url", url, "purge", "cloudsched").code != 0
        assert "1 in it" in type_words("list")
        assert "0 in it" in type_words("purge", "cloudsched", "--yes")
        assert run_command("admin", "queues", "--url", url, "pause", "other").code != 0


def test_what_carries_its_own_dispatches_needs_no_cloud_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """`serve` and `embedded` are installed without Google's clients, and doctor looks at them, too."""
    monkeypatch.setitem(sys.modules, "cloudsched.adapters.google.queue_admin", None)
    with Simulation(App()) as sim:
        assert sim.app.container.queue_admin is None


def test_where_it_is_switched_off_everybody_is_told_the_setting(
    run_command: Callable[..., CommandResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by the commands; the doctor does not say that the queues are well. Users see none anyway."""
    parts = {
        "CLOUDSCHED_STORE": "sqlite",
        "GOOGLE_CLOUD_PROJECT": "demo",
        "CLOUDSCHED_SECRET": "a-secret-of-many-letters",
        "CLOUDSCHED_API_KEYS": " ".join(str(entry) for _, entry in MADE.values()),
    }
    monkeypatch.setenv("CLOUDSCHED_KEY", MADE["admin"][0])
    app = App(Settings.from_environment(parts))
    with serve_api_of(app) as url:
        for words in (("list",), ("pause", "cloudsched"), ("purge", "cloudsched", "--yes")):
            refused = run_command("admin", "queues", "--url", url, *words)
            assert (refused.code != 0, "QUEUE_ADMIN" in refused.err) == (True, True), refused.err
        report = json.loads(run_command("doctor", "--url", url, "--no-canary", "--json").out)
        found = next(each for each in report["findings"] if each["area"] == "queues")
        assert (found["verdict"], "QUEUE_ADMIN" in str(found)) == ("unknown", True)
        monkeypatch.setenv("CLOUDSCHED_KEY", MADE["user"][0])
        assert run_command("admin", "queues", "--url", url, "list").code == 0
    app.close()


def test_a_receipt_knows_of_a_paused_queue(ask: Ask) -> None:
    """That of the task's priority, or the one that takes its dispatches; at once, if it was paused here."""

    def find_reasons(priority: str) -> set[str]:
        task = {"owner": "ada", "title": "Greet", "handler": "greet", "priority": priority}
        receipt = ask("POST", "/v1/tasks", task).get_json()["receipt"]
        return {each["reason"] for each in receipt["doubts"]} - {"SWEEP_IS_LATE"}  # nothing sweeps here

    assert [find_reasons(each) for each in ("NORMAL", "LOW", "HIGH")] == [set(), set(), set()]
    ask("PATCH", f"/v1/dispatch-queues/{QUEUES[0]}", {"state": "PAUSED"})
    assert [find_reasons(each) for each in ("NORMAL", "LOW", "HIGH")] == [{"QUEUE_PAUSED"}, set(), {"QUEUE_PAUSED"}]
    [need] = ask("GET", "/v1/overview").get_json()["needs"]
    assert (need["cause"], need["subject"]) == ("QUEUE_PAUSED", QUEUES[0])
    assert ": no task of priority CRITICAL, HIGH or NORMAL that it carries is dispatched until" in need["sentence"]
    ask("PATCH", f"/v1/dispatch-queues/{QUEUES[1]}", {"state": "PAUSED"})
    ask("PATCH", f"/v1/dispatch-queues/{QUEUES[0]}", {"state": "RUNNING"})
    assert [find_reasons(each) for each in ("NORMAL", "LOW", "HIGH")] == [set(), {"QUEUE_PAUSED"}, set()]


def test_a_queue_that_does_not_answer_makes_no_write_fail(ask: Ask, app: App) -> None:
    """The task is stored, and its receipt says what could not be looked at."""
    gone = CloudTasksDispatcher(project="demo", location="l", queue="q", url="http://e.test", emulator="127.0.0.1:9")
    app.container.replace(queue_watch=gone)
    answer = ask("POST", "/v1/tasks", {"owner": "ada", "title": "Greet", "handler": "greet"})
    assert answer.status_code == 201
    assert "NOT_CHECKED" in {each["reason"] for each in answer.get_json()["receipt"]["doubts"]}
    gone.close()


def test_acts_of_one_instant_are_listed_in_their_order(ask: Ask, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest first, also on a clock that stands still, page by page; none of them is lost."""
    now = app.container.clock.now()
    monkeypatch.setattr(type(app.container.clock), "now", lambda _: now)
    for state in ("PAUSED", "RUNNING") * 3:
        assert ask("PATCH", "/v1/dispatch-queues/cloudsched", {"state": state}).status_code == 200
    expected = ["QUEUE_RESUMED", "QUEUE_PAUSED"] * 3
    noted = [each["action"] for each in ask("GET", "/v1/audit").get_json()["entries"] if "queue" in each]
    assert noted == expected
    paged: list[str] = []
    path = "/v1/audit?pageSize=2"
    while path:
        page = ask("GET", path).get_json()
        paged += [each["action"] for each in page["entries"] if "queue" in each]
        path = f"/v1/audit?pageSize=2&pageToken={page['nextPageToken']}" if page.get("nextPageToken") else ""
    assert paged == expected
