"""Lists across tasks in SQLite: each reads an index of failures or of all others, in its order.

Of owner, handler and category the index of the first is read, and its rows are filtered by the status. What else
Firestore has no index for is passed over here as it is there, up to the same bound.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from cloudsched.adapters.sqlite.queries import BODY, Listing, build_task_listing, from_microseconds, to_microseconds
from cloudsched.domain.documents.document import Document
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.locks import Lock
from cloudsched.engine.ports.pages import MAX_PAGE_BYTES, Page, make_token, read_token, skip_unreadable
from cloudsched.engine.ports.search import (
    LEFT_OUT,
    find_matching_rows,
    identify_finished_list,
    identify_open_list,
    refuse_count,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.adapters.sqlite.database import Database, Row
    from cloudsched.domain.documents.execution import ExecutionStatus
    from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery


D = TypeVar("D", bound=Document)


def fetch_page(  # noqa: PLR0917 - a list and the position in it
    database: Database,
    kind: type[D],
    listing: Listing,
    query: object,
    limit: int,
    page_token: str | None,
    max_bytes: int = MAX_PAGE_BYTES,
) -> Page[D]:
    """Return a page of a list. `query` is what its page tokens belong to."""
    start = read_token(query, page_token) if page_token else None

    def read(after: Row | None, count: int) -> Sequence[Row]:
        return database.read(*listing.to_statement(start if after is None else _to_position(after), count))

    is_bounded = bool(listing.looked_for)
    found = find_matching_rows(
        read, lambda row: bool(row[2]), _measure, limit=limit, max_bytes=max_bytes, is_bounded=is_bounded
    )
    items = skip_unreadable([(row[-1], partial(kind.from_stored_json, row[-1], row[1])) for row in found.rows])
    token = None if found.last is None else make_token(query, *_to_position(found.last))
    return Page(items, token, len(found.rows) - len(items), found.passed_over, found.size)


def _measure(row: Row) -> int:
    """Return how many bytes a row's document has; none if it is not one of the list, whose document is not read."""
    return len(row[1] or b"")


def _to_position(row: Row) -> tuple[datetime, str]:
    """Return where a row stands in its list: its instant, and its id behind those of what it belongs to."""
    at, _, _, *keys = row
    return from_microseconds(at), ".".join(keys)


_HAS_USED = """ AND (body LIKE '%"usage":["%' OR body LIKE '%"usage":[{%')"""
"""Whether a task's document has usage: packed, or as in documents of schema version 1. A payload may have it, too."""
_LEFT_OUT = ", ".join(f"'$.{name}'" for name in LEFT_OUT)
_SUMMARY = f"CAST(CASE WHEN json_valid(body) THEN json_remove(body, {_LEFT_OUT}) ELSE body END AS BLOB)"
"""A record without its result and steps; as it is if it is damaged."""


