"""Change records that others may change at the same time: read, decide, write, and again if another was first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from cloudsched.domain.documents.person import Person
from cloudsched.engine.state.commits import compare_and_set

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.record import Record
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore

T = TypeVar("T")


def retry_conflicts(what: str, write: Callable[[], T]) -> T:
    """Return what `write` returns; it reads, decides and writes, and is called again after a conflict.

    Raises:
        Contended: Others kept changing it.
    """
    return compare_and_set(what, lambda: None, lambda _: write())


def delete_record(records: RecordStore, kind: type[Record], record_id: str) -> None:
    """Delete a record, if there is one."""

    def delete() -> None:
        stored = records.load(kind, record_id)
        if stored is not None:
            records.delete(kind, record_id, stored.version)

    retry_conflicts(record_id, delete)


def change_person(records: RecordStore, clock: Clock, owner: str, change: Callable[[Person], Person]) -> Person | None:
    """Change what is stored of a person, if there is one; a change that changes nothing writes nothing."""

    def write() -> Person | None:
        stored = records.load(Person, owner)
        if stored is None:
            return None
        changed = change(stored.record)
        if changed != stored.record:
            changed = changed.model_copy(update={"updated_at": clock.now()})
            records.write(changed, stored.version)
        return changed

    return retry_conflicts(owner, write)
