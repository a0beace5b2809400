"""REST as other clients use it: curl, gcloud, firebase-admin; and invalid requests."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cases import try_each
from tests.emulator.conftest import LOCATION, QUEUE, START, URL, Client, Http, Target

from cloudsched.emulator import CloudTasksEmulator

TASK = {"httpRequest": {"url": URL}, "scheduleTime": "2027-01-02T00:00:00Z"}


def test_curl_can_create_and_read_tasks(http: Http) -> None:
    """Requests and responses as `curl` sends and sees them; enums are numbers only on request."""
    body = base64.b64encode(b"hello").decode()
    request = {"url": URL, "httpMethod": "PUT", "headers": {"Content-Type": "text/plain"}, "body": body}
    status, task = http(
        "POST", f"/v2/{QUEUE}/tasks", {"task": {**TASK, "httpRequest": request}, "responseView": "FULL"}
    )
    assert status == 200
    assert task["httpRequest"] == {**request, "headers": {"User-Agent": "Google-Cloud-Tasks", **request["headers"]}}  # type: ignore[dict-item]
    assert task["scheduleTime"] == "2027-01-02T00:00:00Z"
    assert task["createTime"] == "2027-01-01T00:00:00Z"
    assert task["dispatchDeadline"] == "600s"
    assert http("GET", f"/v2/{task['name']}?$alt=json;enum-encoding=int")[1]["view"] == 1
    assert http("GET", f"/v2/{task['name']}?responseView=2&alt=json")[1]["view"] == "FULL"
    assert http("GET", f"/v2/{QUEUE}/tasks?pageSize=1")[1]["tasks"][0]["name"] == task["name"]
    assert http("POST", f"/v2/{QUEUE}:pause", {})[1]["state"] == "PAUSED"
    assert http("POST", f"/v2/{QUEUE}:resume")[1]["state"] == "RUNNING"
    mask = "updateMask=retryConfig.maxAttempts,rate_limits.max_dispatches_per_second"
    changed = http("PATCH", f"/v2/{QUEUE}?{mask}", {"retryConfig": {"maxAttempts": 4}})[1]
    assert changed["retryConfig"]["maxAttempts"] == 4
    assert http("DELETE", f"/v2/{task['name']}") == (200, {})


def test_an_error_is_a_google_rpc_status(http: Http) -> None:
    status, reply = http("GET", f"/v2/{QUEUE}/tasks/never")
    message = "Requested entity was not found."
    assert (status, reply) == (404, {"error": {"code": 404, "message": message, "status": "NOT_FOUND"}})


@try_each(
    "verb, path, body, expected",
    [
        ("POST", f"/v2/{QUEUE}/tasks", b"{", 400),
        ("POST", f"/v2/{QUEUE}/tasks", b"\xff\xfe", 400),
        ("POST", f"/v2/{QUEUE}/tasks", b"[" * 100_000, 400),
        ("POST", f"/v2/{QUEUE}/tasks", {}, 400),
        ("POST", f"/v2/{QUEUE}/tasks", {"task": TASK, "unknown": 1}, 400),
        ("POST", f"/v2/{QUEUE}/tasks", {"task": {**TASK, "unknown": 1}}, 400),
        ("POST", f"/v2/{QUEUE}/tasks", {"task": {**TASK, "scheduleTime": "tomorrow"}}, 400),
        ("POST", f"/v2/{QUEUE}/tasks", {"task": {**TASK, "dispatchDeadline": "15 seconds"}}, 400),
        ("POST", f"/v2/{QUEUE}/tasks", {"task": {**TASK, "httpRequest": {"url": URL, "body": "***"}}}, 400),
        ("POST", f"/v2/{QUEUE}/tasks", {"task": {**TASK, "httpRequest": {"url": URL, "httpMethod": "FETCH"}}}, 400),
        ("POST", f"/v2/{QUEUE}/tasks", {"task": TASK, "responseView": "HALF"}, 400),
        ("GET", f"/v2/{QUEUE}/tasks?pageSize=many", None, 400),
        ("GET", f"/v2/{QUEUE}/tasks?colour=red", None, 400),
        ("GET", f"/v2/{LOCATION}/queues?filter=anything%20goes", None, 400),
        ("GET", f"/v2/{LOCATION}/queues?pageToken=made-up", None, 400),
        ("PATCH", f"/v2/{QUEUE}?updateMask=nonsense", {}, 400),
        ("POST", f"/v2/{LOCATION}/queues", {"name": f"{LOCATION}/queues/a", "rateLimits": {"maxBurstSize": "x"}}, 400),
        ("POST", f"/v2/{LOCATION}/queues", {"name": "projects/other/locations/us-central1/queues/a"}, 400),
        ("GET", "/v2/projects/de mo/locations/x/queues/y".replace(" ", "%20"), None, 400),
        ("PUT", f"/v2/{QUEUE}", {}, 404),
        ("GET", "/", None, 404),
        ("GET", f"/v2/{QUEUE}/tasks/%00", None, 400),
    ],
)
def test_invalid_input_is_refused_and_changes_nothing(
    http: Http, verb: str, path: str, body: object, expected: int
) -> None:
    before = http("GET", f"/v2/{LOCATION}/queues"), http("GET", f"/v2/{QUEUE}/tasks")
    status, reply = http(verb, path, body)
    assert status == expected, reply
    assert reply["error"]["code"] == expected
    assert reply["error"]["message"]
    assert (http("GET", f"/v2/{LOCATION}/queues"), http("GET", f"/v2/{QUEUE}/tasks")) == before


def test_a_body_over_the_limit_is_refused(http: Http) -> None:
    request = {"url": URL, "body": base64.b64encode(bytes(1024 * 1024)).decode()}
    status, reply = http("POST", f"/v2/{QUEUE}/tasks", {"task": {**TASK, "httpRequest": request}})
    assert (status, reply["error"]["message"]) == (400, "Task size too large")
    assert http("POST", f"/v2/{QUEUE}/tasks", b" " * (33 * 1024 * 1024))[0] == 400
    assert http("GET", "/healthz")[0] == 200


def test_clearing_the_doublings_returns_to_the_default(http: Http) -> None:
    """Gcloud's --clear-max-doublings puts the field into the mask and omits it; --max-doublings=0 sends zero."""
    path = f"/v2/{QUEUE}?updateMask=retryConfig.maxDoublings"
    assert http("PATCH", path, {"retryConfig": {"maxDoublings": 5}})[1]["retryConfig"]["maxDoublings"] == 5
    assert http("PATCH", path, {"retryConfig": {}})[1]["retryConfig"]["maxDoublings"] == 16
    assert "maxDoublings" not in http("PATCH", path, {"retryConfig": {"maxDoublings": 0}})[1]["retryConfig"]
    assert http("PATCH", path, {})[1]["retryConfig"]["maxDoublings"] == 16


