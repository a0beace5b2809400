"""Change records that others may change at the same time: read, decide, write, and repeat on a conflict."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from cloudsched.domain.documents.audit_note import AuditNote, find_first_id
from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.person import Person
from cloudsched.domain.documents.recent_count import RecentCount
from cloudsched.domain.documents.record import Record
from cloudsched.engine.state.commits import compare_and_set
from cloudsched.errors import QuotaExceeded, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cloudsched.domain.documents.task import HistoryEntry
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore, VersionedRecord

_TIES = 100
"""The most acts of one instant among which a new one is numbered."""
R = TypeVar("R", bound=Record)
Changed = TypeVar("Changed", bound="Record | None")


def change_record(
    records: RecordStore, kind: type[R], record_id: str, change: Callable[[R | None], Changed]
) -> Changed:
    """Write what `change` makes of a record, which is None if there is none. Return what it made.

    It is called again after a conflict. If it returns None, or what there was, nothing is written.
    """

    def write(stored: VersionedRecord[R] | None) -> Changed:
        before = None if stored is None else stored.record
        after = change(before)
        if after is not None and after != before:
            records.write(after, None if stored is None else stored.version)
        return after

    return compare_and_set(f"{kind.collection}/{record_id}", lambda: records.load(kind, record_id), write)


def write_note(records: RecordStore, note: Record) -> None:
    """Write a record that never changes, unless an earlier attempt has."""
    with suppress(VersionConflict):
        records.write(note, None)


def note_act(records: RecordStore, entry: HistoryEntry, *, owner: str, queue: str | None = None) -> None:
    """Note an act on what keeps no history. Costs a read, for its place among the acts of one instant."""
    seen = records.list_all(AuditNote, limit=_TIES, after=find_first_id(entry.at))
    number = 1 + sum(each.entry.at == entry.at for each in seen)
    numbered = entry.model_copy(update={"number": number})
    write_note(records, AuditNote.of(numbered, owner=owner, queue=queue))


def iterate_records(read: Callable[..., Sequence[R]], page_size: int, after: str = "") -> Iterator[R]:
    """Yield the records of a list, a page at a time.

    `read` returns those after an id, a short page only at the end.
    """
    while True:
        page = read(after=after)
        yield from page
        if len(page) < page_size:
            return
        after = page[-1].id


def find_record(records: RecordStore, kind: type[R], record_id: str) -> R | None:
    """Return a record, or None if there is none."""
    stored = records.load(kind, record_id)
    return None if stored is None else stored.record


def delete_record(records: RecordStore, kind: type[Record], record_id: str) -> None:
    """Delete a record, if there is one."""

    def delete(stored: VersionedRecord[Record] | None) -> None:
        if stored is not None:
            records.delete(kind, record_id, stored.version)

    compare_and_set(f"{kind.collection}/{record_id}", lambda: records.load(kind, record_id), delete)


def change_person(
    records: RecordStore,
    clock: Clock,
    owner: str,
    change: Callable[[Person], Person],
) -> Person | None:
    """Change the record of a person, if there is one. A change that changes nothing writes nothing."""

    def decide(person: Person | None) -> Person | None:
        if person is None:
            return None
        changed = change(person)
        if changed == person:
            return person
        return changed.model_copy(update={"updated_at": clock.now()})

    return change_record(records, Person, owner, decide)


def count_recent(  # noqa: PLR0913 - each is a part of the limit
    records: RecordStore,
    clock: Clock,
    key: str,
    *,
    limit: int,
    span: timedelta,
    quota: str,
    hint: str,
    interval: timedelta = timedelta(0),
) -> None:
    """Count an event of at most `limit` within a span of time, each at least an interval after the last.

    The counts belong to the system: erasing a person's data begins no new span. If there is no room,
    nothing is counted.
    """

    def count(known: RecentCount | None) -> RecentCount:
        now = clock.now()
        recent = tuple(each for each in (() if known is None else known.sent_at) if now - each < span)
        frees_at = recent[-1] + interval if recent and interval else now  # another machine's clock may be ahead
        if len(recent) >= limit:
            frees_at = max(frees_at, recent[-limit] + span)
        if frees_at > now:
            seconds = -(-(frees_at - now) // timedelta(seconds=1))
            raise QuotaExceeded(quota, limit, f"{hint} Try again in {seconds} s.".lstrip(), seconds)
        return RecentCount(
            id=key,
            owner=SYSTEM_OWNER,
            sent_at=(*recent, now),
            created_at=now if known is None else known.created_at,
            updated_at=now,
            expire_at=now + span,
        )

    change_record(records, RecentCount, key, count)
