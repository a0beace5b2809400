"""Functions in their own processes: kills, rotated secrets and refusals."""

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.harness import SECRET, START, request, wait_until
from tests.instants import DAY, HOUR, MINUTE
from tests.stories.deployment import Deployment, run_deployment

from cloudsched import App, Execution, Schedule, Settings
from cloudsched.adapters.clocks import EmulatorClock, ManualClock
from cloudsched.errors import Misconfigured

DAILY = Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T08:00:00")
DUE = START + 30 * MINUTE
NEXT = DUE + DAY


@pytest.fixture
def deployment(base: Settings, tmp_path: Path) -> Iterator[Deployment]:
    with run_deployment(base, tmp_path) as running:
        yield running


def create(app: App, **task: Any) -> None:
    app.create(**{"id": "it", "owner": "ada", "title": "It", "handler": "linger", "schedule": DAILY, **task})


@pytest.mark.parametrize("rescue", ["the queue delivers again", "the sweep finds it"])
def test_an_executor_killed_in_a_handler_leaves_one_record(deployment: Deployment, rescue: str) -> None:
    """After SIGKILL in a handler, the occurrence ends as exactly one record, and the next one is planned."""
    emulator, marks = deployment.emulator, deployment.folder
    with deployment.client() as app, ThreadPoolExecutor() as threads:
        create(app)
        with deployment.serve("execute") as executor:
            walk = threads.submit(emulator.advance, 32 * MINUTE)
            wait_until((marks / "began-1").exists, "the handler has begun")
            executor.process.kill()
            walk.result(60)
        (during,) = app.executions("it").items
        assert (during.status, during.scheduled_for) == ("RUNNING", DUE)

        if rescue == "the sweep finds it":
            settings = deployment.settings
            queue = f"/v2/projects/{settings.project}/locations/{settings.location}/queues/{settings.queue}"
            assert request(f"http://{emulator.address}", "POST", f"{queue}:purge", {}).status == 200
        (marks / "go-on").touch()
        with deployment.serve("execute"):
            emulator.advance(2 * HOUR)
            if rescue == "the sweep finds it":
                with deployment.serve("sweep") as sweep:
                    assert request(sweep.url, "POST", "/").body["dispatched"] == 1
                    sweep.process.signal(signal.SIGTERM)
                    assert sweep.process.wait() == 0, "Cloud Run sends SIGTERM; a function exits with 0"
                emulator.advance(timedelta(0))

        (record,) = app.executions("it").items
        assert (record.status, record.content) == ("SUCCEEDED", "attempt 2")
        assert [attempt.status for attempt in record.attempts] == ["TIMED_OUT", "SUCCEEDED"]
        assert app.get("it").next_execution_time == NEXT
        assert [message.body.split("\n")[-1] for message in app.inbox("ada").items] == ["attempt 2"]
        assert not (marks / "began-3").exists()


@pytest.mark.parametrize("base", ["sqlite"], indirect=True)  # tokens are checked before there is a store
def test_a_dispatch_of_the_old_secret_runs_only_while_it_is_accepted(deployment: Deployment) -> None:
    """It gets 401 from an executor that has only the new secret, and runs on one that still has the old one."""
    new = replace(deployment.settings, secret="another-secret-0123456789")  # noqa: S106 - a test's
    with deployment.client() as app:
        create(app, handler="greet")
        with deployment.serve("execute", new):
            deployment.emulator.advance(31 * MINUTE)
        assert {attempt.answer.status for attempt in deployment.emulator.attempts()} == {401}
        assert list(app.executions("it").items) == []

        with deployment.serve("execute", replace(new, previous_secret=deployment.settings.secret)):
            deployment.emulator.advance(2 * HOUR)
            assert statuses(app.executions("it").items) == ["SUCCEEDED"], "\n".join(deployment.answers())
            deployment.emulator.advance(DAY)
        assert statuses(app.executions("it").items) == ["SUCCEEDED"] * 2


def statuses(executions: Sequence[Execution]) -> list[str]:
    return [execution.status for execution in executions]


