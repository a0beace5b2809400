"""Measure a creation and an occurrence of a task, compared with the remote calls that they cannot do without.

    python -m benchmarks.remote_calls

The floor of a creation is one Firestore commit and one CreateTask of the same content, sent by Google's own clients
from requests that were built beforehand.

The budget of an occurrence is 1 document read, 2 commits (3 documents written) and 1 task created; that of a hop is 1
document read and 1 task created. The operations of both are counted first, and the command fails if they differ; then
the occurrence is timed beside the same calls by Google's own clients.

All candidates use the same emulators, in alternation, so that other load on the machine slows all of them alike.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from benchmarks.local_services import Services, run_services
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
from cloudsched.adapters.clocks import ManualClock, SystemClock
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.google.cloud_tasks import CloudTasksDispatcher
from cloudsched.adapters.operation_counts import Counts, count_dispatcher, count_store
from cloudsched.config.settings import EXECUTE_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cloudsched import Task
    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage

AT = datetime.now(UTC) + timedelta(hours=1)
HOUR = timedelta(hours=1)
ROUNDS = 400
"""How often each candidate is timed."""
WARM_UP = 30
"""How many rounds are not counted, on top of the others."""


def main() -> None:
    """Measure both, and print the comparisons."""
    with run_services() as service:
        measure_creation(service, ROUNDS)
    with run_services() as service:
        measure_occurrence(service, ROUNDS)


def measure_creation(service: Services, rounds: int) -> None:
    """Measure all ways to create a task, and print the comparison."""
    app = make_app(service)
    first = create_task(app, -1)
    document_name = f"projects/{service.settings.project}/databases/(default)/documents/tasks/{first.id}"
    channel = grpc.insecure_channel(service.firestore)
    document = FirestoreClient(transport=FirestoreGrpcTransport(channel=channel)).get_document({"name": document_name})
    queued = next(iter(make_tasks_client(service).list_tasks(request={"parent": service.queue, "response_view": 2})))
    task = CloudTask(http_request=queued.http_request, schedule_time=queued.schedule_time)
    raw = RawRequests(service, Document(fields=document.fields), task)
    clients = [raw.make_requests(f"clients-{number}") for number in range(rounds + WARM_UP)]
    candidates: dict[str, Callable[[int], object]] = {
        "cloudsched: App.create": partial(create_task, app),
        "floor: the two calls, Google's clients": partial(raw.send_by_clients, clients),
    }
    show_comparison("Creating a task", time_alternately(candidates, rounds))
    app.close()


def make_app(service: Services) -> App:
    """Return an app that uses the emulators."""
    store = FirestoreStore(project=service.settings.project, emulator=service.firestore)
    app = App(service.settings, store=store, clock=SystemClock())

    @app.handler("check")
    def check(site: dict[str, str]) -> str:
        return site["url"]

    return app


def create_task(app: App, number: int) -> Task:
    """Create a task as a caller would."""
    return app.create(
        id=f"library-{number}",
        owner="ada",
        title="Is the site up?",
        handler="check",
        payload={"url": "https://example.com/health"},
        schedule=Schedule.once(AT),
    )


@dataclass
class RawRequests:
    """The same two requests without the library, by Google's clients."""

    service: Services
    document: Document
    task: CloudTask

    def __post_init__(self) -> None:
        channel = grpc.insecure_channel(self.service.firestore)
        self.firestore = FirestoreClient(transport=FirestoreGrpcTransport(channel=channel))
        self.tasks = make_tasks_client(self.service)
        self.database = f"projects/{self.service.settings.project}/databases/(default)"

    def make_requests(self, name: str) -> tuple[CommitRequest, CreateTaskRequest]:
        """Return the commit and the CreateTask for a task of this name."""
        document = Document(self.document)
        document.name = f"{self.database}/documents/tasks/{name}"
        task = CloudTask(self.task)
        task.name = f"{self.service.queue}/tasks/{name}"
        commit = CommitRequest(
            database=self.database, writes=[Write(update=document, current_document={"exists": False})]
        )
        return commit, CreateTaskRequest(parent=self.service.queue, task=task)

    def send_by_clients(self, prepared: list[tuple[CommitRequest, CreateTaskRequest]], number: int) -> None:
        """Send both by Google's clients."""
        commit, create = prepared[number]
        self.firestore.commit(commit)
        self.tasks.create_task(create)


def make_tasks_client(service: Services) -> tasks_v2.CloudTasksClient:
    """Return a Cloud Tasks client for the emulator."""
    return tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=grpc.insecure_channel(service.tasks)))


def measure_occurrence(service: Services, rounds: int) -> None:
    """Count the operations of an occurrence and of a hop, measure the time of the former, and print both."""
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
        "floor: the same calls, Google's clients": prepare_floor(service, rounds + WARM_UP),
    }
    show_comparison("Running an occurrence", time_alternately(candidates, rounds))
    harness.app.close()


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
    documents = FirestoreClient(transport=FirestoreGrpcTransport(channel=grpc.insecure_channel(service.firestore)))
    tasks = make_tasks_client(service)
    database = f"projects/{service.settings.project}/databases/(default)"
    name = f"{database}/documents/tasks/recurring"
    task = documents.get_document({"name": name})
    record = next(iter(documents.list_documents({"parent": name, "collection_id": "executions"})))
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
        documents.get_document({"name": name})
        documents.commit(claims[number])
        documents.commit(results[number])
        tasks.create_task(dispatches[number])

    return make_calls


def time_alternately(candidates: Mapping[str, Callable[[int], object]], rounds: int) -> dict[str, list[float]]:
    """Call each candidate once per round with the round's number; return the seconds that each call took.

    The first `WARM_UP` rounds, which come on top of `rounds`, are not counted.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    names = list(candidates)
    for number in range(WARM_UP + rounds):
        for name in names:
            start = time.perf_counter()
            candidates[name](number)
            if number >= WARM_UP:
                seconds[name].append(time.perf_counter() - start)
        names.append(names.pop(0))  # a different candidate goes first in each round
    return seconds


def show_comparison(title: str, seconds: Mapping[str, list[float]]) -> None:
    """Print the medians, and the ratio of the first to each with its target."""
    first = statistics.median(next(iter(seconds.values())))
    table = Table("candidate", "median ms", "90th percentile ms", "ours / this (target ≤ 1.25)", title=title)
    for name, values in seconds.items():
        median, percentile = statistics.median(values), statistics.quantiles(values, n=10)[8]
        table.add_row(name, f"{median * 1e3:.3f}", f"{percentile * 1e3:.3f}", f"{first / median:.2f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
