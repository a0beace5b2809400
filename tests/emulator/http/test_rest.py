"""REST as other clients use it: curl, firebase-admin; and invalid requests."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.cases import try_each
from tests.emulator.conftest import LOCATION, QUEUE, START, URL, Client, Http, Target
from tests.instants import DAY

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
        ("POST", f"/v2/{QUEUE}/tasks", b"[" * 100_000, 400),
        ("POST", f"/v2/{QUEUE}/tasks", {}, 400),
        ("POST", f"/v2/{QUEUE}/tasks", {"task": TASK, "unknown": 1}, 400),
        ("POST", f"/v2/{QUEUE}/tasks", {"task": {**TASK, "scheduleTime": "tomorrow"}}, 400),
        ("POST", f"/v2/{QUEUE}/tasks", {"task": {**TASK, "httpRequest": {"url": URL, "body": "***"}}}, 400),
        ("POST", f"/v2/{QUEUE}/tasks", {"task": {**TASK, "httpRequest": {"url": URL, "httpMethod": "FETCH"}}}, 400),
        ("GET", f"/v2/{QUEUE}/tasks?pageSize=many", None, 400),
        ("GET", f"/v2/{LOCATION}/queues?pageToken=made-up", None, 400),
        ("PATCH", f"/v2/{QUEUE}?updateMask=nonsense", {}, 400),
        ("POST", f"/v2/{LOCATION}/queues", {"name": f"{LOCATION}/queues/a", "rateLimits": {"maxBurstSize": "x"}}, 400),
        ("POST", f"/v2/{LOCATION}/queues", {"name": "projects/other/locations/us-central1/queues/a"}, 400),
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
    options = functions.TaskOptions(task_id="mine", uri=f"{target.url}/fn", schedule_time=START + DAY)
    assert queue.enqueue({"a": 1}, options) == "mine"
    with pytest.raises(exceptions.AlreadyExistsError):
        queue.enqueue({"a": 1}, options)
    task = grpc_client.get_task(request={"name": f"{QUEUE}/tasks/mine", "response_view": 2})
    assert json.loads(task.http_request.body) == {"a": 1}
    emulator.run_until_idle()
    assert target.hits[0].headers["Authorization"].startswith("Bearer ")
    unnamed = queue.enqueue({}, functions.TaskOptions(schedule_time=START + 2 * DAY))
    queue.delete(unnamed)
    with pytest.raises(exceptions.NotFoundError):
        firebase("missing").enqueue({})


def test_a_firebase_function_without_a_url_is_called_by_name(
    emulator: CloudTasksEmulator, firebase: Callable[[str], Any]
) -> None:
    firebase("default").enqueue({"a": 1})
    emulator.advance(timedelta(0))
    assert emulator.attempts()[0].request.url == "http://127.0.0.1:5001/demo/us-central1/default"
