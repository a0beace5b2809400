"""The lists and counts of a `SearchStore` that differ between databases only in how a listing is built and read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.task import Task
from cloudsched.domain.responses.count import Count
from cloudsched.engine.ports.search import (
    ExecutionQuery,
    TaskQuery,
    identify_executions,
    identify_finished_list,
    identify_open_list,
)
from cloudsched.engine.storage.matching_rows import MAX_LOOKED_THROUGH
from cloudsched.engine.storage.pages import start_before

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.document import Document
    from cloudsched.domain.documents.execution import ExecutionStatus
    from cloudsched.engine.storage.pages import Page

L = TypeVar("L")
D = TypeVar("D", bound="Document")


class ListingSearch(ABC, Generic[L]):
    """Lists and counts executions by listings: descriptions of a list, which an adapter turns into queries."""

    @abstractmethod
    def _list_tasks(self, query: TaskQuery) -> L:
        """Return the listing of matching tasks."""

    @abstractmethod
    def _list_finished(self, query: ExecutionQuery, *, is_failure: bool) -> L:
        """Return the listing of matching final records."""

    @abstractmethod
    def _list_open(self, query: ExecutionQuery, status: ExecutionStatus) -> L:
        """Return the listing of tasks whose most active open run has this status."""

    @abstractmethod
    def _fetch(self, kind: type[D], listing: L, query: object, limit: int, token: str | None) -> Page[D]:
        """Return a page of a listing. Its page tokens belong to `query`."""

    @abstractmethod
    def _fetch_executions(self, task_id: str, query: object, limit: int, token: str | None) -> Page[Execution]:
        """Return a page of the executions of one task."""

    @abstractmethod
    def _count(self, listing: L, up_to: int) -> int:
        """Return the number of documents of a listing, at most `up_to`."""

    def list_finished(
        self, query: ExecutionQuery, *, is_failure: bool, limit: int, page_token: str | None = None
    ) -> Page[Execution]:
        """Return a page of the matching final records, without their results and steps."""
        listing = self._list_finished(query, is_failure=is_failure)
        key = identify_finished_list(query, is_failure=is_failure)
        return self._fetch(Execution, listing, key, limit, page_token)

    def list_open(
        self, query: ExecutionQuery, status: ExecutionStatus, *, limit: int, page_token: str | None = None
    ) -> Page[Task]:
        """Return a page of the tasks whose most active open run has this status."""
        listing = self._list_open(query, status)
        return self._fetch(Task, listing, identify_open_list(query, status), limit, page_token)

    def list_executions(
        self, task_id: str, *, limit: int, page_token: str | None = None, before: datetime | None = None
    ) -> Page[Execution]:
        """Return a page of a task's executions, the latest first."""
        query = identify_executions(task_id)
        return self._fetch_executions(task_id, query, limit, start_before(query, before, page_token))

    def count_tasks(self, query: TaskQuery, up_to: int) -> Count:
        """Return how many tasks match, counted up to `up_to`."""
        return self._count_up_to(self._list_tasks(query), query, up_to)

    def count_open(self, query: ExecutionQuery, status: ExecutionStatus, up_to: int) -> Count:
        """Return how many tasks have an open run of this status, counted up to `up_to`."""
        return self._count_up_to(self._list_open(query, status), query, up_to)

    def _count_up_to(self, listing: L, query: TaskQuery | ExecutionQuery, up_to: int) -> Count:
        if not query.looked_for:
            return Count.up_to(self._count(listing, up_to), up_to)
        page = self._fetch(Task, listing, query, min(up_to, MAX_LOOKED_THROUGH), None)
        return Count(value=len(page.items), at_least=page.next_page_token is not None)
