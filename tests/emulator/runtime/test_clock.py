"""Moving the clock delivers every dispatch at its instant, in order, and waits for each response."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

import pytest
from tests.cases import try_each
from tests.emulator.conftest import DAY, QUEUE, START, Client, Connect, Hit, Http, Target, add
from tests.harness import WAIT_SECONDS, wait_until
from tests.instants import MINUTE, SECOND

from cloudsched.emulator import ClockBusy, CloudTasksEmulator, MovableClock, NotIdle


def test_a_frozen_clock_delivers_only_what_is_due(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target
) -> None:
    add(grpc_client, f"{target.url}/later", timedelta(milliseconds=1))
    add(grpc_client, f"{target.url}/now", timedelta(0))
    wait_until(lambda: len(emulator.attempts()) == 1)
    assert target.paths == ["/now"]
    assert emulator.clock.now() == START


def test_each_dispatch_is_delivered_in_order_at_its_exact_instant(
    emulator: CloudTasksEmulator, client: Client, target: Target
) -> None:
    for days in (30, 3, 17, 3, 29):
        add(client, f"{target.url}/{days}", days * DAY)
    assert emulator.advance(30 * DAY) == 5
    assert [hit.at - START for hit in target.hits] == [3 * DAY, 3 * DAY, 17 * DAY, 29 * DAY, 30 * DAY]
    assert emulator.clock.now() == START + 30 * DAY


def test_tasks_created_during_a_move_are_delivered_during_it(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target
) -> None:
    """In a chain of 30-day hops each delivery creates the next task: 13 in 400 days."""

    def hop(hit: Hit) -> int:
        at = hit.at + 30 * DAY
        grpc_client.create_task(parent=QUEUE, task={"http_request": {"url": f"{target.url}/hop"}, "schedule_time": at})
        return 200

    target.answer = hop
    add(grpc_client, f"{target.url}/hop", 30 * DAY)
    assert emulator.advance(400 * DAY) == 13
    assert [hit.at for hit in target.hits] == [START + (n + 1) * 30 * DAY for n in range(13)]


def test_the_clock_waits_for_the_response_of_a_handler(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target
) -> None:
    seen: list[tuple[datetime, datetime]] = []

    def slowly(hit: Hit) -> int:
        before = hit.at
        threading.Event().wait(0.05)
        seen.append((before, emulator.clock.now()))
        return 200

    target.answer = slowly
    for seconds in range(3):
        add(grpc_client, target.url, timedelta(seconds=seconds))
    emulator.advance(10 * SECOND)
    assert len(seen) == 3
    assert all(before == after for before, after in seen)


def test_run_until_idle_stops_at_the_last_delivery(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target
) -> None:
    for days in (1, 20):
        add(grpc_client, target.url, days * DAY)
    assert emulator.run_until_idle() == 2
    assert emulator.clock.now() == START + 20 * DAY
    assert emulator.run_until_idle() == 0


def test_run_until_idle_stops_an_endless_chain_at_its_limit(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target
) -> None:
    target.answer = lambda _hit: 500
    grpc_client.update_queue(
        queue={"name": QUEUE, "retry_config": {"max_attempts": -1}},
        update_mask={"paths": ["retry_config.max_attempts"]},
    )
    add(grpc_client, target.url, timedelta(0))
    with pytest.raises(NotIdle) as raised:
        emulator.run_until_idle(limit=20)
    assert raised.value.delivered == 20


def test_a_handler_cannot_move_the_clock_that_waits_for_it(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target, http: Http
) -> None:
    answers: list[int] = []

    def move(_hit: Hit) -> int:
        answers.extend(http("POST", "/clock", {verb: True})[0] for verb in ("runUntilIdle", "freeze", "resume"))
        with pytest.raises(ClockBusy):
            emulator.advance(DAY)
        return 200

    target.answer = move
    add(grpc_client, target.url, DAY)
    emulator.advance(DAY)
    assert answers == [409, 409, 409]


def test_a_running_clock_can_be_advanced_and_keeps_running(target: Target, connect: Connect) -> None:
    with CloudTasksEmulator(queues=[QUEUE]) as emulator:
        client = connect(emulator.address)
        began = emulator.clock.now()
        at = began + 30 * DAY - MINUTE
        client.create_task(parent=QUEUE, task={"http_request": {"url": target.url}, "schedule_time": at})
        assert emulator.advance(30 * DAY) == 1
        assert emulator.clock.mode == "running"
        soon = emulator.clock.now() + timedelta(milliseconds=100)
        assert soon - began > 30 * DAY
        client.create_task(parent=QUEUE, task={"http_request": {"url": target.url}, "schedule_time": soon})
        wait_until(lambda: len(emulator.attempts()) == 2)
        assert emulator.attempts()[1].dispatch_at >= soon


def test_a_clock_moves_forward_only_and_to_instants_with_a_zone() -> None:
    """By nothing, too; what is refused leaves it running."""
    naive = datetime(2028, 1, 1)  # noqa: DTZ001 - the point of the test
    with CloudTasksEmulator() as emulator:
        assert emulator.advance(timedelta(0)) == 0
        for call in (emulator.advance_to, emulator.clock.freeze, MovableClock):
            with pytest.raises(ValueError, match="time zone"):
                call(naive)
        with pytest.raises(ValueError, match="past"):
            emulator.advance(-DAY)
        with pytest.raises(OverflowError):
            emulator.advance(timedelta(days=999_999_999))
        assert emulator.clock.mode == "running"


def test_the_clock_stops_waiting_for_a_silent_target(clock: MovableClock, target: Target, connect: Connect) -> None:
    """After `patience` of real time the clock moves on, and the attempt fails as 504 at its deadline."""

    class Patience(timedelta):
        """Short for the silent target, long for all later ones."""

        def total_seconds(self) -> float:
            return 0.5 if clock.now() == START else WAIT_SECONDS

    released = threading.Event()
    target.answer = lambda hit: 200 if hit.path == "/quick" or released.wait(5 * WAIT_SECONDS) else 500
    with CloudTasksEmulator(clock=clock, queues=[QUEUE], patience=Patience()) as emulator:
        client = connect(emulator.address)
        name = add(client, f"{target.url}/silent", timedelta(0))
        add(client, f"{target.url}/quick", MINUTE)
        assert emulator.advance(10 * MINUTE) == 2
        quick, silent = emulator.attempts()
        assert quick.response_at == START + MINUTE
        assert silent.response_at == START + 10 * MINUTE
        assert silent.answer.timed_out
        assert client.get_task(name=name).last_attempt.response_status.code == 4
        released.set()


def test_the_clock_can_be_moved_over_http(http: Http) -> None:
    assert http("GET", "/clock") == (200, {"now": "2027-01-01T00:00:00.000000Z", "mode": "frozen"})
    assert http("POST", "/clock", {"advance": "P30D"})[1]["now"] == "2027-01-31T00:00:00.000000Z"
    assert http("POST", "/clock", {"advance": 1.5})[1]["now"] == "2027-01-31T00:00:01.500000Z"
    reply = http("POST", "/clock", {"advanceTo": "2027-03-01T02:00:00+02:00"})
    assert reply == (200, {"now": "2027-03-01T00:00:00.000000Z", "mode": "frozen", "delivered": 0})
    assert http("POST", "/clock", {"freeze": "2030-01-01T00:00:00Z"})[1]["now"] == "2030-01-01T00:00:00.000000Z"
    assert http("POST", "/clock", {"runUntilIdle": True})[1]["idle"] is True
    assert http("POST", "/clock", {"resume": True})[1]["mode"] == "running"
    assert http("POST", "/clock", {"freeze": True})[1]["mode"] == "frozen"
    assert http("GET", "/healthz") == (200, {"status": "ok"})


@try_each(
    "body",
    [
        b"",
        {},
        {"advance": -1},
        {"advance": "P99999999D"},
        {"advanceTo": "2026-01-01T00:00:00Z"},
        {"advanceTo": "2028-01-01T00:00:00"},
        {"runUntilIdle": 0},
        {"advance": 1, "resume": True},
        {"rewind": 1},
    ],
)
def test_an_invalid_clock_command_is_refused_and_moves_nothing(http: Http, body: object) -> None:
    status, problem = http("POST", "/clock", body)
    assert status == 400
    assert problem["error"]["message"]
    assert http("GET", "/clock")[1]["now"] == "2027-01-01T00:00:00.000000Z"
