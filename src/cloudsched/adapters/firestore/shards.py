"""Shards: each index of rising values is split into ranges, also that of one owner, and lists merge them.

Firestore takes some 500 writes a second into one range of an index. So every task has a shard, a hash of its
id modulo the number of shards (``private.changed.shard``, in its offer ``shard``, in the lists of runs beside
their own fields), and with more than one shard the indexes of rising values begin with it. A list asks for up
to 30 shards in one query, and merges the results of several, in the order that a single range has.

With one shard lists use indexes without it. More shards than one take over only when *every* task and offer
has its own number of ranges. `cloudsched admin shards grow` sees to that, and says so in a document of its
own. Until then lists use the indexes without shards, which have all tasks, wherever each is. That document
also has the greatest number of shards that there ever were, so that nobody looks at too few.
"""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass
from heapq import merge
from typing import TYPE_CHECKING, Final

from cloudsched.adapters.firestore import protos as messages
from cloudsched.adapters.firestore.values import encode_fields, find_value
from cloudsched.engine.ports.sweep import choose_shard

if TYPE_CHECKING:
    from cloudsched.adapters.firestore.queries import FirestoreListing
    from cloudsched.adapters.firestore.rpc import FirestoreRpc
    from cloudsched.adapters.google.channel import Message
    from cloudsched.engine.ports.search import TaskQuery

_Write: Message = messages.Write
PLACEMENT: Final = "shards/placement"
"""The document about all of them."""
RECHECK_SECONDS: Final = 60.0
"""The seconds for which a process with several shards trusts that document, or its absence, before it looks
again."""
_MAX_QUERIES: Final = 8
"""The number of queries of one list that are made at a time."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The known places of all tasks.

    Attributes:
        count: Every task and offer has one of this many shards. 0 if some may have none.
        growing_to: The number of shards for which a walk over all tasks is under way, 0 for none.
        after: The full name of the last document that it has seen.
    """

    count: int = 0
    growing_to: int = 0
    after: str = ""


class Shards:
    """The shards of one process."""

    def __init__(self, rpc: FirestoreRpc, documents: str, count: int) -> None:
        self.count = count
        self._rpc = rpc
        self._name = f"{documents}/{PLACEMENT}"
        self._placement = Placement()
        self._check_at = 0.0
        self._lock = threading.Lock()

    def choose(self, task_id: str) -> int:
        """Return the shard of a task."""
        return choose_shard(task_id, self.count)

    def find_ranges(self) -> tuple[int, ...] | None:
        """Return the shards to look for tasks and offers in, None to use the indexes without shards.

        With one shard it reads nothing, with more one document a minute.
        """
        if self.count == 1:
            return None
        placement = self._find_placement()
        if not placement.count:
            return None
        return tuple(range(max(self.count, placement.count)))

    def find_for(self, query: TaskQuery) -> tuple[int, ...] | None:
        """Return the shards to look for tasks in.

        An owner's tasks, and those that need attention, are always sharded.
        """
        if query.trouble is None and query.owner is None:
            return self.find_ranges()
        return self.list_all()

    def find_for_offers(self, owner: str | None) -> tuple[int, ...] | None:
        """Return the shards to look for offers in. An owner's are always listed by shard."""
        if owner is None:
            return self.find_ranges()
        return self.list_all()

    def list_all(self) -> tuple[int, ...]:
        """Return all shards that may have documents, for lists that are sharded whatever `find_ranges` returns."""
        if self.count == 1:
            return (0,)
        placement = self._find_placement()
        return tuple(range(max(self.count, placement.count, placement.growing_to)))

    def load_placement(self) -> Placement:
        """Read what is known of all tasks. Reads one document."""
        found, _ = self._rpc.get(self._name)
        if found is None:
            return Placement()
        fields = found.fields
        return Placement(
            fields["count"].integer_value,
            fields["growingTo"].integer_value,
            fields["after"].string_value,
        )

    def store_placement(self, placement: Placement) -> None:
        """Store what is known now."""
        write = _Write()
        write.update.name = self._name
        content = {"count": placement.count, "growingTo": placement.growing_to, "after": placement.after}
        encode_fields(write.update.fields, content)
        self._rpc.commit([write])
        with self._lock:
            self._placement = placement
            self._check_at = time.monotonic() + RECHECK_SECONDS

    def _find_placement(self) -> Placement:
        with self._lock:
            if time.monotonic() >= self._check_at:
                self._placement = self.load_placement()
                self._check_at = time.monotonic() + RECHECK_SECONDS
            return self._placement


def query_in_order(
    rpc: FirestoreRpc, parent: str, listing: FirestoreListing, limit: int, start: tuple[object, str] | None = None
) -> list[Message]:
    """Return the first documents of a list, those after `start`, from as many queries as its shards take."""
    parts = [part.to_query(limit, parent, start) for part in listing.split()]
    if len(parts) == 1:
        return rpc.query(parent, parts[0])
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only for more than 30 shards

    with ThreadPoolExecutor(min(len(parts), _MAX_QUERIES)) as pool:
        found = list(pool.map(lambda part: rpc.query(parent, part), parts))
    merged = merge(*found, key=lambda each: _get_place(each, listing), reverse=listing.is_descending)
    return list(itertools.islice(merged, limit))


def _get_place(document: Message, listing: FirestoreListing) -> tuple[object, ...]:
    """Return where a document stands in its list, comparable with others of the list."""
    value = find_value(document.fields, listing.order.split("."))
    instant = value.timestamp_value
    return instant.seconds, instant.nanos, value.string_value, document.name.split("/")
