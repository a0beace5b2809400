"""What creating a task costs, beside the two calls that it cannot do without.

    python -m benchmarks.create [--rounds 500]

The floor is one Firestore commit and one CreateTask of the same content by Google's own clients, with everything made
beforehand but the names. Beside it: what one would write by hand, and the same requests on bare channels. All of them
against the same emulators, turn by turn.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from benchmarks.local_services import Services, services
from benchmarks.side_by_side import shown, timed
from google.cloud import firestore, tasks_v2
from google.cloud.firestore_v1.services.firestore import FirestoreClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcTransport
from google.cloud.firestore_v1.types import CommitRequest, CommitResponse, Document, Write
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcTransport
from google.cloud.tasks_v2.types import CreateTaskRequest
from google.cloud.tasks_v2.types import Task as CloudTask
from pydantic import BaseModel

from cloudsched import App, Schedule
from cloudsched.adapters.clocks import SystemClock
from cloudsched.adapters.firestore.store import FirestoreStore

if TYPE_CHECKING:
    from cloudsched import Task

AT = datetime.now(UTC) + timedelta(hours=1)


class Site(BaseModel):
    """The handler's payload."""

    url: str


def library(service: Services) -> App:
    """An app over the emulators."""
    store = FirestoreStore(project=service.settings.project, emulator=service.firestore)
    app = App(service.settings, store=store, clock=SystemClock())

    @app.handler("check")
    def check(site: Site) -> str:
        return site.url

    return app


def created(app: App, number: int) -> Task:
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
class Raw:
    """The same two requests by Google's clients."""

    service: Services
    document: Document
    task: CloudTask

    def __post_init__(self) -> None:
        channel = grpc.insecure_channel(self.service.firestore)
        self.firestore = FirestoreClient(transport=FirestoreGrpcTransport(channel=channel))
        self.tasks = tasks_client(self.service)
        self.database = f"projects/{self.service.settings.project}/databases/(default)"
        self.bare_commit = channel.unary_unary(
            "/google.firestore.v1.Firestore/Commit",
            request_serializer=CommitRequest.serialize,
            response_deserializer=CommitResponse.deserialize,
        )
        self.bare_create = grpc.insecure_channel(self.service.tasks).unary_unary(
            "/google.cloud.tasks.v2.CloudTasks/CreateTask",
            request_serializer=CreateTaskRequest.serialize,
            response_deserializer=CloudTask.deserialize,
        )

    def requests(self, name: str) -> tuple[CommitRequest, CreateTaskRequest]:
        """Return the commit and the CreateTask for another task."""
        document = Document(self.document)
        document.name = f"{self.database}/documents/tasks/{name}"
        task = CloudTask(self.task)
        task.name = f"{self.service.queue}/tasks/{name}"
        commit = CommitRequest(
            database=self.database, writes=[Write(update=document, current_document={"exists": False})]
        )
        return commit, CreateTaskRequest(parent=self.service.queue, task=task)

    def by_clients(self, made: list[tuple[CommitRequest, CreateTaskRequest]], number: int) -> None:
        """Send both by Google's clients."""
        commit, create = made[number]
        self.firestore.commit(commit)
        self.tasks.create_task(create)

    def by_channel(self, made: list[tuple[CommitRequest, CreateTaskRequest]], number: int) -> None:
        """Send both on the channels themselves."""
        commit, create = made[number]
        self.bare_commit(commit, timeout=10)
        self.bare_create(create, timeout=10)


def tasks_client(service: Services) -> tasks_v2.CloudTasksClient:
    """A Cloud Tasks client for the emulator."""
    return tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=grpc.insecure_channel(service.tasks)))


def by_hand(service: Services, fields: dict[str, Any], body: bytes) -> Any:  # noqa: ANN401 - a function of a number
    """What one would write without the library."""
    os.environ["FIRESTORE_EMULATOR_HOST"] = service.firestore
    database, queue = firestore.Client(project=service.settings.project), tasks_client(service)

    def create(number: int) -> None:
        database.collection("tasks").document(f"hand-{number}").create(fields)
        request = {"url": "http://127.0.0.1:9", "http_method": "POST", "body": body, "headers": {"X-Token": "x" * 64}}
        task: Any = {"name": f"{service.queue}/tasks/hand-{number}", "schedule_time": AT, "http_request": request}
        queue.create_task(parent=service.queue, task=task)

    return create


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    rounds = parser.parse_args().rounds
    with services() as service:
        app = library(service)
        first = created(app, -1)
        pattern = f"projects/{service.settings.project}/databases/(default)/documents/tasks/{first.id}"
        channel = grpc.insecure_channel(service.firestore)
        document = FirestoreClient(transport=FirestoreGrpcTransport(channel=channel)).get_document({"name": pattern})
        queued = next(iter(tasks_client(service).list_tasks(request={"parent": service.queue, "response_view": 2})))
        task = CloudTask(http_request=queued.http_request, schedule_time=queued.schedule_time)
        raw = Raw(service, Document(fields=document.fields), task)
        clients = [raw.requests(f"clients-{number}") for number in range(rounds + 30)]
        channels = [raw.requests(f"channels-{number}") for number in range(rounds + 30)]
        ways = {
            "cloudsched: App.create": partial(created, app),
            "floor: the two calls, Google's clients": partial(raw.by_clients, clients),
            "by hand: firestore.Client, CloudTasksClient": by_hand(service, first.to_stored(), task.http_request.body),
            "the two calls on bare channels": partial(raw.by_channel, channels),
        }
        seconds = timed(ways, rounds)
        app.close()
    of, floor, hand, bare = ways
    shown("Creating a task", seconds, of, {floor: 1.25, hand: None, bare: None})


if __name__ == "__main__":
    main()
