"""The life of a task from end to end, over real sockets, on both stores."""

from itertools import pairwise

from tests.harness import START, Reply, request, wait_until
from tests.instants import DAY, HOUR
from tests.stories.conftest import LocalStack

DAILY = {"rrule": "FREQ=DAILY", "dtstart": "2027-01-01T09:00:00", "timezone": "Europe/Paris"}


def test_a_task_is_created_run_recorded_and_planned_again(local_stack: LocalStack) -> None:
    """A task that was created over HTTP runs at its instant and is recorded, and its next occurrence is planned."""
    created = local_stack.create(id="tea", schedule=DAILY)
    local_stack.advance(HOUR)

    assert created.status == 201
    assert created.body["nextExecutionTime"] == "2027-01-01T08:00:00Z"
    (record,) = local_stack.executions("tea")
    assert (record["status"], record["startedAt"]) == ("SUCCEEDED", "2027-01-01T08:00:00Z")
    assert record["content"] == "It is ready."
    task = local_stack.api("GET", "/v1/tasks/tea").body
    assert (task["status"], task["nextExecutionTime"]) == ("ACTIVE", "2027-01-02T08:00:00Z")
    assert [message["title"] for message in local_stack.inbox()] == ["Tea"]


def test_a_yearly_task_is_reached_by_hops(local_stack: LocalStack) -> None:
    """An instant a year away is reached exactly, by dispatches of at most 30 days."""
    local_stack.create(id="birthday", schedule={**DAILY, "rrule": "FREQ=YEARLY", "dtstart": "2027-12-10T09:00:00"})
    local_stack.advance(366 * DAY)
    delivered = [START, *(attempt.dispatch_at for attempt in local_stack.stack.emulator.attempts())]
    waits = [later - earlier for earlier, later in pairwise(delivered)]
    assert max(waits) <= 30 * DAY
    assert len(waits) == 12, "eleven hops and the run"
    assert [record["startedAt"] for record in local_stack.executions("birthday")] == ["2027-12-10T08:00:00Z"]


def test_a_duplicate_delivery_changes_nothing(local_stack: LocalStack) -> None:
    """A second delivery is answered with 200, and is neither run nor recorded again."""
    local_stack.create(id="tea", schedule=DAILY)
    local_stack.advance(HOUR)
    before = local_stack.executions("tea"), local_stack.inbox(), local_stack.api("GET", "/v1/tasks/tea").body
    (first,) = local_stack.stack.emulator.attempts()

    replies = [_deliver(local_stack, first.request.body, first.request.headers["X-Cloudsched-Token"]) for _ in range(3)]

    assert [(reply.status, reply.body["action"]) for reply in replies] == [(200, "dropped")] * 3
    assert (local_stack.executions("tea"), local_stack.inbox(), local_stack.api("GET", "/v1/tasks/tea").body) == before


def test_the_stack_runs_its_own_sweep(local_stack: LocalStack) -> None:
    """After the clock has moved, the stack's sweep finds a dispatch that the queue has lost, and the task runs."""
    local_stack.create(id="tea", schedule=DAILY)
    _purge(local_stack)
    local_stack.advance(HOUR)
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
