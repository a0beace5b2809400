"""The SQL of the store's lists: each query reads an index in the order of its list.

A list of tasks that filters by several of label, parent, owner, handler and status uses the index of the
first of them, and filters its rows by the others.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from cloudsched.adapters.sqlite.tables import from_microseconds, to_microseconds
from cloudsched.domain.documents.document import Document
from cloudsched.domain.documents.execution import Execution, ExecutionStatus
from cloudsched.domain.documents.name_words import NameMatch
from cloudsched.domain.documents.run_counts import CountedAs, GroupCount
from cloudsched.domain.documents.task import Task, Trouble
from cloudsched.domain.responses.count import Count, RunCounts
from cloudsched.engine.ports.search import (
    MAX_GROUPED,
    OMITTED_FIELDS,
    UNFINISHED_STATUSES,
    ExecutionQuery,
    OccurrenceQuery,
    TaskQuery,
)
from cloudsched.engine.queries.listing_search import ListingSearch
from cloudsched.engine.storage import matching_rows
from cloudsched.engine.storage.matching_rows import find_matching_rows, list_keys
from cloudsched.engine.storage.pages import (
    MAX_PAGE_BYTES,
    Page,
    read_token,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from cloudsched.adapters.sqlite.database import Row, SqliteDatabase

BODY = "CAST(body AS BLOB) AS body"
"""A document as bytes. As text, one row that is not UTF-8 would fail the whole query instead of being
skipped."""

_RECURS = "CASE WHEN json_valid(body) THEN json_extract(body, '$.isOneTime') END IS NOT 1"
_ENDS_BY_ITSELF = f"(wake_at IS NOT NULL OR parent IS NOT NULL OR trouble = '{Trouble.HELD}')"
"""Whether a paused task may go on by itself. A call has no trouble, even if a budget holds it."""
_LOOKED_FOR = {
    "channel": "CASE WHEN json_valid(body) THEN json_extract(body, '$.delivery.channel') END = ?",
    "label": "? IN (SELECT value FROM json_each(labels))",
}
"""The SQL of filters that are no columns."""


@dataclass(frozen=True, slots=True)
class SqliteListing:
    """A query whose rows are ordered by one instant, then by id."""

    table: str
    order: str
    is_descending: bool = False
    conditions: Sequence[str] = ()
    values: Sequence[object] = ()
    keys: Sequence[str] = ("id",)
    """The columns of the id, in the order of the index: first those of its parent, then its own."""
    body: str = BODY
    more: Sequence[str] = ()
    """Further columns, which go to what parses the document."""
    looked_for: Mapping[str, str] = field(default_factory=dict)
    """Filters by which the rows are told from each other after reading, because no index has them."""

    def to_statement(self, after: tuple[datetime, str] | None, limit: int) -> tuple[str, list[object]]:
        """Return the statement for one page (instant, body, is a match, further columns, ids), and its values.

        A row that does not match has no body, because removing the parts that a list lacks takes long.
        """
        looked_for = tuple(self.looked_for.values())
        conditions = [f"{self.order} IS NOT NULL", *self.conditions]
        values = [*looked_for, *looked_for, *self.values]
        if after is not None:
            places = [self.order, *self.keys]
            comparison = "<" if self.is_descending else ">"
            conditions.append(f"({', '.join(places)}) {comparison} ({', '.join('?' * len(places))})")
            keys = after[1].split(".", len(self.keys) - 1)
            values += [to_microseconds(after[0]), *keys, *[""] * (len(self.keys) - len(keys))]

        direction = "DESC" if self.is_descending else "ASC"
        ordered = ", ".join(f"{each} {direction}" for each in (self.order, *self.keys))
        looks = [_LOOKED_FOR.get(name, f"{name} = ?") for name in self.looked_for]
        is_match = " AND ".join(looks) or "1"
        body = self.body
        if looked_for:
            body = f"CASE WHEN {is_match} THEN {self.body.removesuffix(' AS body')} END"
        columns = ", ".join((self.order, body, is_match, *self.more, *self.keys))
        statement = f"SELECT {columns} FROM {self.table} WHERE {' AND '.join(conditions)} ORDER BY {ordered} LIMIT ?"
        return statement, [*values, limit]


def build_offer_statement(
    queue_keys: Sequence[str], owner: str | None, limit: int, after: tuple[str, str] | None
) -> tuple[str, list[object]]:
    """Return the statement for the first offers with some queue keys (task id, order, body), and its values.

    The offers of each queue key are read in the order of its index, and no further than needed.
    """
    conditions = ["queue_key = ?"]
    common = list[object]()
    if owner is not None:
        conditions.append("owner = ?")
        common.append(owner)
    if after is not None:
        conditions.append("(offer_order, task_id) > (?, ?)")
        common += after
    columns = "task_id, offer_order, body"
    order = "offer_order, task_id"
    one_key = (
        f"SELECT task_id, offer_order, {BODY} FROM offers WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT ?"
    )
    parts = " UNION ALL ".join([f"SELECT * FROM ({one_key})"] * len(queue_keys))
    values = [value for each in queue_keys for value in (each, *common, limit)]
    return f"SELECT {columns} FROM ({parts}) ORDER BY {order} LIMIT ?", [*values, limit]


def build_task_listing(query: TaskQuery) -> SqliteListing:
    """Return the listing of the tasks that match a query."""
    if query.trouble is not None:
        return _build_trouble_listing(query)
    looked_for = query.looked_for
    query = query.indexed

    conditions = ["is_delivery" if query.is_delivery else "NOT is_unlisted"]
    values = list[object]()
    if query.label is not None:
        conditions.append("label = ?")
        values.append(query.label)
    for column, value in (
        ("pause_id", query.pause_id),
        ("parent", query.parent),
        ("owner", query.owner),
        ("handler", query.handler),
        ("status", None if query.is_sorted_by_due_time else query.status),
    ):
        if value is not None:
            # A unary plus keeps SQLite from choosing the index by this column: the first one decides
            # (sqlite.org/optoverview.html).
            prefix = "+" if values else ""
            conditions.append(f"{prefix}{column} = ?")
            values.append(value)
    marks = {"0": query.is_contradictory, _ENDS_BY_ITSELF: query.ends_by_itself}
    conditions += [condition for condition, is_given in marks.items() if is_given]
    for more, given in _limit_times(query):
        conditions += more
        values += given

    if query.label is not None:  # CROSS JOIN: the labels are read first (sqlite.org/optoverview.html)
        table = "labels CROSS JOIN tasks ON tasks.id = task_id"
        return SqliteListing(
            table,
            "task_created_at",
            is_descending=True,
            conditions=conditions,
            values=values,
            keys=("task_id",),
            looked_for=looked_for,
        )
    order = "next_at" if query.is_sorted_by_due_time else "created_at"
    return SqliteListing("tasks", order, not query.is_sorted_by_due_time, conditions, values, looked_for=looked_for)


def _limit_times(query: TaskQuery) -> Iterator[tuple[list[str], list[object]]]:
    """Yield the conditions of what a list by due time has, and their values."""
    if query.due_from is not None:
        yield ["next_at >= ?"], [to_microseconds(query.due_from)]
    if query.due_until is not None:
        yield ["next_at < ?"], [to_microseconds(query.due_until)]
    if query.roughly is not None:
        yield _filter_occurrences(query.roughly)


def _filter_occurrences(query: OccurrenceQuery) -> tuple[list[str], list[object]]:
    """Return the conditions of tasks that may have such an occurrence, and their values."""
    filters = {
        "+handler = ?": query.handler,
        "+category = ?": query.category,
        _LOOKED_FOR["label"]: query.label,
        f"(next_at >= ? OR {_RECURS})": query.since and to_microseconds(query.since),
    }
    given = {condition: value for condition, value in filters.items() if value is not None}
    return [*given], [*given.values()]


def _build_trouble_listing(query: TaskQuery) -> SqliteListing:
    """Return the listing of the tasks that need attention, the latest first."""
    is_open = query.trouble is Trouble.WAITING
    conditions = ["asks" if is_open else "trouble = ?"]
    values: list[object] = [] if is_open else [query.trouble]
    order = "open_since" if is_open else "trouble_since"
    if query.owner is not None:
        conditions.append("+owner = ?")
        values.append(query.owner)
    return SqliteListing(
        "tasks", order, is_descending=True, conditions=conditions, values=values, looked_for=query.looked_for
    )


D = TypeVar("D", bound=Document)
MANY_TIMES = 20
"""How many times `MAX_LOOKED_THROUGH` rows a page looks through here, where what does not match has no body."""


def fetch_page(  # noqa: PLR0917 - a list and the position in it
    database: SqliteDatabase,
    parse: Callable[..., D],
    listing: SqliteListing,
    query: object,
    limit: int,
    page_token: str | None,
    max_bytes: int = MAX_PAGE_BYTES,
) -> Page[D]:
    """Return a page of a list.

    `parse` gets a key, its document and further columns. Page tokens belong to `query`.
    """
    start = read_token(query, page_token) if page_token else None

    def read(after: Row | None, count: int) -> Sequence[Row]:
        position = _to_position(after, listing) if after else start
        return database.read(*listing.to_statement(position, count))

    most_read = MANY_TIMES * matching_rows.MAX_LOOKED_THROUGH if listing.looked_for else None
    found = find_matching_rows(
        read, lambda row: bool(row[2]), _measure, limit=limit, max_bytes=max_bytes, most_read=most_read
    )
    ids = 3 + len(listing.more)
    return found.to_page(
        query,
        lambda row: (row[-1], partial(parse, row[-1], row[1], *row[3:ids])),
        lambda row: _to_position(row, listing),
    )


def _measure(row: Row) -> int:
    """Return the bytes of a row's document, or 0 if it was not read because the row is not in the list."""
    return len(row[1] or b"")


