"""The floor of `benchmarks.api`: a function that only makes the same Firestore and Cloud Tasks calls.

It validates nothing and plans nothing: it stores a document with the fields of a task under an id, and returns it.
"""

from __future__ import annotations

import json
import os
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import functions_framework
import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.cloud import firestore, tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcTransport
from werkzeug.wrappers import Response

from cloudsched.domain.transitions.drafts import TaskDraft
from cloudsched.domain.transitions.edits import new_task

if TYPE_CHECKING:
    from flask import Request

NOW = datetime.now(UTC)
FIELDS = new_task(
    TaskDraft.of(owner="ada", title="T", handler="check", schedule=NOW + timedelta(days=1)), NOW
).to_stored()
"""The fields of a task's document, so that both servers write the same amount of data."""
store = firestore.Client(project=os.environ["GOOGLE_CLOUD_PROJECT"])
channel = grpc.insecure_channel(os.environ["CLOUD_TASKS_EMULATOR_HOST"])
queue = tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=channel))
parent = queue.queue_path(os.environ["GOOGLE_CLOUD_PROJECT"], "us-central1", "cloudsched")


@functions_framework.http
def api(request: Request) -> Response:
    """Create, get or list, by the method and path of the request."""
    if request.method == "POST":
        return _create(request.get_json(force=True))
    name = request.path.removeprefix("/v1/tasks").strip("/")
    if name:
        return _respond(store.collection("floor").document(name).get().to_dict())
    query = store.collection("floor").where(filter=firestore.FieldFilter("owner", "==", request.args["owner"]))
    newest = query.order_by("createdAt", direction="DESCENDING").limit(int(request.args["pageSize"]))
    return _respond({"tasks": [document.to_dict() for document in newest.stream()]})


def _create(content: dict[str, Any]) -> Response:
    name, now = str(uuid.uuid4()), datetime.now(UTC)
    document = {**FIELDS, **content, "id": name, "createdAt": now}
    store.collection("floor").document(name).create(document)
    at = now + timedelta(days=1)
    target = {"url": "http://127.0.0.1:9", "body": name.encode(), "http_method": "POST"}
    task = tasks_v2.Task({"name": f"{parent}/tasks/{name}", "http_request": target, "schedule_time": at})
    queue.create_task(parent=parent, task=task)
    return _respond(document)


def _respond(content: object) -> Response:
    return Response(json.dumps(content, default=str), 200, {"Content-Type": "application/json"})
