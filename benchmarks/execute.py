"""What one successful occurrence of a recurring task costs, beside the raw calls of its budget; and a hop.

    python -m benchmarks.execute [--rounds 400]

Budget of an occurrence: 1 document read, 2 commits (3 documents written), 1 task created. Of a hop: 1 read, 1 task
created. The operations are counted first, then timed. The floor makes the same calls with the same content by Google's
own clients, with everything made beforehand but the names. All of them against the same emulators, turn by turn.
"""

from __future__ import annotations

import argparse
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from benchmarks.local_services import Services, services
from benchmarks.side_by_side import shown, timed
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
from cloudsched.adapters.operation_counts import CountingDispatcher, CountingStore, Counts
from cloudsched.config.settings import EXECUTE_PATH

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage

HOUR = timedelta(hours=1)


class RecordingDispatcher:
    """A dispatcher that also remembers what passed through it, so that the benchmark can deliver it."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self.envelopes: deque[QueueMessage] = deque()

    def create(self, message: QueueMessage) -> None:
        """Hand the dispatch on."""
        self.envelopes.append(message)
        self._dispatcher.create(message)

    def close(self) -> None:
        """Close the dispatcher."""
        self._dispatcher.close()


class ExecuteHarness:
    """An app over the emulators whose clock is moved to each dispatch in turn."""

    def __init__(self, service: Services, clock: ManualClock) -> None:
        self.clock, self.counts = clock, Counts()
        settings = service.settings
        self.overheard = RecordingDispatcher(
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
            store=CountingStore(store, self.counts),
            dispatcher=CountingDispatcher(self.overheard, self.counts),
            clock=clock,
        )

        @self.app.handler("tick")
        def tick() -> str:
            return "tock"

    def add(self, name: str, schedule: Schedule) -> None:
        """Create a task."""
        self.app.create(id=name, owner="ada", title="Tick", handler="tick", schedule=schedule)

    def next(self) -> QueueMessage:
        """Return the next dispatch, at its instant."""
        envelope = self.overheard.envelopes.popleft()
        self.clock.move_to(envelope.at)
        return envelope

    def deliver(self, envelope: QueueMessage) -> str:
        """Deliver a dispatch; return what came of it."""
        return self.app.deliver(envelope.body, envelope.token).action


def count_operations(bench: ExecuteHarness, envelope: QueueMessage, expected: str) -> dict[str, int]:
    """Deliver a dispatch and return the operations that it took."""
    counts = bench.counts
    before = (counts.reads, counts.commits, counts.writes, counts.dispatches)
    action = bench.deliver(envelope)
    assert action == expected, action
    after = (counts.reads, counts.commits, counts.writes, counts.dispatches)
    names = ("documents read", "commits", "documents written", "tasks created")
    return {name: new - old for name, old, new in zip(names, before, after, strict=True)}


def show_counts(occurrence: dict[str, int], hop: dict[str, int]) -> None:
    """Print the operations beside their budget."""
    budgets = ((occurrence, (1, 2, 3, 1)), (hop, (1, 0, 0, 1)))
    table = Table("operation", "occurrence", "budget", "hop", "budget", title="Operations, counted")
    for row, name in enumerate(occurrence):
        table.add_row(name, *(str(cell) for found, budget in budgets for cell in (found[name], budget[row])))
    Console(width=110).print(table)
    for found, budget in budgets:
        assert tuple(found.values()) == budget, f"{found} is not {budget}"


def floor(service: Services, rounds: int) -> Callable[[int], object]:
    """Return the raw calls of one occurrence, with the content that the library wrote."""
    firestore = FirestoreClient(transport=FirestoreGrpcTransport(channel=grpc.insecure_channel(service.firestore)))
    tasks = tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=grpc.insecure_channel(service.tasks)))
    database = f"projects/{service.settings.project}/databases/(default)"
    name = f"{database}/documents/tasks/timed"
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

    def calls(number: int) -> None:
        firestore.get_document({"name": name})
        firestore.commit(claims[number])
        firestore.commit(results[number])
        tasks.create_task(dispatches[number])

    return calls


def main() -> None:
    """Count, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=400)
    rounds = parser.parse_args().rounds
    with services() as service:
        now = datetime.now(UTC)
        bench = ExecuteHarness(service, ManualClock(now))
        bench.add("far", Schedule.once(now + timedelta(days=40)))
        hop = count_operations(bench, bench.overheard.envelopes.popleft(), "hopped")  # a hop is one at any time
        bench.overheard.envelopes.clear()
        bench.add("timed", Schedule.every(timedelta(minutes=10), start=now + HOUR))
        occurrence = count_operations(bench, bench.next(), "ran")
        show_counts(occurrence, hop)
        ways = {
            "cloudsched: one occurrence": lambda _: bench.deliver(bench.next()),
            "floor: the same calls, Google's clients": floor(service, rounds + 30),
        }
        seconds = timed(ways, rounds)
        bench.app.close()
    of, raw = ways
    shown("Running an occurrence", seconds, of, {raw: 1.25})


if __name__ == "__main__":
    main()
