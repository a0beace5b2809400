"""Lists of fields: those only indexes need, those that tasks for workers hide, and those that an update writes.

Lists across tasks are led by the owner, or else by the shard. See `adapters.firestore.shards`.

A delivery has the fields by which tasks are listed and counted (`HIDDEN`) one level deeper, so that only
lists of deliveries have it. No index has a document without the field that it is for, so a delivery is in no
other list and no count, costs them nothing, and no web or mobile client that queries its owner's tasks has to
leave deliveries out. The sweep finds it, like every task, by ``wakeAt``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cloudsched.adapters.firestore import protos as messages
from cloudsched.adapters.firestore.protos import (
    COMMIT_ID,
    PRIVATE,
    get_commit_id,
    get_private,
    require_write_fits,
)
from cloudsched.adapters.firestore.record_kinds import find_kind
from cloudsched.adapters.firestore.values import decode, encode_fields, encode_model, find_value
from cloudsched.domain.documents.document import Document, list_stored_fields
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.name_words import list_beginnings
from cloudsched.domain.documents.task import PublicTask, Task, find_list, find_open_position
from cloudsched.domain.transitions.commit import DeliveryMark, Version, VersionedTask
from cloudsched.domain.transitions.needs import find_trouble
from cloudsched.errors import DamagedDocument
from cloudsched.features.fields import OfferEntry

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from cloudsched.adapters.google.channel import Message
    from cloudsched.engine.storage.known_tasks import KnownTasks

D = TypeVar("D", bound=Document)

UNLISTED: Final = "unlisted"
"""The place of the fields of a delivery by which other lists are ordered."""
HIDDEN: Final = ("createdAt", "nextExecutionTime", "status")
"""The fields that are one level deeper in the documents of deliveries."""
REMOVE_AT: Final = "removeAt"
"""The place of `wake_at` of a task that only waits for its removal. It has an index of its own, so that
however many wait, nobody reads them to find lost work."""
_WAKE_AT: Final = "wakeAt"
SHOWN: Final = frozenset({"deletedAt", "delivery", "expireAt", "history", "runs", _WAKE_AT})
"""The fields beside a task's private map that the API shows in another form: rules, indexes and pages read
them.

Their owner reads them, too, as no rule can hide a field. docs/guides/clients.md says what they show.
"""
PRIVATE_FIELDS: Final = frozenset(
    each.key for each in list_stored_fields(Task) if each.name not in PublicTask.model_fields and each.key not in SHOWN
)
"""The fields in a task's private map: notes of the scheduler, in forms that are made to be short. None is a
secret."""
_Write: Message = messages.Write


def hide_from_lists(fields: Message, document: Document) -> None:
    """Move the fields of a delivery that lists would find it by."""
    if getattr(document, "delivery", None) is None:
        return
    hidden = fields[UNLISTED].map_value
    hidden.SetInParent()
    for name in HIDDEN:
        if name in fields:
            hidden.fields[name].CopyFrom(fields[name])
            del fields[name]


def unhide(data: dict[str, Any]) -> dict[str, Any]:
    """Return a stored document with its fields where they belong."""
    moved = data.pop(UNLISTED, None)
    return {**data, **moved} if isinstance(moved, dict) else data


def build_delivery_mark(documents: str, mark: DeliveryMark) -> Message:
    """Return the write of `is_delivered` alone."""
    write = _build_record_mark(documents, mark.task_id, mark.execution_id, "isDelivered")
    write.update.fields["isDelivered"].boolean_value = True
    return write


def build_kept_mark(documents: str, task_id: str, execution_id: str) -> Message:
    """Return the write that removes `expire_at` of a record alone."""
    return _build_record_mark(documents, task_id, execution_id, "expireAt")


def _build_record_mark(documents: str, task_id: str, execution_id: str, field_path: str) -> Message:
    write = _Write()
    write.update.name = f"{documents}/tasks/{task_id}/executions/{execution_id}"
    write.update_mask.field_paths.append(field_path)
    write.current_document.exists = True
    return write


LISTED: Final = f"{PRIVATE}.listed"
"""The place of these fields in a final record. Only records with them are listed across tasks."""
OPEN: Final = f"{PRIVATE}.open"
"""The place of these fields in a task with an open run."""
ASKS: Final = "?"
"""What the status of a task ends with whose run waits for an event."""
TROUBLE: Final = f"{PRIVATE}.trouble"
"""The place of the mark of a task that needs attention: its kind of trouble, and since when."""
ACTED: Final = f"{PRIVATE}.acted"
"""The place of the latest action in a task's history: its instant, and the shard."""
CHANGED: Final = f"{PRIVATE}.changed"
"""The place of every task's shard, and of `CHANGED_AT`."""
CHANGED_AT: Final = f"{CHANGED}.at"
"""The time at which the task was stored last, by Firestore's clock."""
TASK_SHARD: Final = f"{CHANGED}.shard"
WORDS: Final = f"{PRIVATE}.words"
"""The beginnings of the words of a task's names, if there is an index of them."""
_NAMES: Final = ("title", "handler", "owner", "labels")
"""The fields whose words they are. The id never changes."""
OFFER_SHARD: Final = "shard"
OFFER_WRITTEN_AT: Final = "writtenAt"
"""The time at which an offer was written, by Firestore's clock: the order of listeners."""