def _to_position(row: Row, listing: SqliteListing) -> tuple[datetime, str]:
    """Return the position of a row in its list: its instant, and its id after those of its parents."""
    return from_microseconds(row[0]), ".".join(row[-len(listing.keys) :])


_FEW = (CountedAs.SKIPPED, CountedAs.CALL)
_NUMBERS = ", ".join(
    [
        "sum(is_late)",
        "max(is_at_least)",
        "sum(occurrences)",
        *(f"sum(occurrences) FILTER (WHERE counted_as = '{each}')" for each in _FEW),
    ]
)
"""The numbers of a part of the time: what started late, all, and what was no run of its own."""
_OMITTED = ", ".join(f"'$.{name}'" for name in OMITTED_FIELDS)
_SUMMARY = f"CAST(CASE WHEN json_valid(body) THEN json_remove(body, {_OMITTED}) ELSE body END AS BLOB)"
"""A record without its result and steps. A damaged one is left as it is."""


class SqliteSearch(ListingSearch[SqliteListing]):
    """A `SearchStore` in the database of a `SqliteStore`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    @override
    def _list_tasks(self, query: TaskQuery) -> SqliteListing:
        return build_task_listing(query)

    @override
    def _list_finished(self, query: ExecutionQuery, *, is_failure: bool) -> SqliteListing:
        return _select_finished(query, is_failure=is_failure)

    @override
    def _list_open(self, query: ExecutionQuery, status: ExecutionStatus) -> SqliteListing:
        return _select_open(query, status)

    @override
    def _fetch(self, kind: type[D], listing: SqliteListing, query: object, limit: int, token: str | None) -> Page[D]:
        return fetch_page(self._database, kind.from_stored_json, listing, query, limit, token)

    @override
    def _fetch_executions(self, task_id: str, query: object, limit: int, token: str | None) -> Page[Execution]:
        listing = SqliteListing(
            "executions",
            "scheduled_for",
            is_descending=True,
            conditions=("task_id = ?",),
            values=(task_id,),
        )
        return self._fetch(Execution, listing, query, limit, token)

    def get_name_match(self) -> NameMatch:
        """Return that an index has the names of all tasks."""
        return NameMatch.FRAGMENTS

    def list_named(
        self, query: TaskQuery, words: Sequence[str], *, limit: int, page_token: str | None = None
    ) -> Page[Task]:
        """Return a page of the tasks of a list whose names have these words.

        The newest are found by reading an index that has all names, and no task that does not match. That takes as
        long as the index is: 40 ms for 100,000 tasks, and nothing more at each write.
        """
        listing = build_task_listing(query)
        if listing.table == "tasks" and listing.order == "created_at" and not query.is_delivery:
            listing = replace(listing, table="tasks INDEXED BY tasks_by_names")
        conditions = [*listing.conditions, *["instr(tasks.names, ?)"] * len(words)]
        listing = replace(listing, conditions=conditions, values=[*listing.values, *map(_encodable, words)])
        return self._fetch(Task, listing, ("named", query, tuple(words)), limit, page_token)

    def list_acted_on(
        self, owner: str | None, since: datetime | None, *, limit: int, page_token: str | None = None
    ) -> Page[Task]:
        """Return a page of the tasks with an action in their history, the one with the latest action first."""
        conditions = ["NOT is_unlisted"]
        values: list[object] = []
        if owner is not None:
            conditions.append("+owner = ?")
            values.append(owner)
        if since is not None:
            conditions.append("acted_at >= ?")
            values.append(to_microseconds(since))
        listing = SqliteListing("tasks", "acted_at", is_descending=True, conditions=conditions, values=values)
        return self._fetch(Task, listing, ("acted on", owner, since), limit, page_token)

    def list_owners(self, fragment: str, *, limit: int) -> Sequence[str]:
        """Return the first owners with this fragment: there is a row for each."""
        rows = self._database.read("SELECT owner FROM changes WHERE number > 0 AND owner > '' ORDER BY owner")
        wanted = fragment.casefold()
        return [owner for (owner,) in rows if wanted in owner.casefold()][:limit]

    def count_unfinished(self, owner: str, up_to: int) -> int:
        """Return how many of the owner's tasks have not ended, at most `up_to`."""
        return min(
            up_to,
            sum(self.count_tasks(TaskQuery(owner, each), up_to).value for each in UNFINISHED_STATUSES),
        )

    def count_created_since(self, owner: str, since: datetime, up_to: int) -> int:
        """Return how many of the owner's tasks were created after an instant, at most `up_to`."""
        listing = build_task_listing(TaskQuery(owner))
        conditions = [*listing.conditions, "created_at > ?"]
        values = [*listing.values, to_microseconds(since)]
        return self._count(replace(listing, conditions=conditions, values=values), up_to)

    @override
    def _count(self, listing: SqliteListing, up_to: int) -> int:
        where = " AND ".join([f"{listing.order} IS NOT NULL", *listing.conditions])
        statement = f"SELECT count(*) FROM (SELECT 1 FROM {listing.table} WHERE {where} LIMIT ?)"
        return int(self._database.read(statement, [*listing.values, up_to])[0][0])

    def count_runs(self, owner: str | None, edges: Sequence[datetime]) -> Sequence[RunCounts]:
        """Return the numbers of the ended runs between each two edges, from the index alone."""
        parts = [tuple(map(to_microseconds, pair)) for pair in itertools.pairwise(edges)]
        bins = ", ".join("(?, ?)" for _ in parts)
        counts = [RunCounts()] * len(parts)
        for is_failure in (True, False):
            listing = _select_finished(ExecutionQuery(owner), is_failure=is_failure)
            where = " AND ".join([f"{listing.order} >= begins", f"{listing.order} < ends", *listing.conditions])
            # A subquery for each part needs no sorter, which GROUP BY does. An array is its one value.
            statement = f"""WITH bins (begins, ends) AS (VALUES {bins})
                SELECT (SELECT json_array({_NUMBERS}) FROM {listing.table} WHERE {where}) FROM bins"""
            values = [*itertools.chain.from_iterable(parts), *listing.values]
            for number, (found,) in enumerate(self._database.read(statement, values)):
                late, is_at_least, total, skipped, calls = (value or 0 for value in json.loads(found))
                own = {"failed" if is_failure else "ran": total - skipped - calls}
                several = Count(value=skipped, at_least=bool(is_at_least))
                counts[number] += RunCounts(**own, skipped=several, calls=calls, late=late)
        return counts

    def group_tasks(self, query: TaskQuery) -> Sequence[GroupCount]:
        """Return the numbers of tasks with a trouble by handler, from the index alone."""
        listing = _build_trouble_listing(query)
        where = " AND ".join(listing.conditions)
        # Beside min(), a column without a function is of the row that has the minimum (sqlite.org/lang_select.html).
        statement = f"""SELECT handler, count(*), min(trouble_since), id FROM tasks
            WHERE {where} GROUP BY handler ORDER BY count(*), handler LIMIT ?"""
        rows = self._database.read(statement, [*listing.values, MAX_GROUPED])
        return [GroupCount(name, count, from_microseconds(first), key) for name, count, first, key in rows]

    def find_last_change(self, owner: str | None) -> str:
        """Return how often tasks were stored or deleted, as text."""
        rows = self._database.read("SELECT number FROM changes WHERE owner = ?", (owner or "",))
        return str(next((row[0] for row in rows), 0))

    def list_changed(
        self,
        owner: str | None,
        since: str,
        *,
        limit: int,
        page_token: str | None = None,
    ) -> Page[Task]:
        """Return a page of the tasks whose usage has changed since a mark, the first ones first."""
        conditions = ["used_at >= ?"]
        values: list[object] = [int(since or 0)]
        if owner is not None:
            conditions.append("+owner = ?")
            values.append(owner)
        listing = SqliteListing("tasks", "used_at", is_descending=False, conditions=conditions, values=values)
        return self._fetch(Task, listing, ("changed", owner, since), limit, page_token)

    def list_handlers(self, *, limit: int) -> list[str]:
        """Return the first names of handlers that tasks have, each found by one look into the index."""
        statement = "SELECT handler FROM tasks WHERE NOT is_unlisted AND handler > ? ORDER BY handler LIMIT 1"

        def find_next(last: str) -> str | None:
            return next((row[0] for row in self._database.read(statement, (last,))), None)

        return list_keys(find_next, limit=limit, prefix="", after="")

    def list_queue_keys(
        self,
        owner: str | None,
        *,
        limit: int,
        prefix: str = "",
        after: str = "",
    ) -> list[str]:
        """Return the first queue keys that have offers, each found by one look into the index."""
        mine, values = _of_owner(owner)
        statement = f"SELECT queue_key FROM offers WHERE queue_key > ?{mine} ORDER BY queue_key LIMIT 1"

        def find_next(last: str) -> str | None:
            rows = self._database.read(statement, (last, *values))
            return next((row[0] for row in rows), None)

        return list_keys(find_next, limit=limit, prefix=prefix, after=after)

    def count_offers(self, queue_key: str, owner: str | None, up_to: int) -> Count:
        """Return how many offers there are under a queue key, counted up to `up_to`."""
        mine, values = _of_owner(owner)
        offers = f"SELECT 1 FROM offers WHERE queue_key = ?{mine} LIMIT ?"
        rows = self._database.read(f"SELECT count(*) FROM ({offers})", (queue_key, *values, up_to))
        return Count.up_to(rows[0][0], up_to)


