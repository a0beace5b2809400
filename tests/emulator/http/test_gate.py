"""Who may use the port over HTTP: programs, pages of the same origin, and for the control API who has its key."""

from __future__ import annotations

import json
from http.client import HTTPConnection

import pytest
from tests.cases import try_each
from tests.emulator.conftest import QUEUE

from cloudsched.emulator import CloudTasksEmulator, MovableClock
from cloudsched.emulator.http.server import Gate

TASKS = f"/v2/{QUEUE}/tasks"
TASK = {"task": {"httpRequest": {"url": "http://127.0.0.1:9/"}}}
CHANGES: tuple[tuple[str, object], ...] = (
    ("/clock", {"advance": "P1D"}),
    ("/faults", {"duplicate": 1}),
    (TASKS, TASK),
)
FOREIGN = (
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Host": "evil.example", "Origin": "http://evil.example"},
    {"Host": "evil.example:8123"},
)


def ask(
    emulator: CloudTasksEmulator, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> int:
    connection = HTTPConnection(emulator.address, timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers or {})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


@try_each("headers", FOREIGN)
@try_each("path, body", CHANGES)
def test_a_page_elsewhere_changes_nothing(
    emulator: CloudTasksEmulator, path: str, body: object, headers: dict[str, str]
) -> None:
    """What a browser sends for a page of another site, or under a rebound name, is refused and does nothing."""
    before = emulator.clock.now()
    assert ask(emulator, "POST", path, body, headers) == 403
    assert emulator.clock.now() == before
    assert emulator.run_until_idle() == 0


@pytest.mark.parametrize("path", ["/clock", "/attempts", TASKS])
def test_a_rebound_name_reads_nothing(emulator: CloudTasksEmulator, path: str) -> None:
    """A name that somebody else has let point to this machine is not answered, whatever is asked."""
    assert ask(emulator, "GET", path, headers={"Host": "evil.example"}) == 403
    assert ask(emulator, "GET", path) == 200


def test_what_a_proxy_forwards_is_refused(emulator: CloudTasksEmulator) -> None:
    """On a loopback address, it is for this machine."""
    for header in ("X-Forwarded-For", "CF-Connecting-IP", "Via"):
        assert ask(emulator, "POST", "/clock", {"advance": "P1D"}, {header: "10.0.0.7"}) == 403


@pytest.mark.parametrize(("path", "body"), CHANGES, ids=lambda each: each if isinstance(each, str) else "")
def test_programs_and_pages_of_the_same_origin_are_served(
    emulator: CloudTasksEmulator, path: str, body: object
) -> None:
    """A program sends no Origin; a page that this port serves names it."""
    own = {"Origin": f"http://{emulator.address}"}
    for headers in ({}, own, {**own, "Sec-Fetch-Site": "same-origin"}, {"Host": "localhost:8123"}):
        assert ask(emulator, "POST", path, body, headers) == 200


@pytest.mark.parametrize("name", ["tasks", "tasks.internal:8123"])
def test_programs_in_other_containers_may_use_any_name(name: str) -> None:
    """On an address that others reach, only a browser is asked by which name it came."""
    assert Gate("0.0.0.0").find_refusal("POST", {"Host": name}) is None  # noqa: S104 - what containers listen on
    refused = Gate("0.0.0.0").find_refusal("POST", {"Host": name, "Origin": f"http://{name}"})  # noqa: S104
    assert refused is not None
    assert refused.status == 403


def test_a_key_is_needed_where_there_is_one() -> None:
    """With a control key, nobody without it sees or moves the clock or sees what was sent; queues need none."""
    with CloudTasksEmulator(clock=MovableClock(frozen=True), queues=[QUEUE], control_key="k1") as emulator:
        before = emulator.clock.now()
        for headers in ({}, {"X-Api-Key": "k2"}, {"Authorization": "Bearer"}, {"X-Api-Key": "ÿ"}):
            assert ask(emulator, "POST", "/clock", {"advance": "P1D"}, headers) == 401
            assert ask(emulator, "GET", "/attempts", headers=headers) == 401
        assert emulator.clock.now() == before
        assert ask(emulator, "POST", TASKS, TASK) == 200
        assert ask(emulator, "GET", "/healthz") == 200
        assert ask(emulator, "POST", "/clock", {"advance": "P1D"}, {"X-Api-Key": "k1"}) == 200
        assert ask(emulator, "GET", "/attempts", headers={"Authorization": "Bearer k1"}) == 200
        assert emulator.clock.now() > before
