"""Injected faults: they occur, they can be reproduced, and the model keeps its promises under them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.emulator.conftest import DAY, QUEUE, START, Client, Connect, Http, Target
from tests.instants import MINUTE

from cloudsched.emulator import CloudTasksEmulator, Faults, MovableClock
from cloudsched.emulator.model.faults import NONE


def add(client: Client, url: str, number: int = 0) -> None:
    at = START + DAY + timedelta(seconds=number)
    task = {"name": f"{QUEUE}/tasks/t{number}", "http_request": {"url": f"{url}/{number}"}, "schedule_time": at}
    client.create_task(parent=QUEUE, task=task)


def test_duplicate_sends_a_request_twice(emulator: CloudTasksEmulator, grpc_client: Client, target: Target) -> None:
    emulator.inject(Faults(duplicate=1))
    add(grpc_client, target.url)
    assert emulator.run_until_idle() == 2
    first, second = ({k: v for k, v in hit.headers.items() if k != "Host"} for hit in target.hits)
    assert first == second
    assert [attempt.fault for attempt in emulator.attempts()] == ["duplicate"] * 2


def test_out_of_order_lets_later_attempts_overtake(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target
) -> None:
    emulator.inject(Faults(out_of_order=1, shuffle_within=MINUTE))
    for number in range(10):
        add(grpc_client, target.url, number)
    assert emulator.run_until_idle() == 10
    assert target.paths != sorted(target.paths)
    assert sorted(target.paths) == [f"/{number}" for number in range(10)]


def test_drop_answer_fails_an_attempt_after_the_target_ran(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target
) -> None:
    emulator.inject(Faults(drop_answer=1))
    grpc_client.update_queue(queue={"name": QUEUE, "retry_config": {"max_attempts": 3}})
    add(grpc_client, target.url)
    assert emulator.run_until_idle() == 3
    assert len(target.hits) == 3
    assert all("X-CloudTasks-TaskPreviousResponse" not in hit.headers for hit in target.hits)


def test_time_out_fails_an_attempt_as_504_at_its_deadline(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target
) -> None:
    emulator.inject(Faults(time_out=1))
    grpc_client.update_queue(queue={"name": QUEUE, "retry_config": {"max_attempts": 2}})
    add(grpc_client, target.url)
    assert emulator.run_until_idle() == 2
    assert target.hits[1].headers["X-CloudTasks-TaskPreviousResponse"] == "504"
    assert target.hits[1].at - target.hits[0].at == timedelta(minutes=10, seconds=0.1)
    assert [attempt.answer.timed_out for attempt in emulator.attempts()] == [True, True]


def test_faults_distinguish_idempotent_handlers_from_naive_ones(target: Target, connect: Connect) -> None:
    """Under all faults an idempotent handler is right and a naive one is not; the same seed gives the same run."""
    faults = Faults(duplicate=0.3, out_of_order=0.3, late=0.2, drop_answer=0.3, time_out=0.2, seed=11)
    runs: list[list[str]] = []
    for _ in range(2):
        target.hits.clear()
        with CloudTasksEmulator(clock=MovableClock(START, frozen=True), queues=[QUEUE], faults=faults) as emulator:
            client = connect(emulator.address)
            for number in range(20):
                add(client, target.url, number)
            emulator.run_until_idle()
            assert {attempt.fault for attempt in emulator.attempts()} == {"duplicate", "dropAnswer", "timeOut", NONE}
        runs.append(sorted(target.paths))
    assert set(runs[0]) == {f"/{number}" for number in range(20)}
    assert len(runs[0]) > 20
    assert runs[0] == runs[1]


def test_faults_can_be_set_over_http(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target, http: Http
) -> None:
    assert http("POST", "/faults", {"late": 1, "lateBy": "PT2M", "seed": 7})[0] == 200
    wrong: list[object] = [{"duplicate": 2}, {"duplicate": "often"}, {"explode": 1}, {"lateBy": "soon"}, []]
    for body in wrong:
        assert http("POST", "/faults", body)[0] == 400
    with pytest.raises(ValueError, match="probability"):
        Faults(late=-0.1)
    add(grpc_client, target.url)
    emulator.run_until_idle()
    assert target.hits[0].at == START + DAY + 2 * MINUTE