def add_list_fields(fields: Message, document: Document, shard: int, *, has_words: bool = False) -> None:
    """Add these fields to those of a document, and move what is private. The shard is its task's."""
    if isinstance(document, Task):
        private = get_private(fields)
        for key in PRIVATE_FIELDS:
            if key in fields:
                private[key].CopyFrom(fields[key])
                del fields[key]

        if document.waits_for_removal and _WAKE_AT in fields:
            fields[REMOVE_AT].CopyFrom(fields[_WAKE_AT])
            del fields[_WAKE_AT]
        encode_fields(private, {"changed": {"shard": shard}, **_show_last_action(document, shard)})
        if has_words and document.delivery is None:
            encode_fields(private, {"words": list_beginnings(document)})
        if (position := find_open_position(document)) is not None:
            status, since, asks = position
            kind = f"{status}{ASKS}" if asks else status
            encode_fields(private, {"open": {"shard": shard, "status": kind, "since": since}})
        if (trouble := find_trouble(document)) is not None:
            kind, since = trouble
            encode_fields(private, {"trouble": {"shard": shard, "kind": kind, "since": since}})
    elif isinstance(document, Execution) and find_list(document) is not None:
        encode_fields(get_private(fields), {"listed": {"shard": shard, "kind": find_kind(document)}})
    elif isinstance(document, OfferEntry):
        encode_fields(fields, {OFFER_SHARD: shard})


def _show_last_action(task: Task, shard: int) -> dict[str, Any]:
    if not task.history or task.delivery is not None:
        return {}
    return {"acted": {"shard": shard, "at": task.history[-1].at}}


def build_write(
    documents: str, path: tuple[str, ...], document: Document, shard: int = 0, *, has_words: bool = False
) -> Message:
    """Return the write of a whole document, with the fields for its indexes. The shard is its task's."""
    document.require_readable()
    write = _Write()
    write.update.name = "/".join((documents, *path))
    fields = write.update.fields

    encode_model(fields, document)
    hide_from_lists(fields, document)
    add_list_fields(fields, document, shard, has_words=has_words)
    require_write_fits(path, write, document)
    return write


def drop_list_fields(data: dict[str, Any]) -> dict[str, Any]:
    """Return a stored document without these fields, and with its own private ones where they belong."""
    private = data.pop(PRIVATE, None)
    data.pop(OFFER_SHARD, None)
    if REMOVE_AT in data:
        data[_WAKE_AT] = data.pop(REMOVE_AT)
    if private:
        return {**data, **{key: private[key] for key in PRIVATE_FIELDS if key in private}}
    return data


def to_document(kind: type[D], document: Message) -> D:
    """Return a document as the model of its kind."""
    key = document.name.rpartition("/")[2]
    try:
        data = decode(document.fields)
    except Exception as error:  # whatever another program has written
        raise DamagedDocument(kind.__name__, key, "it has a value that cannot be decoded") from error
    data.pop(OFFER_WRITTEN_AT, None)
    return kind.from_stored(key, drop_list_fields(unhide(data)))


@dataclass(frozen=True, slots=True)
class TaskVersion(Version):
    """The version of a task, and what its document says."""

    shard: int = field(compare=False)
    """Its shard, -1 if it has none."""
    size: int = field(compare=False)
    """The size of the document as it is sent, in bytes, or an upper bound."""
    has_words: bool = field(compare=False, default=False)
    """Whether it has the beginnings of its words."""


def read_version(document: Message) -> TaskVersion:
    """Return the version of a task's document."""
    place = find_value(document.fields, TASK_SHARD.split("."))
    if place.HasField("integer_value"):
        shard = place.integer_value
    else:
        shard = -1
    has_words = find_value(document.fields, WORDS.split(".")).HasField("array_value")
    return TaskVersion(document.update_time.ToNanoseconds(), shard, document.ByteSize(), has_words)


def read_task(known: KnownTasks, document: Message, read_at: datetime | None = None) -> VersionedTask:
    """Return a task. One whose last write this process knows is not parsed."""
    key = document.name.rpartition("/")[2]
    version = read_version(document)
    stamp = version.value, get_commit_id(document)
    return VersionedTask(
        known.read(key, stamp, version, version.size, partial(to_document, Task, document)), version, read_at
    )


def is_wake_moved(before: Task, task: Task) -> bool:
    """Return whether a task has its `wake_at` in another place than before, or in that of its removal."""
    return before.waits_for_removal or task.waits_for_removal


def list_field_paths(
    before: Task,
    task: Task,
    written: AbstractSet[str],
    version: TaskVersion,
    shard: int,
    *,
    has_words: bool,
) -> list[str]:
    """Return the paths of an update's mask. `version` is the one that was read."""
    keys = _list_keys()
    paths = [COMMIT_ID, *[keys[name] for name in written]]
    if is_wake_moved(before, task):
        paths.append(REMOVE_AT)
    if task.delivery is not None:
        paths = [f"{UNLISTED}.{path}" if path in HIDDEN else path for path in paths]
    if version.shard != shard:
        paths.append(TASK_SHARD)
    if find_open_position(before) != find_open_position(task):
        paths.append(OPEN)
    if find_trouble(before) != find_trouble(task):
        paths.append(TROUBLE)
    if before.history[-1:] != task.history[-1:]:
        paths.append(ACTED)
    if version.has_words != has_words or (has_words and not written.isdisjoint(_NAMES)):
        paths.append(WORDS)
    return paths


@cache
def _list_keys() -> dict[str, str]:
    keys = {each.name: each.key for each in list_stored_fields(Task)}
    return {name: f"{PRIVATE}.{key}" if key in PRIVATE_FIELDS else key for name, key in keys.items()}
