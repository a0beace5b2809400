"""Lists across tasks in Firestore: records of all tasks as a collection group, and tasks with open runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.adapters.firestore.list_fields import LISTED, OPEN, SHARD
from cloudsched.adapters.firestore.names import MAX_ID_BYTES
from cloudsched.adapters.firestore.pages import fetch_page
from cloudsched.adapters.firestore.queries import Listing
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.task import Task
from cloudsched.engine.ports.search import identify_open_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.adapters.firestore.rpc import FirestoreRpc
    from cloudsched.domain.documents.execution import ExecutionStatus
    from cloudsched.engine.ports.pages import Page
    from cloudsched.engine.ports.search import ExecutionQuery

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
        status = {} if query.status is None else {"status": str(query.status)}
        listing = Listing(
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
        key = ("finished", query, is_failure)
        parent = None if _is_too_long(listing) else self._documents
        return fetch_page(self._rpc, Execution, parent, listing, key, limit, page_token)

    def list_open(
        self, query: ExecutionQuery, status: ExecutionStatus, *, limit: int, page_token: str | None = None
    ) -> Page[Task]:
        """Return a page of the tasks whose most active open run has this status."""
        listing = Listing(
            "tasks",
            f"{OPEN}.since",
            is_descending=True,
            equals={**_choose_leader(query, OPEN), f"{OPEN}.status": str(status)},
            contains=_find_label(query),
        )
        key = identify_open_list(query, status)
        parent = None if _is_too_long(listing) else self._documents
        return fetch_page(self._rpc, Task, parent, listing, key, limit, page_token)


def _choose_leader(query: ExecutionQuery, place: str) -> Mapping[str, str | int]:
    """Return the filters with which every index begins: the owner or the shard, and perhaps the handler."""
    leader: dict[str, str | int] = {f"{place}.shard": SHARD} if query.owner is None else {"owner": query.owner}
    return leader if query.handler is None else {**leader, "handler": query.handler}


def _find_label(query: ExecutionQuery) -> tuple[str, str] | None:
    return None if query.label is None else ("labels", query.label)


def _is_too_long(listing: Listing) -> bool:
    values = [*(listing.equals or {}).values(), *(() if listing.contains is None else listing.contains)]
    return any(len(str(value).encode()) > MAX_ID_BYTES for value in values)
