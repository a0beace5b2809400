"""Count what indexes cost: how many there are, and the entries of a task and of a record with and without labels.

The documents are those that the real adapter writes when an hourly task has run, the indexes those of an index file:

    python -m benchmarks.index_entries
    python -m benchmarks.index_entries --before ../other-checkout/infra/firestore.indexes.json

Sizes follow firebase.google.com/docs/firestore/storage-size: a name has its ids, one byte for each, and 16. An entry
has the document's name, in an index of single collections that of what the collection belongs to, the values, the
field's name if it is the only one, and 32 bytes.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from benchmarks.scale_indexes import INDEX_FILE, Indexes
from benchmarks.scale_limits import VirtualTime
from benchmarks.scale_store import FirestoreModel
from benchmarks.scale_store_limits import StoreLimits
from rich.console import Console
from rich.table import Table

from cloudsched import App, Schedule
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def measure(content: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of indexes in a file, and the entries and bytes of each document."""
    overrides = [index for each in content["fieldOverrides"] for index in each["indexes"]]
    found = {
        "composite indexes, one shard": len(content["indexes"]),
        "composite indexes, several shards besides": len(content["sharded"]["indexes"]),
        "single-field indexes": len(overrides),
        "fields with a rule of their own": len(content["fieldOverrides"]),
    }
    for labels in (0, 2):
        for subject in make_subjects(labels):
            entries = count_entries(content, subject)
            found[f"{subject.name}, {labels} labels: bytes of the document"] = measure_document(subject)
            found[f"{subject.name}, {labels} labels: entries"] = entries.count
            found[f"{subject.name}, {labels} labels: bytes of entries"] = entries.size
    return found


def main() -> None:
    """Print the counts of this checkout, and of another index file beside them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="another index file, counted with the same documents")
    options = parser.parse_args()
    files = [path for path in (options.before, INDEX_FILE) if path is not None]
    columns = [measure(json.loads(path.read_text(encoding="utf-8"))) for path in files]
    table = Table(title=f"An hourly task after {RUNS} runs, {datetime.now(UTC):%Y-%m-%d}")
    table.add_column("")
    for title in ("before", "now")[-len(columns) :]:
        table.add_column(title, justify="right")
    for name in columns[0]:
        table.add_row(name, *(f"{column[name]:,}" for column in columns))
    Console().print(table)


if __name__ == "__main__":
    main()
