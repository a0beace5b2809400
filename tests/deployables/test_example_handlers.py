"""The example handlers of `functions/handlers.py`."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.harness import ROOT
from tests.run.process_state import keep_process

from cloudsched import Execution
from cloudsched.config.access import Access
from cloudsched.errors import InvalidPayload
from cloudsched.local.app_loader import load_app
from cloudsched.testing import START, Simulation

SOON = {"at": (START + timedelta(minutes=1)).isoformat()}


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    nearby = Access(reachable=("127.0.0.0/8",))  # the tests' own web pages
    handlers = str(ROOT / "functions" / "handlers.py")
    with keep_process(), Simulation(load_app(handlers).app, access=nearby) as opened:
        yield opened


@contextmanager
def site(status: int, silent: threading.Event | None = None) -> Iterator[str]:
    """Serve a page with this status; if `silent` is given, do not respond until that event is set."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if silent:
                silent.wait(60)
            self.send_response(status)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            if silent:
                silent.set()
            server.shutdown()


def check(simulation: Simulation, **payload: Any) -> Execution:
    """Run an uptime check, by default with the longest timeout allowed, and return its execution."""
    simulation.app.create(
        id="up",
        owner="ada",
        title="Up?",
        handler="check-uptime",
        payload={"timeoutSeconds": 30} | payload,
        schedule=SOON,
        retry={"maxRetries": 0},
    )
    simulation.advance(timedelta(minutes=5))
    (execution,) = simulation.executions("up")
    return execution


def test_an_uptime_check_records_status_and_latency(simulation: Simulation) -> None:
    """The execution's content holds what the check measured."""
    with site(200) as url:
        execution = check(simulation, url=url)
    assert execution.status == "SUCCEEDED"
    assert execution.content["status"] == 200
    assert 0 < execution.content["milliseconds"] < 30_000


@pytest.mark.parametrize("status", [500, 302])
def test_a_wrong_status_is_a_failure(simulation: Simulation, status: int) -> None:
    """An unexpected status fails the execution with an error that names it; redirects are not followed."""
    with site(status) as url:
        execution = check(simulation, url=url)
    assert execution.status == "FAILED"
    assert execution.error
    assert f"answered {status}" in execution.error.message


def test_a_silent_page_fails_in_time(simulation: Simulation) -> None:
    """A page that does not respond fails the check after the timeout."""
    with site(200, silent=threading.Event()) as url:
        execution = check(simulation, url=url, timeoutSeconds=0.2)
    assert (execution.status, execution.error and execution.error.type) == ("FAILED", "ReadTimeout")


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"url": "file:///etc/passwd"}, "payload.url"),
        ({"url": "ftp://example.com"}, "payload.url"),
        ({"url": "example"}, "payload.url"),
        ({"url": "https://example.com", "timeoutSeconds": 31}, "payload.timeoutSeconds"),
        ({"url": "https://example.com", "expectStatus": 99}, "payload.expectStatus"),
        ({"url": "https://example.com", "follow": True}, "payload.follow"),
        ({}, "payload.url"),
    ],
)
def test_an_invalid_payload_is_refused(simulation: Simulation, payload: dict[str, Any], field: str) -> None:
    """Creation refuses other URL schemes, out-of-range values and unknown fields."""
    with pytest.raises(InvalidPayload) as refused:
        simulation.app.create(owner="ada", title="Up?", handler="check-uptime", payload=payload, schedule=SOON)
    assert refused.value.field == field


def test_a_reminder_is_in_the_inbox(simulation: Simulation) -> None:
    """Only the owner gets the message, under the delivery title if there is one."""
    reminder: dict[str, Any] = {
        "owner": "ada",
        "handler": "remind",
        "payload": {"text": "It is ready."},
        "schedule": SOON,
    }
    simulation.app.create(title="Tea", **reminder)
    simulation.app.create(title="Coffee", delivery_title="Kitchen", **reminder)
    simulation.advance(timedelta(minutes=2))
    assert {(message.title, message.body) for message in simulation.inbox("ada")} == {
        ("Tea", "It is ready."),
        ("Kitchen", "It is ready."),
    }
    assert simulation.inbox("bob") == []
