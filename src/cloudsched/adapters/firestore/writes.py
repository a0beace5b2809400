"""The writes of a commit in Firestore, which takes them together or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cloudsched.adapters.firestore import protos as messages
from cloudsched.adapters.firestore.list_fields import (
    ACTED,
    CHANGED_AT,
    OFFER_WRITTEN_AT,
    OPEN,
    TASK_SHARD,
    TROUBLE,
    WORDS,
    TaskVersion,
    add_list_fields,
    build_delivery_mark,
    build_kept_mark,
    build_write,
    hide_from_lists,
    is_wake_moved,
    list_field_paths,
)
from cloudsched.adapters.firestore.protos import (
    build_precondition_write,
    get_private,
    require_write_fits,
    with_precondition,
)
from cloudsched.adapters.firestore.values import encode_model
from cloudsched.domain.documents.document import Document, find_changes
from cloudsched.domain.documents.journal import entry_id

if TYPE_CHECKING:
    from cloudsched.adapters.firestore.shards import Shards
    from cloudsched.adapters.google import channel as google_calls
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.commit import Commit, TaskWrite, VersionedTask
    from cloudsched.features.fields import OfferEntry

_Write: google_calls.Message = messages.Write
_REQUEST_TIME = messages.DocumentTransform.FieldTransform.ServerValue.REQUEST_TIME


class CommitWrites:
    """Builds the writes of commits."""

    def __init__(self, documents: str, shards: Shards, *, name_index: bool) -> None:
        self._documents = documents
        self._shards = shards
        self._name_index = name_index

    def build(self, commit: Commit) -> tuple[list[google_calls.Message], list[tuple[int, TaskWrite]]]:
        """Return all writes but those of a linked document, and for each task the place of its own among them."""
        task = commit.task
        writes: list[google_calls.Message] = []
        places: list[tuple[int, TaskWrite]] = []
        for each in (commit, *commit.others):
            places.append((len(writes), each))
            writes += self._build_task(each)
        writes += (self.build_document(m, "inboxes", m.owner, "messages", m.id) for m in commit.messages)
        writes += (
            with_precondition(build_write(self._documents, (each.collection, each.id), each), version)
            for each, version in commit.records
        )
        for archived in commit.archived:
            steps = f"{self._documents}/tasks/{task.id}/executions/{archived.execution_id}/steps"
            writes += (_Write(delete=f"{steps}/{entry_id(number)}") for number in range(1, archived.size + 1))
        writes += (
            self.build_document(e, "tasks", task.id, "executions", e.execution_id, "steps", e.id)
            for e in commit.entries
        )
        writes += (
            build_precondition_write(f"{self._documents}/tasks/{each.task.id}", each.version)
            for each in commit.unchanged
        )
        if commit.delivered is not None:
            writes.append(build_delivery_mark(self._documents, commit.delivered))
        return writes, places

    def _build_task(self, task_write: TaskWrite) -> list[google_calls.Message]:
        task = task_write.task
        base = task_write.base
        version = None if base is None else base.version
        if base is None:
            write = self.build_document(task, "tasks", task.id)
        else:
            write = self._build_update(task, base)
        with_precondition(write, version)
        write.update_transforms.add(field_path=CHANGED_AT, set_to_server_value=_REQUEST_TIME)
        writes = [write]
        before, offer = task_write.find_offers()
        if offer != before:
            writes.append(self._build_offer_write(task.id, offer))
        writes += (self.build_document(e, "tasks", task.id, "executions", e.id) for e in task_write.executions)
        if task_write.kept_record is not None:
            writes.append(build_kept_mark(self._documents, task.id, task_write.kept_record))
        return writes

    def _build_update(self, task: Task, base: VersionedTask) -> google_calls.Message:
        """Return the write of what differs from the task as it was read.

        A field in the mask that the write does not have is deleted: it has its default again.
        """
        stored = base.task
        version = cast("TaskVersion", base.version)
        shard = self._shards.choose(task.id)
        written = find_changes(stored, task)
        if is_wake_moved(stored, task):
            written = {*written, "wake_at"}
        task.require_readable(written)
        write = _Write()
        path = ("tasks", task.id)
        write.update.name = "/".join((self._documents, *path))
        fields = write.update.fields
        encode_model(fields, task, written)
        hide_from_lists(fields, task)
        has_words = self.has_words(task)
        add_list_fields(fields, task, shard, has_words=has_words)
        paths = list_field_paths(stored, task, written, version, shard, has_words=has_words)
        private = get_private(fields)
        for field_path in (ACTED, OPEN, TROUBLE, TASK_SHARD, WORDS):
            if field_path not in paths:
                private.pop(field_path.split(".")[1], None)
        write.update_mask.field_paths.extend(paths)
        require_write_fits(path, write, task, version.size)
        return write

    def build_document(self, document: Document, *path: str) -> google_calls.Message:
        """Return the write of a whole document."""
        shard = self._shards.choose(path[1])
        return build_write(self._documents, path, document, shard, has_words=self._name_index)

    def has_words(self, task: Task) -> bool:
        """Return whether a task is written with the beginnings of its words."""
        return self._name_index and task.delivery is None

    def _build_offer_write(self, task_id: str, offer: OfferEntry | None) -> google_calls.Message:
        """Return the write of a task's offer, or its deletion.

        The precondition of the task's own write covers it.
        """
        if offer is None:
            return _Write(delete=f"{self._documents}/offers/{task_id}")
        write = self.build_document(offer, "offers", task_id)
        write.update_transforms.add(field_path=OFFER_WRITTEN_AT, set_to_server_value=_REQUEST_TIME)
        return write
