"""Measure the creation of a task, compared with the two remote calls that it cannot do without.

    python -m benchmarks.create [--rounds 500]

The floor is one Firestore commit and one CreateTask of the same content, sent by Google's own clients from requests
that were built beforehand. Two more candidates are code that you would write by hand without the library, and the same
requests sent on bare gRPC channels. All of them use the same emulators, in alternation.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from benchmarks.local_services import Services, run_services
from benchmarks.side_by_side import show_comparison, time_alternately
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


def make_app(service: Services) -> App:
    """Return an app that uses the emulators."""
    store = FirestoreStore(project=service.settings.project, emulator=service.firestore)
    app = App(service.settings, store=store, clock=SystemClock())

    @app.handler("check")
    def check(site: Site) -> str:
        return site.url

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
    """The same two requests without the library: by Google's clients, and on bare channels."""

    service: Services
    document: Document
    task: CloudTask

    def __post_init__(self) -> None:
        channel = grpc.insecure_channel(self.service.firestore)
        self.firestore = FirestoreClient(transport=FirestoreGrpcTransport(channel=channel))
        self.tasks = make_tasks_client(self.service)
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

    def send_on_channels(self, prepared: list[tuple[CommitRequest, CreateTaskRequest]], number: int) -> None:
        """Send both on bare gRPC channels."""
        commit, create = prepared[number]
        self.bare_commit(commit, timeout=10)
        self.bare_create(create, timeout=10)


def make_tasks_client(service: Services) -> tasks_v2.CloudTasksClient:
    """Return a Cloud Tasks client for the emulator."""
    return tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=grpc.insecure_channel(service.tasks)))


def make_handwritten(service: Services, fields: dict[str, Any], body: bytes) -> Any:  # noqa: ANN401 - takes the task's number
    """Return a function that creates a task as you would write it without the library."""
    os.environ["FIRESTORE_EMULATOR_HOST"] = service.firestore
    database, queue = firestore.Client(project=service.settings.project), make_tasks_client(service)

    def create(number: int) -> None:
        database.collection("tasks").document(f"hand-{number}").create(fields)
        request = {"url": "http://127.0.0.1:9", "http_method": "POST", "body": body, "headers": {"X-Token": "x" * 64}}
        task: Any = {"name": f"{service.queue}/tasks/hand-{number}", "schedule_time": AT, "http_request": request}
        queue.create_task(parent=service.queue, task=task)

    return create


def main() -> None:
    """Measure all candidates and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500, help="how many tasks each candidate creates")
    rounds = parser.parse_args().rounds
    with run_services() as service:
        app = make_app(service)
        first = create_task(app, -1)
        document_name = f"projects/{service.settings.project}/databases/(default)/documents/tasks/{first.id}"
        channel = grpc.insecure_channel(service.firestore)
        document = FirestoreClient(transport=FirestoreGrpcTransport(channel=channel)).get_document(
            {"name": document_name}
        )
        queued = next(
            iter(make_tasks_client(service).list_tasks(request={"parent": service.queue, "response_view": 2}))
        )
        task = CloudTask(http_request=queued.http_request, schedule_time=queued.schedule_time)
        raw = RawRequests(service, Document(fields=document.fields), task)
        clients = [raw.make_requests(f"clients-{number}") for number in range(rounds + 30)]
        channels = [raw.make_requests(f"channels-{number}") for number in range(rounds + 30)]
        candidates = {
            "cloudsched: App.create": partial(create_task, app),
            "floor: the two calls, Google's clients": partial(raw.send_by_clients, clients),
            "by hand: firestore.Client, CloudTasksClient": make_handwritten(
                service, first.to_stored(), task.http_request.body
            ),
            "the two calls on bare channels": partial(raw.send_on_channels, channels),
        }
        seconds = time_alternately(candidates, rounds)
        app.close()
    subject, floor, hand, bare = candidates
    show_comparison("Creating a task", seconds, subject, {floor: 1.25, hand: None, bare: None})


if __name__ == "__main__":
    main()