def _of_owner(owner: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the condition for rows of an owner, and its value, or nothing for those of all."""
    if owner is None:
        return "", ()
    return " AND owner = ?", (owner,)


def _select_finished(query: ExecutionQuery, *, is_failure: bool) -> SqliteListing:
    table = "executions"
    conditions = ["is_failure = ?"]
    values = list[object]([is_failure])
    texts = [*_list_error_texts(query)]
    if texts:  # only the errors are read, and of the executions only those that match
        table = "executions INDEXED BY executions_with_error"
        conditions.append("error IS NOT NULL")
    for condition, text in texts:
        conditions.append(condition)
        values.append(text)
    if query.is_late:
        conditions.append("is_late")
    if query.statuses is not None:
        conditions.append(f"status IN ({', '.join('?' * len(query.statuses))})")
        values += query.statuses
    # A unary plus keeps SQLite from choosing another index (sqlite.org/optoverview.html).
    owner = "+owner = ?" if texts else "owner = ?"
    limits = {owner: query.owner, "scheduled_for >= ?": query.since, "scheduled_for < ?": query.until}
    for condition, value in limits.items():
        if value is not None:
            conditions.append(condition)
            values.append(value if isinstance(value, str) else to_microseconds(value))
    return SqliteListing(
        table,
        "scheduled_for",
        is_descending=True,
        conditions=conditions,
        values=values,
        keys=("task_id", "id"),
        body=_SUMMARY,
        looked_for=query.looked_for,
    )


def _list_error_texts(query: ExecutionQuery) -> Iterator[tuple[str, str]]:
    """Yield the conditions of an error's text, with their values."""
    if query.error is not None:
        yield "instr(error, ?)", _encodable(query.error.casefold())
    if query.error_type is not None:
        yield "instr(error, ?) = 1", _encodable(f"{query.error_type}: ".casefold())


def _encodable(text: str) -> str:
    """Return a text that SQLite takes: no document has half of a surrogate pair."""
    return text.encode(errors="replace").decode()


def _select_open(query: ExecutionQuery, status: ExecutionStatus) -> SqliteListing:
    owner = {"+owner = ?": query.owner} if query.owner else {}
    return SqliteListing(
        "tasks",
        "open_since",
        is_descending=True,
        conditions=("open_status = ?", *owner),
        values=(status, *owner.values()),
        looked_for=query.looked_for,
    )
