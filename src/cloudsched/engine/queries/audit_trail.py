"""List who did what, and when: from the histories that the tasks keep, and the notes of what keeps none.

An index has when each task was last acted on, so that the list costs no write. The tasks acted on last are read until
a page is full. A deletion, and an act on a budget or a queue, has a note of its own (`AuditNote`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.domain.documents.audit_note import AuditNote, find_first_id
from cloudsched.domain.documents.authority import say_subject
from cloudsched.engine.state.record_changes import iterate_records
from cloudsched.engine.storage.matching_rows import MAX_LOOKED_THROUGH
from cloudsched.engine.storage.pages import make_token, read_token

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.domain.documents.task import HistoryEntry
    from cloudsched.domain.documents.verbs import Action
    from cloudsched.engine.ports.records import RecordStore
    from cloudsched.engine.ports.store import Store

_TASKS = 200
"""The number of tasks that are read at a time."""
_NOTES = 100
"""The number of notes that are read at a time."""


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """The filters of the list. An action must match every one that is set."""

    owner: str | None = None
    """The owner of the task."""
    by: str | None = None
    """A part of the name of who did it, in any case, or ``scheduler``."""
    action: Action | None = None
    since: datetime | None = None
    """Not before this instant."""
    until: datetime | None = None
    """Before this instant, exclusively."""

    def matches(self, entry: HistoryEntry) -> bool:
        """Return whether an action matches all but the owner."""
        return (
            (self.action is None or entry.action is self.action)
            and (self.since is None or entry.at >= self.since)
            and (self.until is None or entry.at < self.until)
            and (self.by is None or self.by.casefold() in _name_actor(entry))
        )


@dataclass(frozen=True, slots=True)
class AuditSlice:
    """A page of the list, the latest first."""

    items: Sequence[AuditItem]
    next_page_token: str | None
    is_complete: bool
    """False if the tasks that were read do not suffice, so that older actions are missing."""


@dataclass(frozen=True, slots=True)
class AuditItem:
    """An action, and what it was done to."""

    place: tuple[datetime, str, int]
    """Its place in the list: when, to what, and its number."""
    entry: HistoryEntry
    owner: str
    title: str
    task_id: str | None = None
    queue: str | None = None


def list_audit_entries(store: Store, query: AuditQuery, limit: int, page_token: str | None = None) -> AuditSlice:
    """Return a page of the actions on tasks that exist, and of what there are notes of. Raises InvalidInput."""
    after = _read_position(query, page_token)
    found, are_all_read = _list_notes(store.records, query, limit, after)
    token = None
    left = MAX_LOOKED_THROUGH
    while left > 0:
        page = store.search.list_acted_on(query.owner, query.since, limit=min(_TASKS, left), page_token=token)
        left -= page.read
        for task in page.items:
            for entry in task.history:
                place = entry.at, task.id, entry.number
                if query.matches(entry) and (after is None or place < after):
                    found.append(AuditItem(place, entry, task.owner, task.title, task.id))
        found.sort(key=lambda each: each.place, reverse=True)
        token = page.next_page_token
        if token is None:
            break
        # No task that follows was acted on after the last of these.
        if len(found) > limit and page.items and found[limit].entry.at >= page.items[-1].history[-1].at:
            break

    shown = found[:limit]
    is_complete = are_all_read and (token is None or left > 0)
    following = None
    if len(found) > limit:
        at, key, number = shown[-1].place
        following = make_token(("actions", query), at, f"{key}.{number}")
        is_complete = True
    return AuditSlice(shown, following, is_complete)


def _list_notes(
    records: RecordStore, query: AuditQuery, limit: int, after: tuple[datetime, str, int] | None
) -> tuple[list[AuditItem], bool]:
    """Return the notes that match, one more than a page has, and whether no older one can match."""
    latest = min((at for at in (query.until, after and after[0]) if at is not None), default=None)
    start = find_first_id(latest) if latest else ""
    if query.owner is None:
        read = partial(records.list_all, AuditNote, limit=_NOTES)
    else:
        read = partial(records.list, AuditNote, query.owner, limit=_NOTES)
    found: list[AuditItem] = []
    for number, note in enumerate(iterate_records(read, _NOTES, start)):
        is_enough = len(found) > limit and note.entry.at < found[-1].entry.at  # those of one instant are not in order
        if is_enough or (query.since is not None and note.entry.at < query.since):
            break
        if number == MAX_LOOKED_THROUGH:
            return found, False
        place = note.entry.at, _place(note), 0
        if query.matches(note.entry) and (after is None or place < after):
            found.append(AuditItem(place, note.entry, note.owner, note.title, note.task_id, note.queue))
    return found, True


def _place(note: AuditNote) -> str:
    """Return the place of a note in its instant: the order of acts on what has no history is that of their numbers."""
    number = note.entry.number if note.task_id is None else 0
    return f"{number:04}-{note.id}"


def _read_position(query: AuditQuery, token: str | None) -> tuple[datetime, str, int] | None:
    if not token:
        return None
    at, key = read_token(("actions", query), token)
    task_id, _, number = key.rpartition(".")
    return at, task_id, int(number) if number.isdecimal() else 0


def _name_actor(entry: HistoryEntry) -> str:
    if entry.by is None:
        return "the scheduler"
    names = (say_subject(entry.by.subject), entry.by.subject, entry.by.user, entry.by.via)
    return " ".join(name for name in names if name is not None).casefold()
