"""Change records that others may change at the same time: read, decide, write, and again if another was first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.record import Record
    from cloudsched.engine.ports.records import RecordStore

T = TypeVar("T")

MAX_TRIES: Final = 10
"""How often a change is decided again because another one took effect first."""


def retry_conflicts(key: str, write: Callable[[], T]) -> T:
    """Return what `write` returns; it reads, decides and writes, and is called again after a conflict.

    Raises:
        VersionConflict: Others were first each time.
    """
    for _ in range(MAX_TRIES):
        try:
            return write()
        except VersionConflict:
            continue
    raise VersionConflict(key)


def delete_record(records: RecordStore, kind: type[Record], record_id: str) -> None:
    """Delete a record, if there is one."""

    def delete() -> None:
        stored = records.load(kind, record_id)
        if stored is not None:
            records.delete(kind, record_id, stored.version)

    retry_conflicts(record_id, delete)
