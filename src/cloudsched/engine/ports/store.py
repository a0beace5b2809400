"""The port for stored state: tasks, offers, executions and journals. What else is stored has ports of its own.

Every adapter guarantees what the bullets say, and passes the contract suite in ``tests/contract``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from cloudsched.engine.storage.pages import MAX_PAGE_BYTES, Page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.commit import Commit, VersionedTask
    from cloudsched.engine.ports.inbox import InboxStore
    from cloudsched.engine.ports.records import RecordStore
    from cloudsched.engine.ports.search import SearchStore, TaskQuery
    from cloudsched.engine.ports.sweep import SweepStore
    from cloudsched.features.fields import OfferEntry


class Store(Protocol):
    """Stores tasks, offers, executions and journals. A commit writes locks, messages and records as well.

    * A `commit` is atomic: either all of it is stored, and survives the loss of any process, or nothing is.
    * A `commit` takes effect only if the task still has the version that was read. Of any number of callers that
      expect the same version, exactly one succeeds.
    * A task's offer is the entry by which workers find it. It changes only together with the task: it is stored as
      long as `Task.offer` is set. A commit that does not change it does not write it.
    * A read that starts after a commit has returned sees it.
    * Lists are paged by cursor: an item that changes between two pages is returned once or not at all. No other item is
      missed or repeated. A page token that was made up, or belongs to another list, raises InvalidInput.
    * Lists use an index: their cost grows with the page, not with the collection. For a filter that no index has
      (`TaskQuery.looked_for`), a page looks through `MAX_LOOKED_THROUGH` documents that the others find, or a small
      multiple.
    * A document that cannot be read (damaged, or of a newer version) is skipped in every list: logged as
      ``unreadable`` and counted in the page. Loading it by its id is an error.
    * A service that does not answer in time raises `StoreUnavailable`. A commit may then have taken effect or not.
    """

    @property
    def records(self) -> RecordStore:
        """The documents that callers write as a whole."""
        ...

    @property
    def inbox(self) -> InboxStore:
        """The inbox that holds messages after they were delivered."""
        ...

    @property
    def search(self) -> SearchStore:
        """Lists of executions, of one task or across tasks."""
        ...

    @property
    def locks(self) -> Any:  # noqa: ANN401 - of a feature, such as `LockStore`
        """The documents of a feature that commits link to tasks, such as locks."""
        ...

    @property
    def sweep(self) -> SweepStore:
        """The tasks that are due, and the removal of what nobody keeps."""
        ...

    def make_id(self, at: datetime) -> str | None:
        """Return an id for a task that is created at an instant, or None if any random one will do."""
        ...

    def load(self, task_id: str) -> VersionedTask | None:
        """Return the task as it is now, or None. One document is read."""
        ...

    def recall(self, task_id: str) -> VersionedTask | None:
        """Return the task as this process read or wrote it last, or None if it does not know it. Nothing is read.

        It may have changed since, or be gone: then a commit with its version conflicts.
        """
        ...

    def commit(self, commit: Commit) -> VersionedTask:
        """Write a commit atomically, and return its task with the version that it has now.

        Raises:
            VersionConflict: A task, a record or the lock has another version by now, no longer exists, or exists
                although it must not, or the record that was delivered no longer exists.
        """
        ...

    def load_journal(self, task_id: str, execution_id: str) -> Sequence[JournalEntry]:
        """Return the whole journal of an open execution, ordered by entry number."""
        ...

    def list_tasks(
        self, query: TaskQuery, *, limit: int, page_token: str | None = None, max_bytes: int = MAX_PAGE_BYTES
    ) -> Page[Task]:
        """Return a page of the matching tasks, without those that are being deleted.

        It ends, with a token, at the task with which its size reaches `max_bytes`. All other lists end at
        `MAX_PAGE_BYTES`.
        """
        ...

    def list_offers(
        self, queue_keys: Sequence[str], owner: str | None, *, limit: int, after: tuple[str, str] | None = None
    ) -> Sequence[OfferEntry]:
        """Return the offers under one of the queue keys (and of that owner), by their order, then by task id.

        Reads only those. `after` is the order and the task id of the offer after which to continue.
        """
        ...

    def load_many(self, task_ids: Sequence[str]) -> Sequence[VersionedTask]:
        """Return those of some tasks that exist and can be read, in one round trip. One document is read for each."""
        ...

    def load_execution(self, task_id: str, execution_id: str) -> Execution | None:
        """Return one execution's record, or None."""
        ...

    def check(self) -> datetime | None:
        """Make one small round trip, and return the store's current time, if the store has its own clock."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
