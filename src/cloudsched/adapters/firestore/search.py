"""Lists across tasks in Firestore: records of all tasks as a collection group, and tasks with open runs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.adapters.firestore.list_fields import CHANGED, CHANGED_AT, LISTED, OPEN, SHARD
from cloudsched.adapters.firestore.names import MAX_ID_BYTES
from cloudsched.adapters.firestore.pages import fetch_page, to_document, to_sort_key
from cloudsched.adapters.firestore.queries import (
    Listing,
    build_lock_query,
    build_offer_listing,
    build_queue_key_query,
    build_task_listing,
)
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.locks import Lock
from cloudsched.engine.ports.page_tokens import skip_unreadable
from cloudsched.engine.ports.search import identify_open_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.adapters.firestore.rpc import FirestoreRpc
    from cloudsched.domain.documents.execution import ExecutionStatus
    from cloudsched.engine.ports.pages import Page
    from cloudsched.engine.ports.search import ExecutionQuery
    from cloudsched.engine.ports.task_query import TaskQuery

_SHOWN = tuple(
    str(field.serialization_alias or field.alias or name)
    for name, field in Execution.model_fields.items()
    if name not in {"steps", "content"}
)
"""The fields of a record that lists have."""


class FirestoreSearch:
    """A `SearchStore` in the database of a `FirestoreStore`."""

    def __init__(self, rpc: FirestoreRpc, documents: str) -> None:
        """Take the store's connection, and the full name of its documents."""
        self._rpc = rpc
        self._documents = documents

    def list_finished(
        self, query: ExecutionQuery, *, is_failure: bool, limit: int, page_token: str | None = None
    ) -> Page[Execution]:
        """Return a page of the matching final records, without their results and steps."""
        listing = _build_finished(query, is_failure=is_failure)
        key = ("finished", query, is_failure)
        parent = None if _is_too_long(listing) else self._documents
        return fetch_page(self._rpc, Execution, parent, listing, key, limit, page_token)

    def list_open(
        self, query: ExecutionQuery, status: ExecutionStatus, *, limit: int, page_token: str | None = None
    ) -> Page[Task]:
        """Return a page of the tasks whose most active open run has this status."""
        listing = _build_open(query, status)
        key = identify_open_list(query, status)
        parent = None if _is_too_long(listing) else self._documents
        return fetch_page(self._rpc, Task, parent, listing, key, limit, page_token)

    def count_tasks(self, query: TaskQuery, up_to: int) -> int:
        """Return how many tasks match, at most `up_to`: one billed read for each 1,000 of them."""
        return self._count(build_task_listing(query), up_to)

    def count_finished(self, query: ExecutionQuery, *, is_failure: bool, up_to: int) -> int:
        """Return how many final records match, at most `up_to`."""
        return self._count(replace(_build_finished(query, is_failure=is_failure), fields=None), up_to)

    def count_open(self, query: ExecutionQuery, status: ExecutionStatus, up_to: int) -> int:
        """Return how many tasks have an open run of this status, at most `up_to`."""
        return self._count(_build_open(query, status), up_to)

    def _count(self, listing: Listing, up_to: int) -> int:
        if listing.is_empty or _is_too_long(listing):
            return 0
        return self._rpc.count(self._documents, listing.to_query(up_to, self._documents))

    def find_last_change(self, owner: str | None = None) -> str:
        """Return when a task was stored last, as text, by Firestore's clock."""
        leader: dict[str, str | int] = {f"{CHANGED}.shard": SHARD} if owner is None else {"owner": owner}
        listing = Listing("tasks", CHANGED_AT, is_descending=True, equals=leader, fields=(CHANGED_AT,))
        if _is_too_long(listing):
            return ""
        found = self._rpc.query(self._documents, listing.to_query(1, self._documents))
        if not found:
            return ""
        at, key = to_sort_key(found[0], listing)
        return f"{at.timestamp_value.ToNanoseconds()} {key}"

    def list_queue_keys(self, owner: str | None = None, *, limit: int, prefix: str = "", after: str = "") -> list[str]:
        """Return the first queue keys that have offers; each is found by a query for the first offer after the last."""
        keys, last = list[str](), max(after, prefix)
        while len(keys) < limit:
            found = self._rpc.query(self._documents, build_queue_key_query(owner, last))
            if not found or not (last := found[0].fields["queueKey"].string_value).startswith(prefix):
                break
            keys.append(last)
        return keys

    def count_offers(self, queue_key: str, owner: str | None, up_to: int) -> int:
        """Return how many offers there are under a queue key, at most `up_to`."""
        listing = build_offer_listing((queue_key,), owner)
        return self._rpc.count(self._documents, listing.to_query(up_to, self._documents))

    def list_locks(self, *, limit: int, begin: str = "", end: str | None = None, after: str = "") -> list[Lock]:
        """Return the first locks by their keys."""
        found, last = list[Lock](), after
        while len(found) < limit:  # an unreadable document is skipped and must not hide those after it
            missing = limit - len(found)
            part = self._rpc.query(self._documents, build_lock_query(missing, begin, end, last))
            found += skip_unreadable((each.name, partial(to_document, Lock, each)) for each in part)
            if len(part) < missing:
                break
            last = part[-1].fields["key"].string_value
        return found


def _build_finished(query: ExecutionQuery, *, is_failure: bool) -> Listing:
    """Return the listing of final records."""
    status = {} if query.status is None else {"status": str(query.status)}
    return Listing(
        "executions",
        "scheduledFor",
        is_descending=True,
        equals={**_choose_leader(query, LISTED), f"{LISTED}.isFailure": is_failure, **status},
        contains=_find_label(query),
        start=query.since,
        end=query.until,
        parents="tasks",
        fields=_SHOWN,
    )


def _build_open(query: ExecutionQuery, status: ExecutionStatus) -> Listing:
    """Return the listing of tasks with open runs."""
    return Listing(
        "tasks",
        f"{OPEN}.since",
        is_descending=True,
        equals={**_choose_leader(query, OPEN), f"{OPEN}.status": str(status)},
        contains=_find_label(query),
    )


def _choose_leader(query: ExecutionQuery, place: str) -> Mapping[str, str | int]:
    """Return the filters with which every index begins: the owner or the shard, and perhaps the handler."""
    leader: dict[str, str | int] = {f"{place}.shard": SHARD} if query.owner is None else {"owner": query.owner}
    return leader if query.handler is None else {**leader, "handler": query.handler}


def _find_label(query: ExecutionQuery) -> tuple[str, str] | None:
    return None if query.label is None else ("labels", query.label)


def _is_too_long(listing: Listing) -> bool:
    values = [*(listing.equals or {}).values(), *(() if listing.contains is None else listing.contains)]
    return any(len(str(value).encode()) > MAX_ID_BYTES for value in values)