@pytest.fixture
def firebase(emulator: CloudTasksEmulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """firebase-admin for Python, configured to use the emulator."""
    firebase_admin = pytest.importorskip("firebase_admin")
    functions = pytest.importorskip("firebase_admin.functions")
    monkeypatch.setenv("CLOUD_TASKS_EMULATOR_HOST", emulator.address)
    app = firebase_admin.initialize_app(options={"projectId": "demo"}, name="test")
    yield lambda name: functions.task_queue(name, app=app)
    firebase_admin.delete_app(app)


def test_firebase_admin_enqueues_and_deletes(
    emulator: CloudTasksEmulator, firebase: Callable[[str], Any], grpc_client: Client, target: Target
) -> None:
    functions = pytest.importorskip("firebase_admin.functions")
    exceptions = pytest.importorskip("firebase_admin.exceptions")
    queue = firebase("default")
    options = functions.TaskOptions(task_id="mine", uri=f"{target.url}/fn", schedule_time=START + timedelta(days=1))
    assert queue.enqueue({"a": 1}, options) == "mine"
    with pytest.raises(exceptions.AlreadyExistsError):
        queue.enqueue({"a": 1}, options)
    task = grpc_client.get_task(request={"name": f"{QUEUE}/tasks/mine", "response_view": 2})
    assert json.loads(task.http_request.body) == {"a": 1}
    emulator.run_until_idle()
    assert target.hits[0].headers["Authorization"].startswith("Bearer ")
    unnamed = queue.enqueue({}, functions.TaskOptions(schedule_time=START + timedelta(days=2)))
    queue.delete(unnamed)
    with pytest.raises(exceptions.NotFoundError):
        firebase("missing").enqueue({})


def test_a_firebase_function_without_a_url_is_called_by_name(
    emulator: CloudTasksEmulator, firebase: Callable[[str], Any]
) -> None:
    firebase("default").enqueue({"a": 1})
    emulator.advance(timedelta(0))
    assert emulator.attempts()[0].request.url == "http://127.0.0.1:5001/demo/us-central1/default"


@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
def test_gcloud_manages_queues_and_tasks(emulator: CloudTasksEmulator, tmp_path: Path) -> None:
    """A queue and a task from creation to deletion; docs/reference/emulator.md says how to run all other commands."""
    settings = {
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDTASKS": f"http://{emulator.address}/",
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "1",
        "CLOUDSDK_CORE_PROJECT": "demo",
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "CLOUDSDK_CONFIG": str(tmp_path),
    }

    def gcloud(*arguments: str) -> str:
        command = ["gcloud", *arguments, "--location=us-central1"]
        done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)  # noqa: S603
        assert done.returncode == 0, done.stderr
        return done.stdout

    gcloud("tasks", "queues", "create", "from-gcloud", "--max-attempts=3", "--max-dispatches-per-second=5")
    gcloud(
        "tasks", "create-http-task", "t1", "--queue=from-gcloud", f"--url={URL}", "--schedule-time=2027-01-02T00:00:00Z"
    )
    shown = json.loads(gcloud("tasks", "describe", "t1", "--queue=from-gcloud", "--format=json"))
    assert shown["name"] == f"{LOCATION}/queues/from-gcloud/tasks/t1"
