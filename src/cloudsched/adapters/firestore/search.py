"""Lists in Firestore: page by page, records of all tasks as a collection group, and tasks with open runs."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from cloudsched.adapters.firestore.list_fields import (
    ACTED,
    ASKS,
    CHANGED,
    CHANGED_AT,
    LISTED,
    OPEN,
    TROUBLE,
    WORDS,
    D,
    to_document,
)
from cloudsched.adapters.firestore.protos import MAX_ID_BYTES, document_name
from cloudsched.adapters.firestore.queries import (
    EXECUTIONS,
    MAX_DISJUNCTIONS,
    FirestoreListing,
    build_handler_query,
    build_offer_listing,
    build_owner_query,
    build_queue_key_query,
    build_task_listing,
    name_fields,
)
from cloudsched.adapters.firestore.record_kinds import COUNTED_KINDS, SEVERAL, list_kinds
from cloudsched.adapters.firestore.shards import Shards, query_in_order
from cloudsched.adapters.firestore.values import decode_instant, find_value
from cloudsched.domain.documents.execution import Execution, ExecutionStatus
from cloudsched.domain.documents.name_words import MAX_BEGINNING, NameMatch, has_beginnings, split_name
from cloudsched.domain.documents.run_counts import GroupCount
from cloudsched.domain.documents.task import Task
from cloudsched.domain.responses.count import Count, RunCounts, count_occurrences
from cloudsched.engine.ports.search import (
    MAX_GROUPED,
    OMITTED_FIELDS,
    UNFINISHED_STATUSES,
    ExecutionQuery,
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
    from collections.abc import Callable, Sequence

    from cloudsched.adapters.firestore.rpc import FirestoreRpc
    from cloudsched.adapters.google.channel import Message


def fetch_page(  # noqa: PLR0913, PLR0917 - a list and the position in it
    rpc: FirestoreRpc,
    parse: type[D] | Callable[[Message], D],
    parent: str | None,
    listing: FirestoreListing,
    query: object,
    limit: int,
    page_token: str | None,
    max_bytes: int = MAX_PAGE_BYTES,
) -> Page[D]:
    """Return a page of a list, an empty one if there is no parent. Its page tokens belong to `query`."""
    start: tuple[object, str] | None = read_token(query, page_token) if page_token else None
    if parent is None:
        return Page(())

    def read(after: Message | None, count: int) -> list[Message]:
        return query_in_order(
            rpc,
            parent,
            listing,
            count,
            start if after is None else to_sort_key(after, listing),
        )

    found = find_matching_rows(
        read,
        lambda each: _is_match(each, listing),
        lambda each: each.ByteSize(),
        limit=limit,
        max_bytes=max_bytes,
        most_read=matching_rows.MAX_LOOKED_THROUGH if listing.looked_for else None,
    )
    read_one = partial(to_document, parse) if isinstance(parse, type) else parse

    def locate(document: Message) -> tuple[datetime, str]:
        value, key = to_sort_key(document, listing)
        return decode_instant(value), key

    return found.to_page(query, lambda each: (each.name, partial(read_one, each)), locate)


def _is_match(document: Message, listing: FirestoreListing) -> bool:
    if listing.excluded_field and listing.excluded_field in document.fields:
        return False
    return all(_has(document.fields, path, text) for path, text in (listing.looked_for or {}).items())


def _has(fields: Message, path: str, text: str) -> bool:
    value = find_value(fields, path.split("."))
    if value.HasField("array_value"):
        return any(each.string_value == text for each in value.array_value.values)
    return value.HasField("string_value") and bool(value.string_value == text)


def to_sort_key(document: Message, listing: FirestoreListing) -> tuple[Message, str]:
    """Return a document's position in a list."""
    return find_value(document.fields, listing.order.split(".")), listing.to_key(document.name)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN = tuple(
    str(field.serialization_alias or field.alias or name)
    for name, field in Execution.model_fields.items()
    if name not in OMITTED_FIELDS
)
"""The fields of a record that lists have."""
MAX_COUNTED: Final = 1_000_000
"""The most runs or tasks of one count: a thousand billed reads."""
MAX_RANGES: Final = 100
"""The most records of several occurrences that are read for counts: a read for each."""


