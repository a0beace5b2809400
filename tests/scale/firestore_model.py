"""A model of Firestore behind the real adapter: documents in memory, and the limits of writing them.

It answers the calls that `adapters.firestore.rpc` makes, on the same protobuf messages. A commit checks its
preconditions and then the limits: a sequential index range, a document or the ramp that has no room left aborts it
(ABORTED), and the adapter retries it as it does in production. Every call takes its time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from tests.scale.firestore_queries import is_descending, make_match
from tests.scale.google_limits import Refusal, VirtualTime
from tests.scale.index_ranges import Entry, Indexes, Range, to_plain
from tests.scale.store_limits import StoreLimits

from cloudsched.adapters.firestore import protos as messages

_EXPIRE_AT = "expireAt"
GET_SECONDS, COMMIT_SECONDS, QUERY_SECONDS = 0.008, 0.025, 0.020
"""The median latencies within a region: assumptions."""


@dataclass(slots=True)
class StoredDocument:
    """A document, and the index entries that it has."""

    message: Any
    collection: str
    values: dict[str, Any]
    """Those of its fields that may be indexed, by their paths."""
    written_at: float
    entries: set[Entry]


class FirestoreModel:
    """The documents of one database, and its channel.

    Args:
        time: The virtual time.
        indexes: The indexes that it has.
        limits: What it takes.
    """

    def __init__(self, time: VirtualTime, indexes: Indexes, limits: StoreLimits) -> None:
        self.indexes = indexes
        self.limits = limits
        self.documents: dict[str, StoredDocument] = {}
        self._by_collection: defaultdict[str, dict[str, StoredDocument]] = defaultdict(dict)
        self._by_parent: defaultdict[str, dict[str, StoredDocument]] = defaultdict(dict)
        """The same by the full name of the collection."""
        self.counts: Counter[str] = Counter()
        """Billed documents: reads, writes, deletes; and commits, and the reasons of those that were aborted."""
        self._time = time
        self._last_version = 0

    def list_documents(self, collection: str) -> list[StoredDocument]:
        return list(self._by_collection[collection].values())

    # ── The TTL policies ─────────────────────────────────────────────────────────────────────────────────────────

    def list_expired(self) -> list[str]:
        """Return the names of the documents whose `expireAt` has passed."""
        now = self._time.now()
        expiring = ((name, each.message.fields) for name, each in self.documents.items())
        return [name for name, fields in expiring if _EXPIRE_AT in fields and to_plain(fields[_EXPIRE_AT]) <= now]

    def expire(self) -> None:
        """Delete these: whatever is full aborts others, and not the TTL, which takes the room that it needs."""
        for name in self.list_expired():
            stored = self.documents[name]
            self._put(name, replace(stored, message=None))
            self.counts["expired"] += 1
            if self.limits.is_enforced:
                for place in self.indexes.find_ranges(stored.entries, set()):
                    self.limits.ranges.find(place).add(place, self._time.seconds, 1)

    # ── The channel ──────────────────────────────────────────────────────────────────────────────────────────────

    def unary_unary(self, method: str, **_codec: Any) -> Callable[..., Any]:
        assert method.endswith("/Commit"), method
        return lambda request, **_options: self._commit(request)

    def unary_stream(self, method: str, **_codec: Any) -> Callable[..., Any]:
        """Return the method for BatchGetDocuments or RunQuery."""
        name = method.rpartition("/")[2]
        if name == "BatchGetDocuments":
            return lambda request, **_options: iter(self._get(request))
        if name == "RunQuery":
            return lambda request, **_options: iter(self._query(request))
        return partial(self._refuse, name)

    def close(self) -> None:
        """Do nothing."""

    @staticmethod
    def _refuse(name: str, *_args: Any, **_options: Any) -> Any:  # noqa: ANN401 - gRPC's own
        raise Refusal(grpc.StatusCode.UNIMPLEMENTED, name)

    # ── Reads ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _get(self, request: Any) -> Iterator[Any]:  # noqa: ANN401 - a protobuf message
        self._time.pass_latency(GET_SECONDS)
        self._take_ramp([name.split("/")[5] for name in request.documents])
        for name in request.documents:
            self.counts["reads"] += 1
            response = messages.BatchGetDocumentsResponse()
            response.read_time.FromDatetime(self._time.now())
            if (found := self.documents.get(name)) is None:
                response.missing = name
            else:
                response.found.CopyFrom(found.message)
            yield response

    def _query(self, request: Any) -> Iterator[Any]:  # noqa: ANN401 - a protobuf message
        self._time.pass_latency(QUERY_SECONDS)
        query = request.structured_query
        (source,) = query.from_
        match = make_match(query)
        is_group, path = source.all_descendants, f"{request.parent}/{source.collection_id}"
        among = self._by_collection[source.collection_id] if is_group else self._by_parent[path]
        found = [
            (key, name, stored) for name, stored in among.items() if (key := match(stored.values, name)) is not None
        ]
        found.sort(key=lambda each: each[:2], reverse=is_descending(query))
        limit = query.limit.value or len(found)
        self.counts["reads"] += max(1, min(limit, len(found)))
        self.counts["queries"] += 1
        empty = messages.RunQueryResponse()
        empty.read_time.FromDatetime(self._time.now())
        if not found:
            yield empty
        for _, _, stored in found[:limit]:
            response = messages.RunQueryResponse()
            response.document.CopyFrom(stored.message)
            yield response

    # ── Writes ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _commit(self, request: Any) -> Any:  # noqa: ANN401 - protobuf messages
        self._time.pass_latency(COMMIT_SECONDS)
        for write in request.writes:
            if not self._is_as_expected(write):
                raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "a document has changed")
        now = self._time.now()
        changes = [change for write in request.writes if (change := self._apply(write, now)) is not None]
        self._require_room(changes)
        self.counts["commits"] += 1
        response = messages.CommitResponse()
        for write in request.writes:
            result = response.write_results.add()
            is_delete = write.WhichOneof("operation") == "delete"
            is_check = is_delete or (write.HasField("update_mask") and not write.update_mask.field_paths)
            self.counts["deletes" if is_delete else "writes"] += 1
            if not is_check:
                result.update_time.FromNanoseconds(self._next_version())
        by_name = {name: document for document, name in changes if document.message is not None}
        for write, result in zip(request.writes, response.write_results, strict=True):
            if (found := by_name.get(write.update.name)) is not None and result.HasField("update_time"):
                found.message.update_time.CopyFrom(result.update_time)
        for document, name in changes:
            self._put(name, document)
        return response

    def _put(self, name: str, document: StoredDocument) -> None:
        """Store a document, or remove it if it has no content."""
        for each in (
            self.documents,
            self._by_collection[document.collection],
            self._by_parent[name.rpartition("/")[0]],
        ):
            if document.message is None:
                each.pop(name, None)
            else:
                each[name] = document

    def _is_as_expected(self, write: Any) -> bool:  # noqa: ANN401 - a protobuf message
        stored = self.documents.get(write.delete or write.update.name)
        match write.current_document.WhichOneof("condition_type"):
            case "exists":
                return (stored is not None) == bool(write.current_document.exists)
            case "update_time":
                return stored is not None and stored.message.update_time == write.current_document.update_time
        return True

    def _apply(self, write: Any, now: datetime) -> tuple[StoredDocument, str] | None:  # noqa: ANN401 - a message
        """Return the document as it will be, without storing it; None if the write changes nothing."""
        name = write.delete or write.update.name
        parts = name.split("/")
        collection, parent = parts[-2], "/".join(parts[5:-2])
        if write.delete:
            return StoredDocument(None, collection, {}, self._time.seconds, set()), name
        if write.HasField("update_mask"):
            if not write.update_mask.field_paths:
                return None
            message = messages.Document()
            if (stored := self.documents.get(name)) is not None:
                message.CopyFrom(stored.message)
            message.name = name
            for path in write.update_mask.field_paths:
                _merge(message.fields, write.update.fields, path.split("."))
        else:
            message = write.update
        for transform in write.update_transforms:
            *path, last = transform.field_path.split(".")
            fields = message.fields
            for each in path:
                fields = fields[each].map_value.fields
            fields[last].timestamp_value.FromDatetime(now)
        values = self.indexes.read(collection, message)
        entries = self.indexes.derive(collection, values, parent)
        return StoredDocument(message, collection, values, self._time.seconds, entries), name

    def _require_room(self, changes: Iterable[tuple[StoredDocument, str]]) -> None:
        """Count what a commit writes into ranges and documents, or abort it."""
        at, limits = self._time.seconds, self.limits
        if not limits.is_enforced:
            return
        ranges: Counter[Range] = Counter()
        names: list[str] = []
        for change, name in changes:
            before = self.documents.get(name)
            if before is None and change.message is None:
                continue
            ranges.update(self.indexes.find_ranges(set() if before is None else before.entries, change.entries))
            ranges.update(self.indexes.find_range_of_names(name))
            names.append(name)
        for each in ranges:
            if not limits.ranges.find(each).has_room(each, at):
                self._abort("range", f"too many writes into the range {each}")
        for name in names:
            if not limits.documents.has_room(name, at):
                self._abort("document", f"too many writes to {name}")
        self._take_ramp([name.split("/")[5] for name in names if name.count("/") == 6])
        for each, writes in ranges.items():
            limits.ranges.find(each).add(each, at, writes)
        for name in names:
            limits.documents.add(name, at)

    def _take_ramp(self, collections: Iterable[str]) -> None:
        ramp = self.limits.ramp
        if ramp is None or not self.limits.is_enforced:
            return
        for collection in collections:
            if collection == "tasks" and not ramp.take(self._time.seconds):
                self._abort("ramp", "traffic grows too fast")

    def _abort(self, reason: str, details: str) -> None:
        self.counts[f"aborted by {reason}"] += 1
        raise Refusal(grpc.StatusCode.ABORTED, details)

    def _next_version(self) -> int:
        wanted = int(self._time.now().timestamp() * 1_000_000) * 1_000
        self._last_version = max(self._last_version + 1_000, wanted)
        return self._last_version


def _merge(target: Any, source: Any, path: list[str]) -> None:  # noqa: ANN401 - protobuf maps
    first, *rest = path
    if rest:
        _merge(target[first].map_value.fields, source[first].map_value.fields, rest)
    elif first in source:
        target[first].CopyFrom(source[first])
    else:
        with suppress(KeyError):
            del target[first]
