"""Give every task and every offer its shard, in a walk over both, while everything else goes on.

Documents that are written meanwhile have a shard already: every writer of this version stores one, or leaves
the one that it read, and conflicts if a walk has changed that since. A walk only sets the field that says the
shard, in documents that exist, to what any writer would store. So it may meet any other writer, or another
walk. It notes how far it has come, and a later one continues there. Only when it has seen everything, and
Firestore serves the queries with shards, does it say that lists may rely on them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cloudsched.adapters.firestore import protos as messages
from cloudsched.adapters.firestore.list_fields import OFFER_SHARD, OPEN, TASK_SHARD, TROUBLE
from cloudsched.adapters.firestore.queries import (
    NAME,
    build_arrival_listing,
    build_due_listing,
    build_offer_listing,
    build_query,
    build_task_listing,
)
from cloudsched.adapters.firestore.shards import Placement, Shards, query_in_order
from cloudsched.adapters.firestore.values import Value, encode, find_value
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.ports.sweep import choose_shard
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.adapters.firestore.rpc import FirestoreRpc
    from cloudsched.adapters.google.channel import Message

_Write: Message = messages.Write
BATCH_SIZE = 300
"""The number of documents that are read, and at most written, at a time."""
_OPEN_SHARD = f"{OPEN}.shard"
_TROUBLE_SHARD = f"{TROUBLE}.shard"
_FIELDS = {"tasks": (TASK_SHARD, _OPEN_SHARD, _TROUBLE_SHARD), "offers": (OFFER_SHARD,)}
"""The fields with the shard. The first one is to be in every document, another one only where it is."""


@dataclass(slots=True)
class Walk:
    """The progress of a walk."""

    seen: int = 0
    moved: int = 0
    """Documents that had no shard, or another one."""


def place_all(
    rpc: FirestoreRpc,
    documents: str,
    shards: Shards,
    count: int,
    report: Callable[[Walk], object] = lambda _: None,
) -> Walk:
    """Write the shard of every task and offer, of `count` shards, then have lists rely on it.

    Another walk continues where one that failed has stopped. Nothing relies on shards while an index is
    missing.
    """
    placement = shards.load_placement()
    if count < max(1, placement.count):
        hint = f"Give {placement.count} or more: the number of shards cannot be lowered."
        raise InvalidInput("shards", f"is {count}, but there are {placement.count}", hint)
    require_indexes(rpc, documents, count)
    if placement.growing_to != count:
        placement = replace(placement, growing_to=count, after="")
        shards.store_placement(placement)
    walk = Walk()
    for collection in ("tasks", "offers"):
        if placement.after.startswith(f"{documents}/offers/") and collection == "tasks":
            continue
        prefix = f"{documents}/{collection}/"
        after = None
        if placement.after.startswith(prefix):
            after = placement.after
        while found := rpc.query(documents, _build_query(collection, after)):
            moves = [write for each in found if (write := _build_move(collection, each, count)) is not None]
            _commit(rpc, moves)
            walk.seen += len(found)
            walk.moved += len(moves)
            after = found[-1].name
            placement = replace(placement, after=after)
            shards.store_placement(placement)
            report(walk)
    shards.store_placement(Placement(count))
    return walk


def require_indexes(rpc: FirestoreRpc, documents: str, count: int) -> None:
    """Ask a query of each kind that begins with the shard."""
    now = datetime.now(UTC)
    ranges = tuple(range(count))
    queries = [
        TaskQuery(owner=None, status=status, handler=handler, label=label, due_from=due)
        for status in (None, TaskStatus.ACTIVE)
        for handler, label in ((None, None), ("x", None), (None, "x=x"))
        for due in (None, now)
        if label is None or due is None
    ]
    listings = [
        *(build_task_listing(query, ranges) for query in queries),
        build_due_listing(now, None, ranges),
        build_offer_listing(("x",), None, ranges),
        build_arrival_listing(("x",), None, ranges),
    ]
    for listing in listings:
        if not listing.is_empty:
            query_in_order(rpc, documents, replace(listing, fields=("owner",)), 1)


def _build_query(collection: str, after: str | None) -> Message:
    if after is None:
        start = None
    else:
        start = Value(reference_value=after)
    return build_query(collection, BATCH_SIZE, fields=(NAME, *_FIELDS[collection]), after=start)


def _build_move(collection: str, document: Message, count: int) -> Message | None:
    """Return the write of a document's shard, or None if it has the right one."""
    shard = choose_shard(document.name.rpartition("/")[2], count)
    first, *others = _FIELDS[collection]
    present = [field for field in others if _find(document, field) is not None]
    wrong = [field for field in (first, *present) if _find(document, field) != shard]
    if not wrong:
        return None
    write = _Write()
    write.update.name = document.name
    for field in wrong:
        *path, last = field.split(".")
        fields = write.update.fields
        for name in path:
            fields = fields[name].map_value.fields
        fields[last].CopyFrom(encode(shard))
        write.update_mask.field_paths.append(field)
    write.current_document.exists = True
    return write


def _find(document: Message, field: str) -> int | None:
    value = find_value(document.fields, field.split("."))
    if not value.HasField("integer_value"):
        return None
    return int(value.integer_value)


def _commit(rpc: FirestoreRpc, writes: list[Message]) -> None:
    """Commit writes together, or each alone if one of the documents is gone by now."""
    if writes and rpc.commit(writes) is None and len(writes) > 1:
        for write in writes:
            rpc.commit([write])