def test_the_secret_appears_nowhere(deployment: Deployment) -> None:
    """After runs, failures and refusals no queue body, document, log line or error contains the secret."""
    emulator = deployment.emulator
    with deployment.serve("api") as api, deployment.serve("execute") as executor:
        task = {"owner": "ada", "title": "It", "schedule": {"at": "2027-01-01T08:00:00Z"}}
        answers = [
            request(api.url, "POST", "/v1/tasks", {**task, "id": "good", "handler": "greet"}),
            request(api.url, "POST", "/v1/tasks", {**task, "id": "bad", "handler": "stumble"}),
            request(api.url, "POST", "/v1/tasks", {**task, "handler": "unknown"}),
            request(api.url, "POST", "/v1/tasks", b"{"),
            request(executor.url, "POST", "/v1/tasks/execute", b"{}", {"X-Cloudsched-Token": "v1=00"}),
        ]
        assert [answer.status for answer in answers] == [201, 201, 400, 400, 401]
        emulator.advance(HOUR)
        shown = {task: request(api.url, "GET", f"/v1/tasks/{task}/executions") for task in ("good", "bad")}
        logs = api.process.output + executor.process.output
    assert [reply.body["executions"][0]["status"] for reply in shown.values()] == ["SUCCEEDED", "FAILED"]

    queue = repr([(attempt.request, attempt.answer) for attempt in emulator.attempts()])
    places = {"queue": queue, "answers": repr([answers, shown]), "logs": logs, "documents": documents(deployment)}
    assert "good" in places["documents"]
    assert "about to fail" in places["documents"]
    assert [name for name, text in places.items() if SECRET in text] == []


def documents(deployment: Deployment) -> str:
    """Return every stored document in its stored form."""
    settings = deployment.settings
    if settings.store == "sqlite":
        return "".join(file.read_bytes().decode("latin-1") for file in deployment.folder.glob("tasks.db*"))
    root = f"/v1/projects/{settings.project}/databases/(default)/documents"
    folders = ["tasks", "tasks/good/executions", "tasks/bad/executions", "inboxes/ada/messages"]
    return repr(
        [request(f"http://{settings.firestore_emulator}", "GET", f"{root}/{folder}").body for folder in folders]
    )


def test_a_function_in_the_cloud_uses_only_the_system_clock() -> None:
    """With K_SERVICE and without a local Cloud Tasks, an app with another clock refuses to work."""
    deployed_settings = Settings.from_environment({"K_SERVICE": "execute"})
    with pytest.raises(Misconfigured, match="clock"):
        _ = App(deployed_settings, clock=ManualClock(START)).container.clock
    with pytest.raises(Misconfigured, match="clock"):
        _ = App(deployed_settings, clock=EmulatorClock("127.0.0.1:1")).container.clock
    local = Settings.from_environment({"K_SERVICE": "execute", "CLOUD_TASKS_EMULATOR_HOST": "127.0.0.1:1"})
    assert isinstance(App(local).container.clock, EmulatorClock)


@pytest.mark.parametrize("base", ["sqlite"], indirect=True)  # it is about the clocks of processes
def test_what_says_now_runs_now_on_a_clock_that_runs(deployment: Deployment) -> None:
    """Each spelling, from the process of the API to that of the executor."""
    said = ("now", "right now", "immediately", "PT0S", "in 0 seconds", "in 0 minutes")
    deployment.emulator.clock.resume()
    with deployment.serve("api") as api, deployment.serve("execute"):
        task = {"owner": "ada", "title": "It", "handler": "greet"}
        answers = [request(api.url, "POST", "/v1/tasks", {**task, "schedule": each}) for each in said]
        assert [each.status for each in answers] == [201] * len(said)

        def find_statuses() -> list[str]:
            return [each["status"] for each in request(api.url, "GET", "/v1/tasks?owner=ada").body["tasks"]]

        wait_until(lambda: find_statuses() == ["COMPLETED"] * len(said), "each has run")
