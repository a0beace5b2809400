"""Count what indexes cost: the entries of a task and of a record, with and without labels.

The documents are those that the real adapter writes when an hourly task has run, the indexes those of an index file.

Sizes follow firebase.google.com/docs/firestore/storage-size: a name has its ids, one byte for each, and 16. An entry
has the document's name, in an index of single collections that of what the collection belongs to, the values, the
field's name if it is the only one, and 32 bytes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from tests.scale.firestore_model import FirestoreModel
from tests.scale.google_limits import VirtualTime
from tests.scale.index_ranges import Indexes
from tests.scale.store_limits import StoreLimits

from cloudsched import App, Schedule
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.testing import Simulation

RUNS = 39
"""How often the task has run."""
_LABELS = ("team=payments", "customer=4711")


@dataclass(frozen=True, slots=True)
class Subject:
    """A document whose entries are counted."""

    name: str
    collection: str
    path: tuple[str, ...]
    """The ids of its collections and documents."""
    fields: Any
    """Its fields, as they are sent to Firestore."""


@dataclass(frozen=True, slots=True)
class Entries:
    """What indexes have of a document."""

    count: int
    size: int
    """In bytes."""


def make_subjects(labels: int) -> list[Subject]:
    """Return an hourly task with so many labels, waiting and while it runs, and its last record, as stored."""
    time = VirtualTime(random.Random(0))  # noqa: S311 - a run is to be repeatable
    model = FirestoreModel(time, Indexes.of_shards(1), StoreLimits(is_enforced=False))
    app = App()
    seen: list[Any] = []

    @app.handler("report")
    def report() -> None:
        """Do next to nothing, and note how its task is stored meanwhile."""
        seen.extend(one.message for name, one in model.documents.items() if name.split("/")[5:-1] == ["tasks"])

    with patch("cloudsched.adapters.firestore.rpc.open_channel", lambda *_: model):
        store = FirestoreStore(project="p")
        with Simulation(app, store=store) as simulation:
            schedule = Schedule(rrule="FREQ=HOURLY", timezone="Europe/Paris")
            task = app.create(
                owner="owner-0001", title="Report", handler="report", schedule=schedule, labels=_LABELS[:labels]
            )
            simulation.advance(timedelta(hours=RUNS))
    documents = {tuple(name.split("/")[5:]): one.message for name, one in model.documents.items()}
    last = max(path for path in documents if path[:3] == ("tasks", task.id, "executions"))
    path = ("tasks", task.id)
    return [
        Subject("task, waiting", "tasks", path, documents[path].fields),
        Subject("task, running", "tasks", path, seen[-1].fields),
        Subject("record", "executions", last, documents[last].fields),
    ]


def count_entries(content: Mapping[str, Any], subject: Subject) -> Entries:
    """Return what the indexes of a file have of a document."""
    name = _measure_name(subject.path)
    parent = _measure_name(subject.path[:-2])
    count = size = 0
    for index in content["indexes"]:
        if index["collectionGroup"] != subject.collection:
            continue
        values = [_find(subject.fields, each["fieldPath"]) for each in index["fields"]]
        if any(value is None for value in values):
            continue
        above = 0 if index["queryScope"] == "COLLECTION_GROUP" else parent
        arrays = [value for value in values if value.HasField("array_value")]
        single = sum(_measure(value) for value in values if not value.HasField("array_value"))
        for element in arrays[0].array_value.values if arrays else (None,):
            count += 1
            size += name + above + 32 + single + (0 if element is None else _measure(element))
    for override in content["fieldOverrides"]:
        if override["collectionGroup"] != subject.collection or override["fieldPath"] == "*":
            continue
        value = _find(subject.fields, override["fieldPath"])
        if value is not None:
            count += len(override["indexes"])
            path = len(override["fieldPath"].encode()) + 1
            size += len(override["indexes"]) * (name + parent + 32 + path + _measure(value))
    return Entries(count, size)


def measure_document(subject: Subject) -> int:
    """Return the size of a document as Firestore counts it: its name, its fields and 32 bytes."""
    return _measure_name(subject.path) + _measure_fields(subject.fields) + 32


def _measure_fields(fields: Any) -> int:  # noqa: ANN401 - protobuf messages
    return sum(len(name.encode()) + 1 + _measure(value) for name, value in fields.items())


def _find(fields: Any, path: str) -> Any:  # noqa: ANN401 - protobuf messages
    *outer, last = path.split(".")
    for name in outer:
        if name not in fields:
            return None
        fields = fields[name].map_value.fields
    return fields.get(last)


def _measure(value: Any) -> int:  # noqa: ANN401 - a protobuf value
    """Return the size of a value as Firestore counts it."""
    match value.WhichOneof("value_type"):
        case "string_value":
            return len(value.string_value.encode()) + 1
        case "array_value":
            return sum(map(_measure, value.array_value.values))
        case "map_value":
            return _measure_fields(value.map_value.fields) + 32
        case "bytes_value":
            return len(value.bytes_value)
        case "boolean_value" | "null_value":
            return 1
    return 8


def _measure_name(path: tuple[str, ...]) -> int:
    return sum(len(each.encode()) + 1 for each in path) + 16 if path else 0
