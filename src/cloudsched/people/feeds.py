"""Feeds: an owner's tasks as a calendar that programs fetch with a secret in its address."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.state.record_changes import delete_record
from cloudsched.errors import InvalidInput, NotFound
from cloudsched.people.documents import Feed, feed_id
from cloudsched.people.feed_text import BEFORE, MAX_PAST, FeedTask, build_feed
from cloudsched.people.task_calendar import build_task_calendar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.category import Category
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.authority import Authority
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store

MAX_TASKS: Final = 300
"""The most tasks of an owner that a feed shows, the newest."""
MAX_BYTES: Final = 2_000_000
"""The most bytes of records from which it shows the outcomes of past occurrences."""
_PAGE_SIZE: Final = 100
_SECRET_BYTES: Final = 32


class Feeds:
    """Creates, lists, revokes and renders feeds."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def create(
        self,
        owner: str,
        categories: Sequence[Category] = (),
        labels: Sequence[str] = (),
        *,
        by: Authority,
    ) -> tuple[Feed, str]:
        """Create a feed. Return it and its secret, which is not stored. Raises Forbidden or InvalidInput."""
        by.require_owner(owner)
        if len(self.list(owner)) >= Feed.max_per_owner:
            problem = f"has {Feed.max_per_owner} feeds, as many as one may have"
            raise InvalidInput("owner", problem, "Delete one that is no longer used.")

        secret = secrets.token_urlsafe(_SECRET_BYTES)
        now = self._clock.now()
        feed = Feed(
            id=feed_id(secret),
            owner=owner,
            categories=tuple(categories),
            labels=tuple(labels),
            created_at=now,
            updated_at=now,
        )
        self._store.records.write(feed, None)
        return feed, secret

    def list(self, owner: str) -> Sequence[Feed]:
        """Return an owner's feeds."""
        return self._store.records.list(Feed, owner, limit=Feed.max_per_owner + 1)

    def get(self, key: str) -> Feed:
        """Return a feed by its id. Raises NotFound."""
        stored = self._store.records.load(Feed, key)
        if stored is None:
            raise NotFound("feed", key)
        return stored.record

    def revoke(self, key: str, *, by: Authority) -> None:
        """Delete a feed, so that its address shows nothing. Raises NotFound, or Forbidden for another owner's."""
        by.require_owner(self.get(key).owner)
        delete_record(self._store.records, Feed, key)

    def render(self, secret: str) -> str:
        """Return the iCalendar text of the feed with a secret.

        One document is read to find it, then the owner's tasks, and of each that has run, the executions
        of 30 days. Raises NotFound.
        """
        feed = self.get(feed_id(secret))
        now = self._clock.now()
        query = TaskQuery(owner=feed.owner, label=next(iter(feed.labels), None))
        page = self._store.list_tasks(query, limit=MAX_TASKS)
        shown = [task for task in page.items if task.parent is None and _is_shown(feed, task)]
        histories = self._read_histories(shown, now)
        title = ", ".join([*(each.capitalize() for each in feed.categories), *feed.labels]) or "Tasks"
        return build_feed(histories, now, title=title, is_cut=page.next_page_token is not None)

    def render_task(self, task: Task) -> str:
        """Return the iCalendar text of one task."""
        return build_task_calendar(task, self._clock.now())

    def _read_histories(self, tasks: Iterable[Task], now: datetime) -> Iterator[FeedTask]:
        """Yield tasks with their executions: no more of these once `MAX_BYTES` have been read."""
        left = MAX_BYTES
        for task in tasks:
            found: list[Execution] = []
            token: str | None = None
            has_more = task.last_execution_id is not None
            while has_more and left > 0 and len(found) <= MAX_PAST:
                page = self._store.search.list_executions(task.id, limit=_PAGE_SIZE, page_token=token)
                recent = [each for each in page.items if each.scheduled_for >= now - BEFORE]
                found += recent
                left -= page.size
                token = page.next_page_token
                has_more = token is not None and len(recent) == len(page.items)
            yield FeedTask(task, found, is_cut=has_more and len(found) <= MAX_PAST)


def _is_shown(feed: Feed, task: Task) -> bool:
    if feed.categories and task.category not in feed.categories:
        return False
    return set(feed.labels) <= set(task.labels)
