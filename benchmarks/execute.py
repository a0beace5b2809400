"""Measure one successful occurrence of a recurring task, compared with the remote calls it needs, and count a hop.

    python -m benchmarks.execute [--rounds 400]

The budget of an occurrence is 1 document read, 2 commits (3 documents written) and 1 task created; that of a hop is 1
document read and 1 task created. The operations of both are counted first; then the occurrence is timed. The floor
makes the same calls with the same content by Google's own clients, from requests that were built beforehand. Both use
the same emulators, in alternation.
"""

from __future__ import annotations

import argparse
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from benchmarks.local_services import Services, run_services
from benchmarks.side_by_side import show_comparison, time_alternately
from google.cloud import tasks_v2
from google.cloud.firestore_v1.services.firestore import FirestoreClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcTransport
from google.cloud.firestore_v1.types import CommitRequest, Document, Write
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcTransport
from google.cloud.tasks_v2.types import CreateTaskRequest
from google.cloud.tasks_v2.types import Task as CloudTask
from rich.console import Console
from rich.table import Table

from cloudsched import App, Schedule
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.google.cloud_tasks import CloudTasksDispatcher
from cloudsched.adapters.operation_counts import Counts, count_dispatcher, count_store
from cloudsched.config.settings import EXECUTE_PATH

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage

HOUR = timedelta(hours=1)


class RecordingDispatcher:
    """A dispatcher that also keeps each message, so that the benchmark can deliver it."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self.messages: deque[QueueMessage] = deque()

    def create(self, message: QueueMessage) -> None:
        """Keep the message and pass it to the dispatcher."""
        self.messages.append(message)
        self._dispatcher.create(message)

    def close(self) -> None:
        """Close the dispatcher."""
        self._dispatcher.close()


class ExecuteHarness:
    """An app that uses the emulators and whose clock is moved to each message in turn."""

    def __init__(self, service: Services, clock: ManualClock) -> None:
        self.clock, self.counts = clock, Counts()
        settings = service.settings
        self.recorder = RecordingDispatcher(
            CloudTasksDispatcher(
                project=settings.project,
                location=settings.location,
                queue=settings.queue,
                url=settings.executor_url + EXECUTE_PATH,
                emulator=service.tasks,
            )
        )
        store = FirestoreStore(project=settings.project, emulator=service.firestore)
        self.app = App(
            settings,
            store=count_store(store, self.counts),
            dispatcher=count_dispatcher(self.recorder, self.counts),
            clock=clock,
        )

        @self.app.handler("tick")
        def tick() -> str:
            return "tock"

    def create(self, name: str, schedule: Schedule) -> None:
        """Create a task."""
        self.app.create(id=name, owner="ada", title="Tick", handler="tick", schedule=schedule)

    def take_next(self) -> QueueMessage:
        """Move the clock to the instant of the next message, and return the message."""
        message = self.recorder.messages.popleft()
        self.clock.move_to(message.at)
        return message

    def deliver(self, message: QueueMessage) -> str:
        """Deliver a message; return the name of the action that the executor took."""
        return self.app.deliver(message.body, message.token).action


def count_operations(harness: ExecuteHarness, message: QueueMessage, expected: str) -> dict[str, int]:
    """Deliver a message and return the number of operations of each kind."""
    counts = harness.counts
    before = (counts.reads, counts.commits, counts.writes, counts.dispatches)
    action = harness.deliver(message)
    assert action == expected, action
    after = (counts.reads, counts.commits, counts.writes, counts.dispatches)
    names = ("documents read", "commits", "documents written", "tasks created")
    return {name: new - old for name, old, new in zip(names, before, after, strict=True)}


def show_counts(occurrence: dict[str, int], hop: dict[str, int]) -> None:
    """Print the operations and their budgets; raise AssertionError if they differ."""
    budgets = ((occurrence, (1, 2, 3, 1)), (hop, (1, 0, 0, 1)))
    table = Table("operation", "occurrence", "budget", "hop", "budget", title="Operations, counted")
    for row, name in enumerate(occurrence):
        table.add_row(name, *(str(cell) for counts, budget in budgets for cell in (counts[name], budget[row])))
    Console(width=110).print(table)
    for counts, budget in budgets:
        assert tuple(counts.values()) == budget, f"{counts} is not {budget}"


def prepare_floor(service: Services, rounds: int) -> Callable[[int], object]:
    """Return a function that makes the raw calls of one occurrence with the content that the library wrote."""
    firestore = FirestoreClient(transport=FirestoreGrpcTransport(channel=grpc.insecure_channel(service.firestore)))
    tasks = tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=grpc.insecure_channel(service.tasks)))
    database = f"projects/{service.settings.project}/databases/(default)"
    name = f"{database}/documents/tasks/recurring"
    task = firestore.get_document({"name": name})
    record = next(iter(firestore.list_documents({"parent": name, "collection_id": "executions"})))
    queued = next(iter(tasks.list_tasks(request={"parent": service.queue, "response_view": 2})))
    claims, results, dispatches = [], [], []
    for number in range(rounds):
        copy = Document(name=f"{database}/documents/tasks/raw-{number}", fields=task.fields)
        execution = Document(name=f"{copy.name}/executions/one", fields=record.fields)
        claims.append(CommitRequest(database=database, writes=[Write(update=copy)]))
        results.append(CommitRequest(database=database, writes=[Write(update=copy), Write(update=execution)]))
        dispatch = CloudTask(http_request=queued.http_request, schedule_time=queued.schedule_time)
        dispatch.name = f"{service.queue}/tasks/raw-{number}"
        dispatches.append(CreateTaskRequest(parent=service.queue, task=dispatch))

    def make_calls(number: int) -> None:
        firestore.get_document({"name": name})
        firestore.commit(claims[number])
        firestore.commit(results[number])
        tasks.create_task(dispatches[number])

    return make_calls


def main() -> None:
    """Count the operations, measure the time and print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=400, help="how many occurrences are timed")
    rounds = parser.parse_args().rounds
    with run_services() as service:
        now = datetime.now(UTC)
        harness = ExecuteHarness(service, ManualClock(now))
        harness.create("far", Schedule.once(now + timedelta(days=40)))
        hop_message = harness.recorder.messages.popleft()  # delivered early: a hop makes the same calls at any time
        hop = count_operations(harness, hop_message, "hopped")
        harness.recorder.messages.clear()
        harness.create("recurring", Schedule.every(timedelta(minutes=10), start=now + HOUR))
        occurrence = count_operations(harness, harness.take_next(), "ran")
        show_counts(occurrence, hop)
        candidates = {
            "cloudsched: one occurrence": lambda _: harness.deliver(harness.take_next()),
            "floor: the same calls, Google's clients": prepare_floor(service, rounds + 30),
        }
        seconds = time_alternately(candidates, rounds)
        harness.app.close()
    subject, raw = candidates
    show_comparison("Running an occurrence", seconds, subject, {raw: 1.25})


if __name__ == "__main__":
    main()
