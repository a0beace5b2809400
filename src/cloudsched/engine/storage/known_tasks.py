"""A cache of parsed tasks: a task that is stored as it was is not parsed again, nor read before it is claimed.

A store gives each stored form a stamp of its own: the document itself, or the time and id of its last write in
Firestore. So it does not matter who wrote it, whether the task was deleted and created again, or whether the database
was restored: another form has another stamp, and is parsed. It has another version as well: a commit that was decided
from what was known here then conflicts.

Tasks are immutable but for the JSON values in them (payloads, events), which handlers get. So these are kept apart, as
copies, and a task that is found has copies of these. Such a value is equal to others that JSON tells apart: 1 to true,
and to 1.0.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cache
from operator import is_
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

from pydantic import BaseModel

from cloudsched.domain.documents.document import SCHEMA_VERSION
from cloudsched.domain.documents.task import FINAL_STATUSES, Task
from cloudsched.domain.transitions.commit import Version, VersionedTask
from cloudsched.engine.concurrency.fork_safety import make_lock

if TYPE_CHECKING:
    from collections.abc import Callable

_MUTABLE: Final = (dict, list, set)
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def _copy(value: Any) -> Any:  # noqa: ANN401 - any value of a field
    """Return a copy of what can be changed, and anything else as it is."""
    if isinstance(value, dict):
        copied = {**value}
        for key, item in value.items():
            if type(item) is dict and _SCALARS.issuperset(map(type, item.values())):
                copied[key] = {**item}  # as most payloads are
            elif type(item) not in _SCALARS:
                copied[key] = _copy(item)
        return copied
    if isinstance(value, list | tuple):
        copies = list(value)
        for place, item in enumerate(value):
            if type(item) not in _SCALARS:
                copies[place] = _copy(item)
        if isinstance(value, list):
            return copies
        return value if all(map(is_, copies, value)) else tuple(copies)
    if isinstance(value, BaseModel):
        changes = _copy_changeable(value)
        return value.model_copy(update=changes) if changes else value
    return value


def _copy_changeable(model: BaseModel) -> dict[str, Any]:
    """Return copies of what can be changed in a model, by field."""
    fields = model.__dict__
    copies = dict[str, Any]()
    for name in list_changeable(type(model)):
        item = fields[name]
        if (item or type(item) in _MUTABLE) and (copied := _copy(item)) is not item:
            copies[name] = copied
    return copies


def _restore(task: Task, values: dict[str, Any]) -> Task:
    """Return a task with copies of its values that can be changed."""
    return task.model_copy(update=_copy(values)) if values else task


@cache
def list_changeable(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the fields of a model that may hold JSON values, or anything else that can be changed."""
    return tuple(name for name, field in model.model_fields.items() if _may_change(field.annotation))


def _may_change(annotation: Any) -> bool:  # noqa: ANN401 - a type, or what typing makes of one
    if annotation is Any:
        return True
    kind = get_origin(annotation) or annotation
    if isinstance(kind, type):
        if issubclass(kind, _MUTABLE):
            return True
        if issubclass(kind, BaseModel):
            return not kind.model_config.get("frozen") or bool(list_changeable(kind))
    return any(map(_may_change, get_args(annotation)))


MAX_BYTES: Final = 2 * 1024 * 1024
"""The most bytes that the kept tasks may have, as they are stored. Parsed, they take ten times as many."""


class _Thread(threading.local):
    parsed = 0


_thread = _Thread()


def count_parsed() -> int:
    """Return how many tasks this thread did not know, and so had to parse."""
    return _thread.parsed


class KnownTasks:
    """The tasks that were found or written last. Thread-safe."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, tuple[object, Task, dict[str, Any], int, Version]] = OrderedDict()
        self._bytes = 0
        self._lock = make_lock()

    def find(self, task_id: str, stamp: object) -> Task | None:
        """Return the task if it is known in this form. If it is not, the store parses it."""
        with self._lock:
            known = self._kept.get(task_id)
            if known is None or known[0] != stamp:
                _thread.parsed += 1
                return None
            self._kept.move_to_end(task_id)
        return _restore(known[1], known[2])

    def read(self, task_id: str, stamp: object, version: Version, size: int, parse: Callable[[], Task]) -> Task:
        """Return a stored task: as it is known in this form, or else parsed, and known from then on."""
        task = self.find(task_id, stamp)
        if task is None:
            task = parse()
            self.keep(task, version, stamp, size)
        return task

    def recall(self, task_id: str) -> VersionedTask | None:
        """Return the task as it was found or written last, with its version then, or None if it is not known."""
        known = self._kept.get(task_id)
        if known is None:
            return None
        return VersionedTask(_restore(known[1], known[2]), known[4])

    def keep(self, task: Task, version: Version, stamp: object, size: int) -> None:
        """Keep a task that takes so many bytes as it is stored. The least recently used ones make room.

        A task that is stored in another schema version is not kept: reading it may be an error. One that has ended
        is dropped, since nothing claims it.
        """
        if task.schema_version != SCHEMA_VERSION:
            return
        values = _copy_changeable(task)
        with self._lock:
            earlier = self._kept.pop(task.id, None)
            if earlier is not None:
                self._bytes -= earlier[3]
            if size > self._max_bytes or (earlier is not None and task.status in FINAL_STATUSES):
                return
            self._kept[task.id] = stamp, task, values, size, version
            self._bytes += size
            while self._bytes > self._max_bytes:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= dropped[3]
