"""Which fields of a task's document an update writes: those that have changed since it was read."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from cloudsched.adapters.firestore.list_fields import HIDDEN, OPEN, PRIVATE_FIELDS
from cloudsched.adapters.firestore.messages import COMMIT_ID, PRIVATE, get_private
from cloudsched.adapters.firestore.queries import TASK_SHARD, TROUBLE, UNLISTED
from cloudsched.domain.documents.document import SCHEMA_VERSION, list_stored_fields
from cloudsched.domain.documents.task import Task, find_open_position, find_trouble
from cloudsched.engine.ports.store import Version

if TYPE_CHECKING:
    from collections.abc import Collection

    from cloudsched.adapters.google.channel import Message


@dataclass(frozen=True, slots=True)
class TaskVersion(Version):
    """The version of a task, and what its document says."""

    schema_version: int = field(compare=False)
    """The form that it has; 0 if that is not known."""
    shard: int = field(compare=False)
    """Its shard; -1 if it has none."""
    size: int = field(compare=False)
    """As many bytes as it has, or more, as it is sent."""


def read_version(document: Message) -> TaskVersion:
    """Return the version of a task's document."""
    fields, shard = document.fields, -1
    if PRIVATE in fields and "shard" in (changed := get_private(fields)["changed"].map_value.fields):
        shard = changed["shard"].integer_value
    return TaskVersion(
        document.update_time.ToNanoseconds(),
        fields["schemaVersion"].integer_value if "schemaVersion" in fields else 0,
        shard,
        document.ByteSize(),
    )


def list_written(changes: Collection[str], version: TaskVersion) -> set[str]:
    """Return the fields of a task that an update writes; a document of an earlier form takes the present one."""
    private = () if version.shard >= 0 else [name for name, key in _list_keys().items() if key.startswith(PRIVATE)]
    return {*changes, *private, *(() if version.schema_version == SCHEMA_VERSION else ("schema_version",))}


def list_field_paths(before: Task, task: Task, written: Collection[str], version: TaskVersion, shard: int) -> list[str]:
    """Return the paths of an update's mask.

    Args:
        before: The task as it was read.
        task: The task.
        written: The fields of it that are written.
        version: The version as which it was read.
        shard: Its shard.
    """
    keys = _list_keys()
    paths = [COMMIT_ID, *[keys[name] for name in written]]
    if task.delivery is not None:
        paths = [f"{UNLISTED}.{path}" if path in HIDDEN else path for path in paths]
    if version.shard != shard:
        paths.append(TASK_SHARD)
    is_unplaced = version.shard < 0
    if is_unplaced or find_open_position(before) != find_open_position(task):
        paths.append(OPEN)
    if is_unplaced or find_trouble(before) != find_trouble(task):
        paths.append(TROUBLE)
    return paths


@cache
def _list_keys() -> dict[str, str]:
    keys = {each.name: each.key for each in list_stored_fields(Task)}
    return {name: f"{PRIVATE}.{key}" if key in PRIVATE_FIELDS else key for name, key in keys.items()}
