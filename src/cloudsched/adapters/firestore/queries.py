"""The store's lists as Firestore's structured queries.

A list filters by equality of fields and has one order. Firestore's documented rules decide which index serves
it (firebase.google.com/docs/firestore/query-data/index-overview): a list with several equal fields merges
indexes of one equal field and the order each. A list that is also bounded in its order, or allows several
values of a field, takes an index of all its fields. ``tests/adapters/firestore/test_indexes.py`` holds every
query against ``infra/firestore.indexes.json``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from cloudsched.adapters.firestore import protos as messages
from cloudsched.adapters.firestore.list_fields import (
    ASKS,
    OFFER_SHARD,
    OFFER_WRITTEN_AT,
    OPEN,
    REMOVE_AT,
    TASK_SHARD,
    TROUBLE,
    UNLISTED,
)
from cloudsched.adapters.firestore.values import Value, encode
from cloudsched.domain.documents.execution import OPEN_STATUSES
from cloudsched.domain.documents.task import TaskStatus, Trouble

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from cloudsched.adapters.google.channel import Message
    from cloudsched.engine.ports.search import TaskQuery

_Query: Message = messages.StructuredQuery
_Operator = messages.StructuredQuery.FieldFilter.Operator
_Direction = messages.StructuredQuery.Direction
NAME = "__name__"
"""The name that a query has for the full name of a document."""
EQUAL = _Operator.EQUAL
Filter: TypeAlias = tuple[str, int, object]
"""A field, an operator and a value."""
MAX_DISJUNCTIONS = 30
"""The most values of an ``IN`` filter (firebase.google.com/docs/firestore/query-data/queries)."""


@dataclass(frozen=True, slots=True)
class FirestoreListing:
    """Documents of a collection, in the order of one field, then of their id."""

    collection: str
    order: str
    is_descending: bool = False
    equals: Mapping[str, str | int | Sequence[str] | Sequence[int]] | None = None
    """The values of fields. If there are several values, any one matches."""
    shard_field: str = ""
    """The field of the shard, if `shards` are given."""
    shards: Sequence[int] | None = None
    """The shards of the documents, None if the list's index has no shards."""
    contains: tuple[str, str] | None = None
    """An array, and a text that is one of its elements."""
    start: datetime | None = None
    """The order's instant is not before this."""
    end: datetime | None = None
    """The order's instant is before this."""
    last: datetime | None = None
    """The order's instant is not after this."""
    excluded_field: str | None = None
    """Documents with this field are dropped after reading: Firestore cannot query for a missing field."""
    looked_for: Mapping[str, str] | None = None
    """Fields, and the texts that they or one of their elements must have: what the documents are filtered by
    after reading, because no index has them."""
    is_empty: bool = False
    """True if nothing can match, so that nothing is read."""
    parents: str | None = None
    """The collection of the documents that the listed ones belong to, if those of all of them are listed."""
    fields: Sequence[str] | None = None
    """The only fields to read, all if None."""

    def to_query(self, limit: int, parent: str, after: tuple[object, str] | None = None) -> Message:
        """Return the query for a part of the list. `after` has the value of the order's field, and the id."""
        filters: list[Filter] = [
            (field, EQUAL if isinstance(value, str | int) else _Operator.IN, value)
            for field, value in (self.equals or {}).items()
        ]
        if self.contains is not None:
            field, text = self.contains
            filters.append((field, _Operator.ARRAY_CONTAINS, text))
        bounds = (
            (_Operator.GREATER_THAN_OR_EQUAL, self.start),
            (_Operator.LESS_THAN, self.end),
            (_Operator.LESS_THAN_OR_EQUAL, self.last),
        )
        filters += [(self.order, operator, instant) for operator, instant in bounds if instant is not None]
        if self.is_descending:
            direction = _Direction.DESCENDING
        else:
            direction = _Direction.ASCENDING

        order = (self.order, NAME)
        fields = self.fields or ()
        query = build_query(self.collection, limit, *filters, order=order, direction=direction, fields=fields)
        query.from_[0].all_descendants = self.parents is not None
        if after is not None:
            position, key = after
            name = self._to_name(parent, key)
            if isinstance(position, Value):
                start = position
            else:
                start = encode(position)
            query.start_at.values.extend((start, Value(reference_value=name)))

        return query

    def split(self) -> list[FirestoreListing]:
        """Return the lists that together have its documents, each with as many values as one query may have."""
        if self.shards is None:
            return [self]
        values = [value for value in (self.equals or {}).values() if not isinstance(value, str | int)]
        size = max(1, MAX_DISJUNCTIONS // math.prod(len(each) for each in values))
        return [
            replace(
                self,
                shards=None,
                equals={self.shard_field: part[0] if len(part) == 1 else part, **(self.equals or {})},
            )
            for part in (self.shards[begin : begin + size] for begin in range(0, len(self.shards), size))
        ]

    def to_key(self, name: str) -> str:
        """Return what tells a document of the list from others, from its full name."""
        *_, parent, _, document = name.split("/")
        if self.parents is None:
            return document
        return f"{parent}.{document}"

    def _to_name(self, parent: str, key: str) -> str:
        if self.parents is None:
            return f"{parent}/{self.collection}/{key}"
        owner, _, document = key.partition(".")
        return f"{parent}/{self.parents}/{owner}/{self.collection}/{document}"


_FIELDS_OF_FILTERS = {
    "channel": "delivery.channel",
    "label": "labels",
    "parent": "parent.taskId",
    "pause_id": "pauseId",
}
"""The fields that have other names than the filters."""


def name_fields(looked_for: Mapping[str, str]) -> Mapping[str, str]:
    """Return filters by the fields that have their values."""
    return {_FIELDS_OF_FILTERS.get(name, name): value for name, value in looked_for.items()}


BY_WAKE_TIME = FirestoreListing("tasks", "wakeAt", shard_field=TASK_SHARD)
_BY_SHARD = replace(BY_WAKE_TIME, order="")


def build_query(
    collection: str,
    limit: int,
    *filters: Filter,
    order: Sequence[str] = (NAME,),
    direction: int = _Direction.ASCENDING,
    fields: Sequence[str] = (),
    after: Message | None = None,
) -> Message:
    """Return the query for the documents of a collection."""
    query = _Query(from_=[{"collection_id": collection}], limit={"value": limit})
    for field in fields:
        query.select.fields.add(field_path=field)

    for field, operator, value in filters:
        query.where.composite_filter.op = 1  # AND
        condition = query.where.composite_filter.filters.add().field_filter
        condition.field.field_path = field
        condition.op = operator
        condition.value.CopyFrom(encode(value))

    for field in order:
        query.order_by.add(field={"field_path": field}, direction=direction)
    if after is not None:
        query.start_at.values.append(after)
    return query


def build_handler_query(after: str, shards: Sequence[int] | None = None) -> Message:
    """Return the query for the newest task of the handler that comes next after one, in at most 30 shards."""
    filters: list[Filter] = [] if shards is None else [(TASK_SHARD, _Operator.IN, list(shards))]
    query = build_query(
        "tasks", 1, *filters, order=("handler",), fields=("handler",), after=encode(after) if after else None
    )
    query.order_by.add(field={"field_path": "createdAt"}, direction=_Direction.DESCENDING)
    return query


def build_owner_query(after: str) -> Message:
    """Return the query for a task of the owner that comes next after one, in whatever shard."""
    query = build_query("tasks", 1, order=("owner", TASK_SHARD, "status"), fields=("owner",), after=encode(after))
    query.order_by.add(field={"field_path": "createdAt"}, direction=_Direction.DESCENDING)
    return query


def build_queue_key_query(owner: str | None, after: str, shards: Sequence[int] | None = None) -> Message:
    """Return the query for the offer with the next queue key, of one owner, in at most 30 shards."""
    filters: list[Filter] = [] if owner is None else [("owner", EQUAL, owner)]
    if shards is not None:
        filters.append((OFFER_SHARD, _Operator.IN, list(shards)))
    start = encode(after) if after else None
    order = ("queueKey", "order", NAME)
    return build_query("offers", 1, *filters, order=order, fields=("queueKey",), after=start)


def build_task_listing(query: TaskQuery, shards: Sequence[int] | None = None) -> FirestoreListing:
    """Return the listing of the tasks that match a query.

    The indexes of a parent's tasks, and of a pause's, have no shards. Those of an owner and of a label have the status:
    without that filter, tasks of any status are asked for.
    """
    looked_for = name_fields(query.looked_for)
    query = query.indexed
    filters = {
        "pauseId": query.pause_id,
        "owner": query.owner,
        "handler": query.handler,
        "parent.taskId": query.parent,
    }
    equals: dict[str, str | Sequence[str]] = {field: value for field, value in filters.items() if value is not None}
    listing = replace(
        _BY_SHARD,
        shards=shards if query.parent is None and query.pause_id is None else None,
        equals=equals,
        excluded_field="deletedAt",
        looked_for=looked_for,
    )
    if query.is_delivery:
        return replace(listing, order=f"{UNLISTED}.createdAt", is_descending=True)
    if query.trouble is not None:
        asks = [f"{each}{ASKS}" for each in OPEN_STATUSES]
        is_open = query.trouble is Trouble.WAITING
        place, equal = (OPEN, {f"{OPEN}.status": asks}) if is_open else (TROUBLE, {f"{TROUBLE}.kind": query.trouble})
        return replace(
            listing,
            order=f"{place}.since",
            is_descending=True,
            shard_field=f"{place}.shard",
            equals={**equals, **equal},
        )
    if query.is_sorted_by_due_time:
        return replace(
            listing,
            order="nextExecutionTime",
            start=query.due_from,
            end=query.due_until,
            is_empty=query.is_contradictory,
        )
    if query.status is not None:
        equals["status"] = str(query.status)
    elif query.label is not None or query.owner is not None:
        equals["status"] = [str(status) for status in TaskStatus]
    if query.label is None:
        contains = None
    else:
        contains = ("labels", query.label)
    return replace(listing, order="createdAt", is_descending=True, contains=contains)


def build_due_listing(
    before: datetime,
    since: datetime | None = None,
    shards: Sequence[int] | None = None,
    *,
    is_removal: bool = False,
) -> FirestoreListing:
    """Return the listing of the tasks that wait for the sweep, including those being deleted, or only for removal."""
    if is_removal:
        listing = replace(BY_WAKE_TIME, order=REMOVE_AT)
    else:
        listing = BY_WAKE_TIME
    return replace(listing, start=since, last=before, shards=shards)


def build_offer_listing(
    queue_keys: Sequence[str],
    owner: str | None,
    shards: Sequence[int] | None = None,
) -> FirestoreListing:
    """Return the listing of the offers in some queues (of an owner), in their order."""
    equals: dict[str, str | Sequence[str]] = {} if owner is None else {"owner": owner}
    equals["queueKey"] = tuple(queue_keys)
    return FirestoreListing("offers", "order", equals=equals, shard_field=OFFER_SHARD, shards=shards)


def build_arrival_listing(
    queue_keys: Sequence[str],
    owner: str | None,
    shards: Sequence[int] | None = None,
) -> FirestoreListing:
    """Return the listing of the offers in some queues, the last written first."""
    return replace(build_offer_listing(queue_keys, owner, shards), order=OFFER_WRITTEN_AT, is_descending=True)


STEPS = FirestoreListing("steps", "number")
EXECUTIONS = FirestoreListing("executions", "scheduledFor", is_descending=True)
MESSAGES = FirestoreListing("messages", "createdAt", is_descending=True)
