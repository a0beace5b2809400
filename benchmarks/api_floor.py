"""The floor that `benchmarks.api` measures: the same Firestore and Cloud Tasks calls, and no more.

It checks nothing and plans nothing: a document with the fields of a task is stored under an id, and given back.
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

from cloudsched.domain.transitions.drafts import LeadTimes, TaskDraft, new_task

if TYPE_CHECKING:
    from flask import Request

NOW = datetime.now(UTC)
FIELDS = new_task(
    TaskDraft.of(owner="ada", title="T", handler="check", schedule=NOW + timedelta(days=1)), NOW, LeadTimes()
).task.to_stored()
"""What a task's document has, so that both write as much."""
store = firestore.Client(project=os.environ["GOOGLE_CLOUD_PROJECT"])
channel = grpc.insecure_channel(os.environ["CLOUD_TASKS_EMULATOR_HOST"])
queue = tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=channel))
parent = queue.queue_path(os.environ["GOOGLE_CLOUD_PROJECT"], "us-central1", "cloudsched")


@functions_framework.http
def api(request: Request) -> Response:
    """Create, get or list."""
    if request.method == "POST":
        return _create(request.get_json(force=True))
    name = request.path.removeprefix("/v1/tasks").strip("/")
    if name:
        return _answer(store.collection("floor").document(name).get().to_dict())
    wanted = store.collection("floor").where(filter=firestore.FieldFilter("owner", "==", request.args["owner"]))
    newest = wanted.order_by("createdAt", direction="DESCENDING").limit(int(request.args["pageSize"]))
    return _answer({"tasks": [document.to_dict() for document in newest.stream()]})


def _create(content: dict[str, Any]) -> Response:
    name, now = str(uuid.uuid4()), datetime.now(UTC)
    document = {**FIELDS, **content, "id": name, "createdAt": now}
    store.collection("floor").document(name).create(document)
    at = now + timedelta(days=1)
    target = {"url": "http://127.0.0.1:9", "body": name.encode(), "http_method": "POST"}
    task = tasks_v2.Task({"name": f"{parent}/tasks/{name}", "http_request": target, "schedule_time": at})
    queue.create_task(parent=parent, task=task)
    return _answer(document)


def _answer(content: object) -> Response:
    return Response(json.dumps(content, default=str), 200, {"Content-Type": "application/json"})
