"""List the actions on all tasks: who did what, and when, from the histories that the tasks keep.

An index has when each task was last acted on, so that the list costs no write. The tasks acted on last are read until
a page is full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.engine.storage.matching_rows import MAX_LOOKED_THROUGH
from cloudsched.engine.storage.pages import make_token, read_token

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.task import HistoryEntry, Task
    from cloudsched.domain.documents.verbs import Action
    from cloudsched.engine.ports.search import SearchStore

_TASKS = 200
"""The number of tasks that are read at a time."""
SCHEDULER = "scheduler"
"""The name by which the scheduler's own actions are asked for."""


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
    """A page of the list: each action with its task, the latest first."""

    items: Sequence[tuple[Task, HistoryEntry]]
    next_page_token: str | None
    is_complete: bool
    """False if the tasks that were read do not suffice, so that older actions are missing."""


def list_audit_entries(search: SearchStore, query: AuditQuery, limit: int, page_token: str | None = None) -> AuditSlice:
    """Return a page of the actions on tasks that exist. Raises InvalidInput."""
    after = _read_position(query, page_token)
    found: list[tuple[tuple[datetime, str, int], Task, HistoryEntry]] = []
    token = None
    left = MAX_LOOKED_THROUGH
    while left > 0:
        page = search.list_acted_on(query.owner, query.since, limit=min(_TASKS, left), page_token=token)
        left -= page.read
        for task in page.items:
            places = _list_places(task)
            found += [(at, task, one) for at, one in places if query.matches(one) and (after is None or at < after)]
        found.sort(key=lambda each: each[0], reverse=True)
        token = page.next_page_token
        if token is None:
            break
        # No task that follows was acted on after the last of these.
        if len(found) > limit and page.items and found[limit][0][0] >= page.items[-1].history[-1].at:
            break

    shown = found[:limit]
    is_complete = token is None or left > 0
    following = None
    if len(found) > limit:
        (at, task_id, number), *_ = shown[-1]
        following = make_token(("actions", query), at, f"{task_id}.{number}")
        is_complete = True
    return AuditSlice([(task, entry) for _, task, entry in shown], following, is_complete)


def _list_places(task: Task) -> Iterator[tuple[tuple[datetime, str, int], HistoryEntry]]:
    for entry in task.history:
        yield (entry.at, task.id, entry.number), entry


def _read_position(query: AuditQuery, token: str | None) -> tuple[datetime, str, int] | None:
    if not token:
        return None
    at, key = read_token(("actions", query), token)
    task_id, _, number = key.rpartition(".")
    return at, task_id, int(number) if number.isdecimal() else 0


def _name_actor(entry: HistoryEntry) -> str:
    if entry.by is None:
        return SCHEDULER
    names = (entry.by.subject, entry.by.user, entry.by.via)
    return " ".join(name for name in names if name is not None).casefold()