class FirestoreSearch(ListingSearch[FirestoreListing]):
    """A `SearchStore` in the database of a `FirestoreStore`."""

    def __init__(self, rpc: FirestoreRpc, documents: str, shards: Shards, *, name_index: bool) -> None:
        self._rpc = rpc
        self._documents = documents
        self._shards = shards
        self._name_index = name_index

    @override
    def _list_tasks(self, query: TaskQuery) -> FirestoreListing:
        return build_task_listing(query, self._shards.find_for(query))

    @override
    def _fetch(self, kind: type[D], listing: FirestoreListing, query: object, limit: int, token: str | None) -> Page[D]:
        parent = None if listing.is_empty or _is_too_long(listing) else self._documents
        return fetch_page(self._rpc, kind, parent, listing, query, limit, token)

    @override
    def _fetch_executions(self, task_id: str, query: object, limit: int, token: str | None) -> Page[Execution]:
        parent = document_name(self._documents, "tasks", task_id)
        return fetch_page(self._rpc, Execution, parent, EXECUTIONS, query, limit, token)

    def get_name_match(self) -> NameMatch:
        """Return whether there is an index of the beginnings of words. Firestore has none of their middle."""
        return NameMatch.BEGINNINGS if self._name_index else NameMatch.NEWEST

    def list_named(
        self, query: TaskQuery, words: Sequence[str], *, limit: int, page_token: str | None = None
    ) -> Page[Task]:
        """Return a page of the tasks with the longest word in the index, without those that lack another one."""
        wanted = [part for word in words for part in split_name(word)]
        if not wanted:
            return Page(())
        longest = max(wanted, key=len)[:MAX_BEGINNING]
        listing = self._list_tasks(TaskQuery(query.owner))
        if query.owner is None:
            listing = replace(
                self._lead(None, CHANGED),
                order="createdAt",
                is_descending=True,
                contains=(WORDS, longest),
                excluded_field="deletedAt",
            )
        else:
            listing = replace(listing, looked_for={WORDS: longest})
        page = self._fetch(Task, listing, ("named", query, tuple(words)), limit, page_token)
        found = [task for task in page.items if has_beginnings(task, wanted)]
        return replace(page, items=found, passed_over=page.passed_over + len(page.items) - len(found))

    def list_owners(self, fragment: str, *, limit: int) -> Sequence[str]:
        """Return the first owners of tasks that begin with this text. Each is one read, with whatever index."""
        found: dict[str, None] = {}
        for prefix in dict.fromkeys((fragment, fragment.casefold())):
            if not prefix.isprintable() or len(prefix.encode(errors="replace")) > MAX_ID_BYTES:
                continue
            found |= dict.fromkeys(list_keys(self._find_next_owner, limit=limit, prefix=prefix, after=""))
        return sorted(found)[:limit]

    def _find_next_owner(self, last: str) -> str | None:
        found = self._rpc.query(self._documents, build_owner_query(last))
        return found[0].fields["owner"].string_value if found else None

    def list_acted_on(
        self, owner: str | None, since: datetime | None, *, limit: int, page_token: str | None = None
    ) -> Page[Task]:
        """Return a page of the tasks with an action in their history, the one with the latest action first."""
        listing = replace(
            self._lead(owner, ACTED),
            order=f"{ACTED}.at",
            is_descending=True,
            start=since,
            excluded_field="deletedAt",
        )
        return self._fetch(Task, listing, ("acted on", owner, since), limit, page_token)

    def count_unfinished(self, owner: str, up_to: int) -> int:
        """Return how many of the owner's tasks have not ended, at most `up_to`."""
        listing = self._list_tasks(TaskQuery(owner))
        statuses = [str(status) for status in UNFINISHED_STATUSES]
        return self._count(replace(listing, equals={**(listing.equals or {}), "status": statuses}), up_to)

    def count_created_since(self, owner: str, since: datetime, up_to: int) -> int:
        """Return how many of the owner's tasks were created after `since`, at most `up_to`."""
        return self._count(
            replace(self._list_tasks(TaskQuery(owner)), start=since + timedelta(microseconds=1)),
            up_to,
        )

    @override
    def _count(self, listing: FirestoreListing, up_to: int) -> int:
        """Return the number of documents of a listing: one billed read for each 1,000 of them."""
        if listing.is_empty or _is_too_long(listing):
            return 0
        parts = replace(listing, fields=None).split()  # a count returns no fields
        queries = (part.to_query(up_to, self._documents) for part in parts)
        return min(up_to, sum(self._rpc.count(self._documents, query) for query in queries))

    def count_runs(self, owner: str | None, edges: Sequence[datetime]) -> Sequence[RunCounts]:
        """Return the numbers of the ended runs between each two edges.

        What there is none of from the first edge to the last is not counted part by part.
        """
        parts = list(itertools.pairwise(edges))
        counts = [RunCounts()] * len(parts)
        for name, kinds in COUNTED_KINDS.items():
            listing = self._list_kinds(owner, kinds)
            if not self._count(replace(listing, start=edges[0], end=edges[-1]), 1):
                continue
            for number, (start, end) in enumerate(parts):
                count = self._count(replace(listing, start=start, end=end), MAX_COUNTED)
                found: dict[str, Any] = {name: Count(value=count) if name == "skipped" else count}
                counts[number] += RunCounts(**found)

        if any(each.skipped for each in counts):
            self._add_ranges(owner, edges, counts)
        return counts

    def _add_ranges(self, owner: str | None, edges: Sequence[datetime], counts: list[RunCounts]) -> None:
        """Add the further occurrences that skipped records cover, as far as `MAX_RANGES` records say."""
        listing = replace(self._list_kinds(owner, (SEVERAL,)), start=edges[0], end=edges[-1])
        page = self._fetch(Execution, listing, ("ranges", owner, *edges), MAX_RANGES, None)
        for each in page.items:
            number = bisect_right(edges, each.scheduled_for) - 1
            more = count_occurrences(each)
            counts[number] += RunCounts(skipped=more.model_copy(update={"value": more.value - 1}))
        if page.next_page_token:
            bound = RunCounts(skipped=Count(value=0, at_least=True))
            counts[:] = [each + bound if each.skipped else each for each in counts]

    def _list_kinds(self, owner: str | None, kinds: Sequence[str]) -> FirestoreListing:
        """Return the listing of the final records of some kinds, the latest first."""
        leader = self._lead(owner, LISTED)
        return replace(
            leader,
            collection="executions",
            order="scheduledFor",
            is_descending=True,
            equals={**(leader.equals or {}), f"{LISTED}.kind": kinds},
            parents="tasks",
            fields=_SHOWN,
        )

    def group_tasks(self, query: TaskQuery) -> Sequence[GroupCount]:
        """Return the numbers of the latest tasks with a trouble by handler: a read for each of them."""
        listing = replace(self._list_tasks(query), fields=("handler", f"{TROUBLE}.since"))
        if _is_too_long(listing):
            return []
        groups: dict[str, GroupCount] = {}
        for each in query_in_order(self._rpc, self._documents, listing, MAX_GROUPED):
            name = each.fields["handler"].string_value
            count = groups[name].count if name in groups else 0
            value, key = to_sort_key(each, listing)
            groups[name] = GroupCount(name, count + 1, decode_instant(value), key)
        return sorted(groups.values(), key=lambda each: (each.count, each.name))

    def find_last_change(self, owner: str | None) -> str:
        """Return when a task was stored last, as text, by Firestore's clock."""
        listing = replace(
            self._lead(owner, CHANGED),
            order=CHANGED_AT,
            is_descending=True,
            fields=(CHANGED_AT,),
        )
        if _is_too_long(listing):
            return ""
        found = query_in_order(self._rpc, self._documents, listing, 1)
        if not found:
            return ""
        at, key = to_sort_key(found[0], listing)
        return f"{at.timestamp_value.ToNanoseconds()} {key}"

    def list_changed(
        self,
        owner: str | None,
        since: str,
        *,
        limit: int,
        page_token: str | None = None,
    ) -> Page[Task]:
        """Return a page of the tasks that were stored since a mark, the last ones first."""
        start = None
        if since:
            start = _EPOCH + timedelta(microseconds=int(since.partition(" ")[0]) // 1000)
        listing = replace(self._lead(owner, CHANGED), order=CHANGED_AT, is_descending=True, start=start)
        return self._fetch(Task, listing, ("changed", owner, since), limit, page_token)

    def list_handlers(self, *, limit: int) -> list[str]:
        """Return the first names of handlers that tasks have, each found by a query for the first task after the last.

        With several shards it is found in each thirty of them.
        """
        shards = self._shards.find_ranges()
        parts: list[tuple[int, ...] | None] = [None]
        if shards is not None:
            parts = [shards[begin : begin + MAX_DISJUNCTIONS] for begin in range(0, len(shards), MAX_DISJUNCTIONS)]

        def find_next(last: str) -> str | None:
            queries = (build_handler_query(last, part) for part in parts)
            found = [each for query in queries for each in self._rpc.query(self._documents, query)]
            return min((each.fields["handler"].string_value for each in found), default=None)

        return list_keys(find_next, limit=limit, prefix="", after="")

    def list_queue_keys(
        self,
        owner: str | None,
        *,
        limit: int,
        prefix: str = "",
        after: str = "",
    ) -> list[str]:
        """Return the first queue keys that have offers.

        Each is found by a query for the first offer after the last.
        """
        shards = self._shards.find_for_offers(owner)
        parts: list[tuple[int, ...] | None] = [None]
        if shards is not None:
            parts = [shards[begin : begin + MAX_DISJUNCTIONS] for begin in range(0, len(shards), MAX_DISJUNCTIONS)]

        def find_next(last: str) -> str | None:
            queries = (build_queue_key_query(owner, last, part) for part in parts)
            found = [each for query in queries for each in self._rpc.query(self._documents, query)]
            return min((each.fields["queueKey"].string_value for each in found), default=None)

        return list_keys(find_next, limit=limit, prefix=prefix, after=after)

    def count_offers(self, queue_key: str, owner: str | None, up_to: int) -> Count:
        """Return how many offers there are under a queue key, counted up to `up_to`."""
        listing = build_offer_listing((queue_key,), owner, self._shards.find_for_offers(owner))
        return Count.up_to(self._count(listing, up_to), up_to)

    @override
    def _list_finished(self, query: ExecutionQuery, *, is_failure: bool) -> FirestoreListing:
        kinds = list_kinds(query, is_failure=is_failure)
        looked_for = dict(query.looked_for)
        if query.status is not None:
            looked_for["status"] = str(query.status)
        return replace(
            self._list_kinds(query.owner, kinds),
            start=query.since,
            end=query.until,
            looked_for=name_fields(looked_for),
            is_empty=not kinds,
        )

    @override
    def _list_open(self, query: ExecutionQuery, status: ExecutionStatus) -> FirestoreListing:
        leader = self._lead(query.owner, OPEN)
        return replace(
            leader,
            order=f"{OPEN}.since",
            is_descending=True,
            equals={**(leader.equals or {}), f"{OPEN}.status": (str(status), f"{status}{ASKS}")},
            looked_for=name_fields(query.looked_for),
        )

    def _lead(self, owner: str | None, place: str) -> FirestoreListing:
        """Return a listing with the filters that every index begins with: the owner, if any, and the shard."""
        equals = {"owner": owner} if owner else {}
        return FirestoreListing(
            "tasks",
            "",
            equals=equals,
            shard_field=f"{place}.shard",
            shards=self._shards.list_all(),
        )


def _is_too_long(listing: FirestoreListing) -> bool:
    values = [*(listing.equals or {}).values(), *(listing.contains or ())]
    return any(len(str(value).encode()) > MAX_ID_BYTES for value in values)
