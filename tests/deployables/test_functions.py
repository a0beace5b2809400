"""The three functions as they are deployed: functions-framework with gunicorn, each in its own process."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGTERM

import pytest
from tests.harness import Function, free_port, function, request, wait_until
from tests.instants import DAY, MINUTE

from cloudsched import App
from cloudsched.config.access import Access
from cloudsched.config.settings import Settings
from cloudsched.emulator import CloudTasksEmulator, MovableClock
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.functions import wsgi

START = datetime(2027, 1, 1, tzinfo=UTC)
QUEUE = "projects/demo-cloudsched/locations/us-central1/queues/cloudsched"
REMINDER = {"id": "tea", "owner": "ada", "title": "Tea", "handler": "remind", "payload": {"text": "It is ready."}}
Served = tuple[CloudTasksEmulator, dict[str, Function]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    port = free_port()
    settings = Settings(
        executor_url=f"http://127.0.0.1:{port}",
        secret="a-secret-of-the-tests",  # noqa: S106 - a secret for tests
        store="sqlite",
        data=tmp_path_factory.mktemp("store") / "tasks.db",
        access=Access(open=True),
    )
    with CloudTasksEmulator(clock=MovableClock(START, frozen=True), queues=[QUEUE]) as emulator:
        env = replace(settings, tasks_emulator=emulator.address).to_child_environment()
        with (
            function("api", env) as api,
            function("execute", env, port=port) as execute,
            function("sweep", env) as sweep,
        ):
            yield emulator, {"api": api, "execute": execute, "sweep": sweep}


def test_a_task_goes_through_the_functions(served: Served) -> None:
    """`api` stores a task, the queue delivers it, `execute` runs it, and `api` shows the record and the message."""
    emulator, functions = served
    api = functions["api"].url
    created = request(api, "POST", "/v1/tasks", REMINDER)
    assert (created.status, created.headers["Location"]) == (201, "/v1/tasks/tea")
    assert created.body["nextExecutionTime"] == "2027-01-01T00:00:00Z"

    emulator.advance(6 * MINUTE)

    (record,) = request(api, "GET", "/v1/tasks/tea/executions").body["executions"]
    assert (record["status"], record["startedAt"]) == ("SUCCEEDED", "2027-01-01T00:00:00Z")
    (message,) = request(api, "GET", "/v1/inboxes/ada/messages").body["messages"]
    assert (message["title"], message["body"]) == ("Tea", "It is ready.")


def test_a_fresh_deployment_turns_a_sentence_into_a_reminder(served: Served) -> None:
    """Its own handler is open to drafts. What is confirmed is the task that was shown, and it runs."""
    emulator, functions = served
    api = functions["api"].url
    said = {"text": "every day at 9 remind me to stretch", "timezone": "UTC", "owner": "ada"}
    draft = request(api, "POST", "/v1/tasks/draft", said).body
    assert (draft["decision"], draft["task"]["handler"]) == ("CREATION", "remind"), draft
    made = request(api, "POST", "/v1/tasks", {"draftToken": draft["draftToken"], **draft["task"]})
    assert made.status == 201, made.body

    emulator.advance(DAY)

    told = [each["body"] for each in request(api, "GET", "/v1/inboxes/ada/messages").body["messages"]]
    assert told.count("stretch") == 1


def test_execute_requires_a_token(served: Served) -> None:
    """`execute` answers 401 without a token, and accepts only POST."""
    url = served[1]["execute"].url
    assert request(url, "POST", "/v1/tasks/execute", b"{}").status == 401
    assert request(url, "GET", "/v1/tasks/execute").status == 405


ENDING = """
import time
from pathlib import Path

import functions_framework

from cloudsched import App
from cloudsched.web import instance_end
from cloudsched.web.functions import serve_execute

instance_end.RELEASE_SECONDS = 0.1
app, folder = App(), Path(__file__).parent


@app.handler("wait", retry=False)
def wait() -> str:
    (folder / "begun").touch()
    while not (folder / "go-on").exists():
        time.sleep(0.01)
    return "done"


@functions_framework.http
def execute(request):
    return serve_execute(app, request)
"""


def test_an_instance_that_is_stopped_gives_up_what_runs(tmp_path: Path) -> None:
    """Before Cloud Run kills it. That costs no retry, and gunicorn ends by its own rules: when its requests have."""
    (source := tmp_path / "main.py").write_text(ENDING)
    port, app = free_port(), App()
    app.handler("wait", retry=False)(lambda: None)
    settings = Settings(
        executor_url=f"http://127.0.0.1:{port}",
        secret="a-secret-of-the-tests",  # noqa: S106 - a secret for tests
        store="sqlite",
        data=tmp_path / "tasks.db",
    )
    with CloudTasksEmulator(queues=[QUEUE]) as emulator:
        settings = replace(settings, tasks_emulator=emulator.address)
        env = settings.to_child_environment()
        with app.override(settings), function("execute", env, source, port) as execute:
            app.create(id="it", owner="ada", handler="wait")
            wait_until((tmp_path / "begun").exists, "it has begun")
            execute.process.signal(SIGTERM)
            wait_until(lambda: app.get("it").runs[0].lease is None, "it is given up")
            (tmp_path / "go-on").touch()
            assert execute.process.wait() == 0
            app.close()  # its connection to the clock of the emulator
        with app.override(settings):
            with WebServer(wsgi(app), port=port) as other:
                other.serve()
                wait_until(lambda: app.get("it").status == "COMPLETED", "it has run")
            (record,) = app.executions("it").items
            app.close()
        assert (record.status, len(record.attempts)) == ("SUCCEEDED", 1)


def test_sweep_responds_with_what_it_repaired(served: Served) -> None:
    """`sweep` answers Cloud Scheduler's POST with what it repaired, and refuses other methods."""
    url = served[1]["sweep"].url
    assert request(url, "POST", "/", b"").body["dispatched"] == 0
    assert request(url, "GET", "/").status == 405
