"""What a process has parsed: a task that is stored as it was is not parsed again.

A store says what tells one stored form from every other (its stamp): the document itself, or what Firestore says of its
last write. So it does not matter who wrote it, whether the task was deleted and created again, or whether the database
was restored: another form has another stamp, and is parsed.

Tasks are immutable but for the JSON values in them (payloads, events), which handlers get. So these are kept apart, as
copies, and a task that is found has copies of these.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Final

from cloudsched.domain.documents.changeable_values import copy_changeable, list_changeable
from cloudsched.domain.documents.document import SCHEMA_VERSION
from cloudsched.domain.documents.task import Task

MAX_BYTES: Final = 2 * 1024 * 1024
"""How many bytes the kept tasks may have, as they are stored. Parsed, they take ten times as many."""


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
        self._kept: OrderedDict[str, tuple[object, Task, dict[str, Any], int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The bytes of the kept tasks, as they are stored."""
        return self._bytes

    def find(self, task_id: str, stamp: object) -> Task | None:
        """Return the task if it is known in this form; if not, the store parses it."""
        with self._lock:
            known = self._kept.get(task_id)
            if known is None or known[0] != stamp:
                _thread.parsed += 1
                return None
            self._kept.move_to_end(task_id)
        _, task, values, _ = known
        return task.model_copy(update=copy_changeable(values, values)) if values else task

    def keep(self, task: Task, stamp: object, size: int) -> None:
        """Keep a task as it is stored, in so many bytes; the one that was not used for longest goes.

        A task that is stored in another schema version is not kept: reading it may be an error.
        """
        if task.schema_version != SCHEMA_VERSION:
            return
        values = copy_changeable(task.__dict__, list_changeable(Task))
        with self._lock:
            *_, earlier = self._kept.pop(task.id, (0,))
            self._bytes -= earlier
            if size > self._max_bytes:
                return
            self._kept[task.id] = stamp, task, values, size
            self._bytes += size
            while self._bytes > self._max_bytes:
                _, (*_, dropped) = self._kept.popitem(last=False)
                self._bytes -= dropped
