"""The sweep's dead-man's switch: what it is told, and that nothing about it holds up a sweep or leaks its address."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from tests.harness import WAIT_SECONDS
from tests.instants import MINUTE
from werkzeug.wrappers import Request, Response

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.safe_http import dead_man_switch as switch_calls
from cloudsched.adapters.safe_http import make_session
from cloudsched.adapters.safe_http.dead_man_switch import SwitchCaller, list_reachable
from cloudsched.engine.sweep.sweeper import Sweep
from cloudsched.errors import Misconfigured, StoreUnavailable
from cloudsched.local.wsgi_server import WebServer
from cloudsched.runtime.many_tasks import SweepAlarm
from cloudsched.testing import START, Simulation


class Switch:
    """A switch as healthchecks.io has them: each address is a check, and what is posted is kept with the call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str]] = []
        """The method, the path with its query, and what was posted."""
        self.status = 200
        self.location = ""
        self.url = ""

    def application(self) -> Callable[..., object]:
        @Request.application
        def answer(request: Request) -> Response:
            text = request.get_data(as_text=True)
            self.calls.append((request.method, request.full_path.rstrip("?"), text))
            return Response("OK", self.status, headers={"Location": self.location} if self.location else {})

        return answer


@pytest.fixture
def switch() -> Iterator[Switch]:
    made = Switch()
    with WebServer(made.application()) as server:  # type: ignore[arg-type]  # a WSGI application
        server.serve()
        made.url = f"http://{server.address}"
        yield made


def make_caller(*, is_deployed: bool = False) -> SwitchCaller:
    reachable = list_reachable(is_deployed=is_deployed)
    return SwitchCaller(partial(make_session, reachable, max_seconds=WAIT_SECONDS, max_bytes=64_000))


def make_ping(*addresses: str, is_deployed: bool = False) -> SweepAlarm:
    return SweepAlarm(addresses, make_caller(is_deployed=is_deployed))


def fail() -> Sweep:
    raise StoreUnavailable("Firestore", "it is down")


def test_each_sweep_calls_the_address_of_how_it_went(switch: Switch) -> None:
    """Good: all repaired, and nothing due for too long. Bad: anything else; an exception goes on to whoever swept."""
    ping = make_ping(f"{switch.url}/id", f"{switch.url}/id/fail")
    for found, path in (
        (Sweep(examined=3, dispatched=2, overdue_seconds=600), "/id"),
        (Sweep(overdue_seconds=601), "/id/fail"),
        (Sweep(failed=1), "/id/fail"),
        (Sweep(unsent=1), "/id"),
    ):
        assert ping.run(lambda found=found: found) is found  # type: ignore[misc]  # called at once
        assert switch.calls[-1][:2] == ("POST", path)
    assert switch.calls[0][2] == "overdueSeconds=600 examined=3 dispatched=2 unsent=0 failed=0"
    with pytest.raises(StoreUnavailable):
        ping.run(fail)
    assert switch.calls[-1] == ("POST", "/id/fail", "the sweep failed: StoreUnavailable")
    assert len(switch.calls) == 5


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_is_no_success_is_logged_without_the_address(
    switch: Switch, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A redirect is not followed; the line names the host and the status, and nothing that could silence the alarm."""
    switch.status, switch.location = status, f"{switch.url}/elsewhere"
    with caplog.at_level(logging.WARNING):
        make_ping(f"{switch.url}/secret-id").run(Sweep)
    assert len(switch.calls) == 1
    (line,) = caplog.records
    assert (line.action, str(status) in line.getMessage()) == ("ping_failed", True)  # type: ignore[attr-defined]
    assert "secret-id" not in caplog.text


@pytest.mark.parametrize(
    ("address", "is_deployed"),
    [
        ("http://169.254.169.254/computeMetadata/v1/", False),
        ("http://[fd00:ec2::254]/latest/", False),
        ("http://168.63.129.16/", False),
        ("http://100.100.100.200/latest/", False),
        ("http://127.0.0.1:{port}/", True),
        ("http://localhost:{port}/", True),
    ],
)
def test_no_address_leads_to_a_metadata_server(
    switch: Switch, address: str, *, is_deployed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a name resolves to; nor, in the cloud, to the instance itself. Nothing is sent."""
    port = switch.url.rpartition(":")[2]
    make_ping(address.replace("{port}", port), is_deployed=is_deployed).run(Sweep)
    assert "InvalidInput" in caplog.text
    assert switch.calls == []


def test_a_switch_that_does_not_answer_holds_up_no_sweep(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The sweep waits for a moment and goes on; the next one skips a call that would be a second at the same time."""
    monkeypatch.setattr(switch_calls, "WAIT", 0.01)
    calls: list[None] = []
    may_end = threading.Event()

    def hang() -> None:
        calls.append(None)
        may_end.wait(WAIT_SECONDS)
        raise TimeoutError

    ping = SweepAlarm(("https://hc.example/id",), SwitchCaller(hang))  # type: ignore[arg-type]  # makes none
    ping.run(Sweep)
    ping.run(Sweep)
    assert "has not ended" in caplog.text
    (call,) = [thread for thread in threading.enumerate() if thread.name == "cloudsched-switch"]
    may_end.set()
    call.join(WAIT_SECONDS)
    assert len(calls) == 1


def test_the_app_tells_the_switch_how_long_work_has_been_due(switch: Switch) -> None:
    """The product's own sweep, with the settings' addresses: good while work is in time, then bad."""
    app = App(Settings())
    app.handler("tick")(lambda: "tock")
    addresses = (f"{switch.url}/id", f"{switch.url}/id/fail")
    with Simulation(app, sweep_ping=addresses) as sim:
        app.create(handler="tick", schedule=Schedule.once(START + MINUTE))
        sim.queue.purge()
        sweep = partial(app.container.many_tasks.sweep, app.sweep)
        sim.clock.advance(9 * MINUTE)
        sweep()
        sim.clock.advance(9 * MINUTE)
        sweep()
    assert [call[:2] for call in switch.calls] == [("POST", "/id"), ("POST", "/id/fail")]
    assert switch.calls[0][2].startswith("overdueSeconds=480 ")


def test_settings_hide_the_addresses() -> None:
    """Whoever knows one can silence the alarm: no repr shows it."""
    address = "https://hc.example/secret-id"
    settings = Settings.from_environment({"CLOUDSCHED_SWEEP_PING": f"{address} {address}/fail"})
    assert settings.sweep_ping == (address, f"{address}/fail")
    assert "secret-id" not in repr(settings)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("http://hc.example/secret-id", "number 1, that is not https; http is for this machine and its own network"),
        ("https://a.example http://8.8.8.8/secret-id", "number 2, that is not https"),
        ("hc.example/secret-id", "number 1, that is not a URL"),
        ("https://u:secret-id@hc.example/1", "contains a user or a password"),
        ("https://a.example https://b.example https://c.example/secret-id", "has 3 addresses"),
    ],
)
def test_an_address_that_cannot_be_right_is_refused_at_the_start(text: str, problem: str) -> None:
    """The message says which one and why, and does not show it."""
    with pytest.raises(Misconfigured, match=problem) as refused:
        Settings.from_environment({"CLOUDSCHED_SWEEP_PING": text})
    assert "secret-id" not in str(refused.value)