class SqliteSearch:
    """A `SearchStore` in the database of a `SqliteStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list_finished(
        self, query: ExecutionQuery, *, is_failure: bool, limit: int, page_token: str | None = None
    ) -> Page[Execution]:
        """Return a page of the matching final records, without their results and steps."""
        listing = _select_finished(query, is_failure=is_failure)
        return fetch_page(
            self._database, Execution, listing, identify_finished_list(query, is_failure=is_failure), limit, page_token
        )

    def list_open(
        self, query: ExecutionQuery, status: ExecutionStatus, *, limit: int, page_token: str | None = None
    ) -> Page[Task]:
        """Return a page of the tasks whose most active open run has this status."""
        listing = _select_open(query, status)
        return fetch_page(self._database, Task, listing, identify_open_list(query, status), limit, page_token)

    def count_tasks(self, query: TaskQuery, up_to: int) -> int:
        """Return how many tasks match, at most `up_to`."""
        query.require_index()
        return self._count(build_task_listing(query), up_to)

    def count_finished(self, query: ExecutionQuery, *, is_failure: bool, up_to: int) -> int:
        """Return how many final records match, at most `up_to`."""
        refuse_count(query.find_looked_for(is_open=False))
        return self._count(_select_finished(query, is_failure=is_failure), up_to)

    def count_open(self, query: ExecutionQuery, status: ExecutionStatus, up_to: int) -> int:
        """Return how many tasks have an open run of this status, at most `up_to`."""
        refuse_count(query.find_looked_for(is_open=True))
        return self._count(_select_open(query, status), up_to)

    def _count(self, listing: Listing, up_to: int) -> int:
        where = " AND ".join([f"{listing.order} IS NOT NULL", *listing.conditions])
        statement = f"SELECT count(*) FROM (SELECT 1 FROM {listing.table} WHERE {where} LIMIT ?)"  # noqa: S608 - no input
        return int(self._database.read(statement, [*listing.values, up_to])[0][0])

    def find_last_change(self, owner: str | None) -> str:
        """Return how often tasks were stored or deleted, as text."""
        where, values = ("", ()) if owner is None else (" WHERE owner = ?", (owner,))
        rows = self._database.read(f"SELECT coalesce(sum(number), 0) FROM changes{where}", values)  # noqa: S608 - no input
        return str(rows[0][0])

    def list_changed(self, owner: str | None, since: str, *, limit: int, page_token: str | None = None) -> Page[Task]:
        """Return a page of all tasks that have used anything: when each was stored is not in an index here."""
        key, after = ("changed", owner, since), ""
        if page_token:
            _, after = read_token(key, page_token)
        mine, values = ("", ()) if owner is None else (" AND owner = ?", (owner,))
        statement = f"SELECT id, {BODY} FROM tasks WHERE id > ?{mine} {_HAS_USED} ORDER BY id LIMIT ?"  # noqa: S608 - no input

        def read(last: Row | None, count: int) -> Sequence[Row]:
            return self._database.read(statement, (after if last is None else last[0], *values, count))

        found = find_matching_rows(read, bool, _measure, limit=limit)
        items = skip_unreadable([(row[0], partial(Task.from_stored_json, *row)) for row in found.rows])
        token = None if found.last is None else make_token(key, from_microseconds(0), found.last[0])
        return Page(items, token, len(found.rows) - len(items), size=found.size)

    def list_queue_keys(self, owner: str | None, *, limit: int, prefix: str = "", after: str = "") -> list[str]:
        """Return the first queue keys that have offers, each found by one look into the index."""
        mine = "" if owner is None else " AND owner = ?"
        statement = f"SELECT queue_key FROM offers WHERE queue_key > ?{mine} ORDER BY queue_key LIMIT 1"  # noqa: S608 - no input
        keys, last = list[str](), max(after, prefix)
        while len(keys) < limit:
            rows = self._database.read(statement, (last, *(() if owner is None else (owner,))))
            if not rows or not rows[0][0].startswith(prefix):
                break
            last = rows[0][0]
            keys.append(last)
        return keys

    def count_offers(self, queue_key: str, owner: str | None, up_to: int) -> int:
        """Return how many offers there are under a queue key, at most `up_to`."""
        mine = "" if owner is None else " AND owner = ?"
        statement = f"SELECT count(*) FROM (SELECT 1 FROM offers WHERE queue_key = ?{mine} LIMIT ?)"  # noqa: S608 - no input
        return int(self._database.read(statement, (queue_key, *(() if owner is None else (owner,)), up_to))[0][0])

    def list_locks(self, *, limit: int, begin: str = "", end: str | None = None, after: str = "") -> list[Lock]:
        """Return the first locks by their keys."""
        found, last = list[Lock](), after
        until = "" if end is None else " AND key < ?"
        statement = f"SELECT key, {BODY} FROM locks WHERE key > ? AND key >= ?{until} ORDER BY key LIMIT ?"  # noqa: S608 - no input
        while len(found) < limit:  # an unreadable document is skipped and must not hide those after it
            missing = limit - len(found)
            rows = self._database.read(statement, (last, begin, *(() if end is None else (end,)), missing))
            found += skip_unreadable((key, partial(Lock.from_stored_json, key, body)) for key, body in rows)
            if len(rows) < missing:
                break
            last = rows[-1][0]
        return found


def _select_finished(query: ExecutionQuery, *, is_failure: bool) -> Listing:
    """Return the listing of final records."""
    looked_for = query.find_looked_for(is_open=False)
    label = None if looked_for else query.label
    table, found = "executions", "executions"
    conditions, values = ["executions.is_failure = ?"], list[object]([is_failure])
    if label is not None:  # CROSS JOIN: the labels are read first (sqlite.org/optoverview.html)
        table, found = "execution_labels AS found CROSS JOIN executions USING (task_id, id)", "found"
        conditions, values = ["found.label = ?", "found.is_failure = ?"], [label, is_failure]
    is_led = label is not None
    equals = {"owner": query.owner, "handler": query.handler, "category": query.category, "status": query.status}
    for column, value in equals.items():
        if value is not None and column not in looked_for:
            # A unary plus keeps SQLite from choosing another index (sqlite.org/optoverview.html).
            conditions.append(f"{'+' if is_led else ''}executions.{column} = ?")
            values.append(value)
            is_led = True
    order = f"{found}.scheduled_for"
    for comparison, at in ((">=", query.since), ("<", query.until)):
        if at is not None:
            conditions.append(f"{order} {comparison} ?")
            values.append(to_microseconds(at))
    return Listing(
        table,
        order,
        is_descending=True,
        conditions=conditions,
        values=values,
        keys=(f"{found}.task_id", f"{found}.id"),
        body=_SUMMARY,
        looked_for=looked_for,
    )


def _select_open(query: ExecutionQuery, status: ExecutionStatus) -> Listing:
    """Return the listing of tasks with open runs."""
    owner = {} if query.owner is None else {"+owner = ?": query.owner}
    return Listing(
        "tasks",
        "open_since",
        is_descending=True,
        conditions=("open_status = ?", *owner),
        values=(status, *owner.values()),
        looked_for=query.find_looked_for(is_open=True),
    )
