"""The life of a task from end to end, over real sockets, on both stores."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from tests.harness import SECRET, START, Reply, request, wait_until
from tests.stories.conftest import LocalStack

from cloudsched.adapters.google import channel, cloud_tasks
from cloudsched.adapters.google.backoff import Backoff

DAILY = {"rrule": "FREQ=DAILY", "dtstart": "2027-01-01T09:00:00", "timezone": "Europe/Paris"}


@pytest.fixture
def _notice_outages_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a dispatch up after half a second, and look for the queue that went away every tenth of a second."""
    pauses = [(f"grpc.{which}_reconnect_backoff_ms", 100) for which in ("initial", "min", "max")]
    monkeypatch.setattr(channel, "OPTIONS", (*channel.OPTIONS, *pauses))
    monkeypatch.setattr(cloud_tasks, "Backoff", lambda _: Backoff(0.5))


def test_a_task_is_created_run_recorded_and_planned_again(local_stack: LocalStack) -> None:
    """A task that was created over HTTP runs at its instant and is recorded, and its next occurrence is planned."""
    created = local_stack.create(id="tea", schedule=DAILY)
    local_stack.advance(timedelta(hours=1))

    assert created.status == 201
    assert created.body["nextExecutionTime"] == "2027-01-01T08:00:00Z"
    (record,) = local_stack.executions("tea")
    assert (record["status"], record["startedAt"]) == ("SUCCEEDED", "2027-01-01T08:00:00Z")
    assert record["content"] == "It is ready."
    task = local_stack.api("GET", "/v1/tasks/tea").body
    assert (task["status"], task["nextExecutionTime"]) == ("ACTIVE", "2027-01-02T08:00:00Z")
    assert [message["title"] for message in local_stack.inbox()] == ["Tea"]


def test_a_task_stays_at_nine_across_a_clock_change(local_stack: LocalStack) -> None:
    """Every day at 9 in Paris is 8:00 UTC before the last Sunday of March, and 7:00 UTC from then on."""
    local_stack.create(id="tea", schedule={**DAILY, "dtstart": "2027-03-26T09:00:00"})
    local_stack.advance(datetime(2027, 3, 30, tzinfo=UTC) - START)
    ran = [record["scheduledFor"] for record in local_stack.executions("tea")]
    assert ran[::-1] == [
        "2027-03-26T08:00:00Z",
        "2027-03-27T08:00:00Z",
        "2027-03-28T07:00:00Z",
        "2027-03-29T07:00:00Z",
    ]


def test_a_yearly_task_is_reached_by_hops(local_stack: LocalStack) -> None:
    """An instant a year away is reached exactly, by dispatches of at most 30 days."""
    local_stack.create(id="birthday", schedule={**DAILY, "rrule": "FREQ=YEARLY", "dtstart": "2027-12-10T09:00:00"})
    local_stack.advance(timedelta(days=366))
    delivered = [START, *(attempt.dispatch_at for attempt in local_stack.stack.emulator.attempts())]
    waits = [later - earlier for earlier, later in pairwise(delivered)]
    assert max(waits) <= timedelta(days=30)
    assert len(waits) == 12, "eleven hops and the run"
    assert [record["startedAt"] for record in local_stack.executions("birthday")] == ["2027-12-10T08:00:00Z"]


def test_a_duplicate_delivery_changes_nothing(local_stack: LocalStack) -> None:
    """A second delivery is answered with 200, and is neither run nor recorded again."""
    local_stack.create(id="tea", schedule=DAILY)
    local_stack.advance(timedelta(hours=1))
    before = local_stack.executions("tea"), local_stack.inbox(), local_stack.api("GET", "/v1/tasks/tea").body
    (first,) = local_stack.stack.emulator.attempts()

    replies = [_deliver(local_stack, first.request.body, first.request.headers["X-Cloudsched-Token"]) for _ in range(3)]

    assert [(reply.status, reply.body["action"]) for reply in replies] == [(200, "dropped")] * 3
    assert (local_stack.executions("tea"), local_stack.inbox(), local_stack.api("GET", "/v1/tasks/tea").body) == before


def test_a_wrong_token_runs_nothing(local_stack: LocalStack) -> None:
    """A delivery without the token of exactly its body gets 401 and is not run, though it is due."""
    local_stack.create(id="tea", schedule=DAILY)
    local_stack.advance(timedelta(hours=1))
    (first,) = local_stack.stack.emulator.attempts()
    token = first.request.headers["X-Cloudsched-Token"]
    tomorrow = first.request.body.replace(b"20270101T", b"20270102T").replace(b"2027-01-01T", b"2027-01-02T")
    local_stack.stack.clock.freeze(START + timedelta(days=1, hours=1))

    for body, wrong in ((tomorrow, token), (first.request.body, ""), (tomorrow, "v1=" + "0" * 64), (tomorrow, SECRET)):
        assert _deliver(local_stack, body, wrong).status == 401
    # A stack that is stopped while the queue delivers what is due waits for the delivery, which waits for the queue.
    wait_until(lambda: len(local_stack.stack.emulator.attempts()) == 2, "the queue has delivered it with its token")


@pytest.mark.usefixtures("_notice_outages_quickly")
@pytest.mark.parametrize("base", ["sqlite"], indirect=True)  # one store is enough: it is about the queue
def test_a_task_created_while_the_queue_is_down_runs_in_time(local_stack: LocalStack) -> None:
    """The response says that the task is saved and its dispatch deferred; the sweep sends the dispatch."""
    local_stack.stack.emulator.stop()
    created = local_stack.create(id="tea", schedule=DAILY)
    local_stack.stack.emulator.start()

    assert created.status == 201
    assert created.body["dispatchDeferred"] is True
    assert "deferred" in created.body["message"]
    # gRPC waits longer and longer before it connects again. A sweep that came before that would be the only one: the
    # clock stands still.
    wait_until(lambda: "dispatchDeferred" not in local_stack.create(schedule=DAILY).body, "the queue is reached again")
    local_stack.advance(timedelta(minutes=1))
    wait_until(lambda: "dispatchDeferred" not in local_stack.api("GET", "/v1/tasks/tea").body, "the sweep sends it")
    local_stack.advance(timedelta(hours=1))
    assert [record["startedAt"] for record in local_stack.executions("tea")] == ["2027-01-01T08:00:00Z"]


def test_the_stack_runs_its_own_sweep(local_stack: LocalStack) -> None:
    """After the clock has moved, the stack's sweep finds a dispatch that the queue has lost, and the task runs."""
    local_stack.create(id="tea", schedule=DAILY)
    _purge(local_stack)
    local_stack.advance(timedelta(hours=1))
    wait_until(local_stack.inbox, "the sweep finds it")
    assert [record["status"] for record in local_stack.executions("tea")] == ["SUCCEEDED"]


def _purge(local_stack: LocalStack) -> None:
    settings = local_stack.stack.settings
    queue = f"/v2/projects/{settings.project}/locations/{settings.location}/queues/{settings.queue}"
    assert request(f"http://{local_stack.stack.emulator.address}", "POST", f"{queue}:purge", {}).status == 200


def _deliver(local_stack: LocalStack, body: bytes, token: str) -> Reply:
    return request(
        local_stack.stack.url, "POST", "/v1/tasks/execute", body, {"X-Cloudsched-Token": token} if token else {}
    )
