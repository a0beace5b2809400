"""The lists that are asked of SQLite, as its statements: each walks an index in the order of the list.

Given several of parent, owner, handler and status, a list of tasks walks the index of the first one and leaves out
what does not fit the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.engine.ports.store import TaskQuery

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(instant: datetime) -> int:
    """Return an instant as SQLite keeps it: whole microseconds since 1970."""
    return (instant - _EPOCH) // _MICROSECOND


def from_microseconds(ticks: int) -> datetime:
    """Return an instant that SQLite kept."""
    return _EPOCH + ticks * _MICROSECOND


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows in the order of one instant, then of their id."""

    table: str
    order: str
    is_descending: bool = False
    conditions: Sequence[str] = ()
    values: Sequence[object] = ()
    skips_unreadable: bool = False
    """Whether a document that cannot be read is left out, and not an error."""

    def to_statement(self, after: tuple[datetime, str] | None, limit: int) -> tuple[str, list[object]]:
        """Return the statement for one part of the list (id, instant, body), and its values."""
        conditions, values = [f"{self.order} IS NOT NULL", *self.conditions], list(self.values)
        if after is not None:
            conditions.append(f"({self.order}, id) {'<' if self.is_descending else '>'} (?, ?)")
            values += [to_microseconds(after[0]), after[1]]
        direction = "DESC" if self.is_descending else "ASC"
        statement = (
            f"SELECT id, {self.order}, body FROM {self.table} WHERE {' AND '.join(conditions)} "  # noqa: S608 - no input
            f"ORDER BY {self.order} {direction}, id {direction} LIMIT ?"
        )
        return statement, [*values, limit]


def build_offer_statement(
    queue_keys: Sequence[str], owner: str | None, limit: int, after: tuple[str, str] | None
) -> tuple[str, list[object]]:
    """Return the statement for the first offers of some lanes (id, version, body), and its values.

    Each lane is read in the order of its index, and no further than needed.
    """
    conditions, common = ["lane = ?"], list[object]()
    if owner is not None:
        conditions.append("owner = ?")
        common.append(owner)
    if after is not None:
        conditions.append("(place, id) > (?, ?)")
        common += after
    lane = f"SELECT id, version, body, place FROM tasks WHERE {' AND '.join(conditions)} ORDER BY place, id LIMIT ?"  # noqa: S608 - no input
    parts = " UNION ALL ".join([f"SELECT * FROM ({lane})"] * len(queue_keys))  # noqa: S608 - the same
    values = [value for each in queue_keys for value in (each, *common, limit)]
    return f"SELECT id, version, body, place FROM ({parts}) ORDER BY place, id LIMIT ?", [*values, limit]  # noqa: S608 - the same


def build_task_listing(query: TaskQuery) -> Listing:
    """Return how to list the tasks that fit a query."""
    conditions, values = ["NOT is_deleted"], list[object]()
    for column, value in (
        ("parent", query.parent),
        ("owner", query.owner),
        ("handler", query.handler),
        ("status", query.status),
    ):
        if value is not None:
            # A plus keeps a column from choosing the index (sqlite.org/optoverview.html): the first one chooses.
            conditions.append(f"{'+' if values else ''}{column} = ?")
            values.append(value)
    if query.due_from is not None:
        conditions.append("next_at >= ?")
        values.append(to_microseconds(query.due_from))
    if query.due_until is not None:
        conditions.append("next_at < ?")
        values.append(to_microseconds(query.due_until))
    order = "next_at" if query.is_sorted_by_due_time else "created_at"
    return Listing("tasks", order, not query.is_sorted_by_due_time, conditions, values)
