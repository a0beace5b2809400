"""Change records that others may change at the same time: read, decide, write, and again if another was first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.person import Person, RecentCount
from cloudsched.engine.state.commits import compare_and_set

if TYPE_CHECKING:
    from cloudsched.domain.documents.record import Record
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import RecordStore, VersionedRecord

T = TypeVar("T")


def retry_conflicts(what: str, write: Callable[[], T]) -> T:
    """Return the result of `write`, which reads, decides and writes, and is called again after a conflict.

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
    """Change the record of a person, if there is one. A change that changes nothing writes nothing."""

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


def count_recent(
    records: RecordStore,
    clock: Clock,
    key: str,
    span: timedelta,
    require_room: Callable[[Sequence[datetime], datetime], None],
) -> None:
    """Count one more event within a span of time.

    The counts belong to the system: erasing a person's data begins no new span.

    Args:
        records: The store of the count.
        clock: The current time.
        key: The id of the count.
        span: The time for which each event counts.
        require_room: Called with the instants of the events within the span, the earliest first, and the current time.
            If it raises, its error propagates, and nothing is counted.
    """

    def write(stored: VersionedRecord[RecentCount] | None) -> None:
        now = clock.now()
        known = () if stored is None else stored.record.sent_at
        recent = tuple(each for each in known if now - each < span)
        require_room(recent, now)
        made = now if stored is None else stored.record.created_at
        counted = RecentCount(
            id=key, owner=SYSTEM_OWNER, sent_at=(*recent, now), created_at=made, updated_at=now, expire_at=now + span
        )
        records.write(counted, None if stored is None else stored.version)

    compare_and_set("count of what was sent", lambda: records.load(RecentCount, key), write)
