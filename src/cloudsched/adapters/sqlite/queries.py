"""The SQL of the store's lists: each query reads an index in the order of its list.

A list of tasks that filters by several of label, parent, owner, handler and status uses the index of the first of them,
and filters its rows by the others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.task import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cloudsched.engine.ports.search import TaskQuery

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

BODY = "CAST(body AS BLOB) AS body"
"""A document as bytes. As text, one row that is not UTF-8 would fail the whole query instead of being skipped."""


def to_microseconds(instant: datetime) -> int:
    """Convert an instant to the stored form: whole microseconds since 1970."""
    return (instant - _EPOCH) // _MICROSECOND


def from_microseconds(ticks: int) -> datetime:
    """Convert stored microseconds to an instant."""
    return _EPOCH + ticks * _MICROSECOND


_LOOKED_FOR = {
    "handler": "{0}.handler = ?",
    "parent": "{0}.parent = ?",
    "category": "{0}.category = ?",
    "label": "? IN (SELECT value FROM json_each({0}.labels))",
}
"""How a row of a table is compared with a filter that no index has."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A query whose rows are ordered by one instant, then by id."""

    table: str
    order: str
    is_descending: bool = False
    conditions: Sequence[str] = ()
    values: Sequence[object] = ()
    keys: Sequence[str] = ("id",)
    """The columns of the id, as the index of the order has them: those of what it belongs to, then its own."""
    body: str = BODY
    looked_for: Mapping[str, str] = field(default_factory=dict)
    """Filters by which the rows are told from each other after reading, because no index has them."""

    def to_statement(self, after: tuple[datetime, str] | None, limit: int) -> tuple[str, list[object]]:
        """Return the statement for one page (instant, body, whether it matches, ids), and its values.

        A row that does not match has no body: to leave out a part of one that nobody sees takes long.
        """
        looked_for = tuple(self.looked_for.values())
        conditions, values = [f"{self.order} IS NOT NULL", *self.conditions], [*looked_for, *looked_for, *self.values]
        if after is not None:
            places = [self.order, *self.keys]
            comparison = "<" if self.is_descending else ">"
            conditions.append(f"({', '.join(places)}) {comparison} ({', '.join('?' * len(places))})")
            keys = after[1].split(".", len(self.keys) - 1)
            values += [to_microseconds(after[0]), *keys, *[""] * (len(self.keys) - len(keys))]
        direction = "DESC" if self.is_descending else "ASC"
        ordered = ", ".join(f"{each} {direction}" for each in (self.order, *self.keys))
        documents = self.table.rpartition(" JOIN ")[2].partition(" ")[0]
        is_match = " AND ".join(_LOOKED_FOR[name].format(documents) for name in self.looked_for) or "1"
        body = f"CASE WHEN {is_match} THEN {self.body.removesuffix(' AS body')} END" if looked_for else self.body
        statement = (
            f"SELECT {self.order}, {body}, {is_match}, {', '.join(self.keys)} FROM {self.table} "  # noqa: S608 - no input
            f"WHERE {' AND '.join(conditions)} ORDER BY {ordered} LIMIT ?"
        )
        return statement, [*values, limit]


def build_offer_statement(
    queue_keys: Sequence[str], owner: str | None, limit: int, after: tuple[str, str] | None
) -> tuple[str, list[object]]:
    """Return the statement for the first offers with some queue keys (task id, order, body), and its values.

    The offers of each queue key are read in the order of its index, and no further than needed.
    """
    conditions, common = ["queue_key = ?"], list[object]()
    if owner is not None:
        conditions.append("owner = ?")
        common.append(owner)
    if after is not None:
        conditions.append("(offer_order, task_id) > (?, ?)")
        common += after
    columns, order = "task_id, offer_order, body", "offer_order, task_id"
    one_key = (
        f"SELECT task_id, offer_order, {BODY} FROM offers WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT ?"  # noqa: S608 - no input
    )
    parts = " UNION ALL ".join([f"SELECT * FROM ({one_key})"] * len(queue_keys))  # noqa: S608 - the same
    values = [value for each in queue_keys for value in (each, *common, limit)]
    return f"SELECT {columns} FROM ({parts}) ORDER BY {order} LIMIT ?", [*values, limit]  # noqa: S608 - the same


def build_waiter_statement(
    key: str, limit: int, after: str, task_ids: Sequence[str] | None, worker_group: str | None
) -> tuple[str, list[object]]:
    """Return the statement for the waiters of a lock after an id (id, body), in their order, and its values."""
    conditions, values = ["lock_key = ?", "id > ?"], list[object]([key, after])
    if task_ids is not None:
        conditions.append("task_id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(list(task_ids)))
    if worker_group is not None:
        conditions.append("worker_group = ?")
        values.append(worker_group)
    statement = f"SELECT id, {BODY} FROM waiters WHERE {' AND '.join(conditions)} ORDER BY id LIMIT ?"  # noqa: S608 - no input
    return statement, [*values, limit]


def build_task_listing(query: TaskQuery) -> Listing:
    """Return the listing of the tasks that match a query.

    Only an ACTIVE task has a next occurrence, so no index is needed for a status and a time together.
    """
    looked_for, query = query.looked_for, query.indexed
    conditions, values = ["is_delivery" if query.is_delivery else "NOT is_unlisted"], list[object]()
    if query.label is not None:
        conditions.append("label = ?")
        values.append(query.label)
    for column, value in (
        ("parent", query.parent),
        ("owner", query.owner),
        ("handler", query.handler),
        ("status", None if query.is_sorted_by_due_time else query.status),
    ):
        if value is not None:
            # A unary plus keeps SQLite from choosing the index by this column: the first one decides
            # (sqlite.org/optoverview.html).
            conditions.append(f"{'+' if values else ''}{column} = ?")
            values.append(value)
    if query.is_sorted_by_due_time and query.status not in {None, TaskStatus.ACTIVE}:
        conditions.append("0")
    if query.due_from is not None:
        conditions.append("next_at >= ?")
        values.append(to_microseconds(query.due_from))
    if query.due_until is not None:
        conditions.append("next_at < ?")
        values.append(to_microseconds(query.due_until))
    if query.label is not None:  # CROSS JOIN: the labels are read first (sqlite.org/optoverview.html)
        table = "labels CROSS JOIN tasks ON tasks.id = task_id"
        return Listing(
            table, "task_created_at", is_descending=True, conditions=conditions, values=values, keys=("task_id",)
        )
    if query.trouble is not None:
        conditions = ["+owner = ?", "trouble = ?"] if query.owner is not None else ["trouble = ?"]
        values = [*([] if query.owner is None else [query.owner]), query.trouble]
        if query.trouble_until is not None:
            conditions.append("trouble_since < ?")
            values.append(to_microseconds(query.trouble_until))
        return Listing("tasks", "trouble_since", is_descending=True, conditions=conditions, values=values)
    order = "next_at" if query.is_sorted_by_due_time else "created_at"
    return Listing("tasks", order, not query.is_sorted_by_due_time, conditions, values, looked_for=looked_for)
