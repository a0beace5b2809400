"""The main job, end to end: a task goes the whole way over real sockets, on both stores."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from tests.harness import SECRET, START, Reply, request, wait_until
from tests.stories.conftest import LocalStack

DAILY = {"rrule": "FREQ=DAILY", "dtstart": "2027-01-01T09:00:00", "timezone": "Europe/Paris"}


def test_a_task_is_created_run_recorded_and_planned_again(world: LocalStack) -> None:
    """What HTTP created is run by the executor at its instant, recorded, and its next occurrence is planned."""
    created = world.create(id="tea", schedule=DAILY)
    world.advance(timedelta(hours=1))

    assert created.status == 201
    assert created.body["nextExecutionTime"] == "2027-01-01T08:00:00Z"
    (record,) = world.executions("tea")
    assert (record["status"], record["startedAt"]) == ("SUCCEEDED", "2027-01-01T08:00:00Z")
    assert record["content"] == "It is ready."
    task = world.api("GET", "/v1/tasks/tea").body
    assert (task["status"], task["nextExecutionTime"]) == ("ACTIVE", "2027-01-02T08:00:00Z")
    assert [message["title"] for message in world.inbox()] == ["Tea"]


def test_a_task_stays_at_nine_across_a_clock_change(world: LocalStack) -> None:
    """Every day at 9 in Paris is 8:00 UTC before the last Sunday of March and 7:00 UTC from it on."""
    world.create(id="tea", schedule={**DAILY, "dtstart": "2027-03-26T09:00:00"})
    world.advance(datetime(2027, 3, 30, tzinfo=UTC) - START)
    ran = [record["scheduledFor"] for record in world.executions("tea")]
    assert ran[::-1] == [
        "2027-03-26T08:00:00Z",
        "2027-03-27T08:00:00Z",
        "2027-03-28T07:00:00Z",
        "2027-03-29T07:00:00Z",
    ]


def test_a_yearly_task_comes_by_hops(world: LocalStack) -> None:
    """A year away is reached on its instant by dispatches of at most 30 days."""
    world.create(id="birthday", schedule={**DAILY, "rrule": "FREQ=YEARLY", "dtstart": "2027-12-10T09:00:00"})
    world.advance(timedelta(days=366))
    delivered = [START, *(attempt.dispatch_at for attempt in world.stack.emulator.attempts())]
    waits = [later - earlier for earlier, later in pairwise(delivered)]
    assert max(waits) <= timedelta(days=30)
    assert len(waits) == 12, "eleven hops and the run"
    assert [record["startedAt"] for record in world.executions("birthday")] == ["2027-12-10T08:00:00Z"]


def test_a_duplicate_delivery_changes_nothing(world: LocalStack) -> None:
    """What the queue delivers a second time is answered with 200, and is neither run nor recorded again."""
    world.create(id="tea", schedule=DAILY)
    world.advance(timedelta(hours=1))
    before = world.executions("tea"), world.inbox(), world.api("GET", "/v1/tasks/tea").body
    (first,) = world.stack.emulator.attempts()

    replies = [_deliver(world, first.request.body, first.request.headers["X-Cloudsched-Token"]) for _ in range(3)]

    assert [(reply.status, reply.body["action"]) for reply in replies] == [(200, "dropped")] * 3
    assert (world.executions("tea"), world.inbox(), world.api("GET", "/v1/tasks/tea").body) == before


def test_a_wrong_token_runs_nothing(world: LocalStack) -> None:
    """A delivery without the token of its very body gets 401 and is not run, though it is due."""
    world.create(id="tea", schedule=DAILY)
    world.advance(timedelta(hours=1))
    (first,) = world.stack.emulator.attempts()
    token = first.request.headers["X-Cloudsched-Token"]
    tomorrow = first.request.body.replace(b"20270101T", b"20270102T").replace(b"2027-01-01T", b"2027-01-02T")
    world.stack.clock.freeze(START + timedelta(days=1, hours=1))

    for body, wrong in ((tomorrow, token), (first.request.body, ""), (tomorrow, "v1=" + "0" * 64), (tomorrow, SECRET)):
        assert _deliver(world, body, wrong).status == 401


@pytest.mark.parametrize("base", ["sqlite"], indirect=True)  # one store is enough: it is about the queue
def test_the_queue_is_down_when_a_task_is_created(world: LocalStack) -> None:
    """The caller is told that the task is saved and its dispatch deferred; the sweep sends it, and it runs in time."""
    world.stack.emulator.stop()
    created = world.create(id="tea", schedule=DAILY)
    world.stack.emulator.start()

    assert created.status == 201
    assert created.body["dispatchDeferred"] is True
    assert "deferred" in created.body["message"]
    # gRPC waits longer and longer before it connects again. A sweep that came before that would be the only one: the
    # clock stands still.
    wait_until(lambda: "dispatchDeferred" not in world.create(schedule=DAILY).body, "the queue is reached again")
    world.advance(timedelta(minutes=1))
    wait_until(lambda: "dispatchDeferred" not in world.api("GET", "/v1/tasks/tea").body, "the sweep sends it")
    world.advance(timedelta(hours=1))
    assert [record["startedAt"] for record in world.executions("tea")] == ["2027-01-01T08:00:00Z"]


def test_the_stack_sweeps_by_itself(world: LocalStack) -> None:
    """What the queue has lost is found by the stack's own sweep after the clock has moved, and runs."""
    world.create(id="tea", schedule=DAILY)
    _purge(world)
    world.advance(timedelta(hours=1))
    wait_until(world.inbox, "the sweep finds it")
    assert [record["status"] for record in world.executions("tea")] == ["SUCCEEDED"]


def _purge(world: LocalStack) -> None:
    settings = world.stack.settings
    queue = f"/v2/projects/{settings.project}/locations/{settings.location}/queues/{settings.queue}"
    assert request(f"http://{world.stack.emulator.address}", "POST", f"{queue}:purge", {}).status == 200


def _deliver(world: LocalStack, body: bytes, token: str) -> Reply:
    return request(world.stack.url, "POST", "/v1/tasks/execute", body, {"X-Cloudsched-Token": token} if token else {})
