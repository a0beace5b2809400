"""The store in Firestore: one read a load, one commit a decision, no transactions.

::

    tasks/{taskId}                              Task
    tasks/{taskId}/executions/{executionId}     Execution
        …/steps/{number}                        JournalEntry
    inboxes/{owner}/messages/{messageId}        Message
    locks/{lockId}                              Lock

The precondition of a commit is the ``update_time`` of the task (and of the lock). Firestore leaves that as it was when
a write changes nothing (google.firestore.v1.WriteResult), so each write gives them a ``commitId`` of its own. What is
offered to workers is stamped ``offerWrittenAt`` by Firestore's clock, for those who listen to it.
"""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from google.cloud.firestore_v1.types import write as proto

from cloudsched.adapters.firestore.queries import (
    EXECUTIONS,
    MESSAGES,
    STEPS,
    WAKING,
    Listing,
    listing_of_due,
    listing_of_offers,
    listing_of_tasks,
    names_only,
)
from cloudsched.adapters.firestore.rpc import Calls
from cloudsched.adapters.firestore.values import decode, fill
from cloudsched.domain.documents.document import Document
from cloudsched.domain.documents.execution import Execution, Message
from cloudsched.domain.documents.journal import JournalEntry, entry_id
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.locks import Lock, lock_id
from cloudsched.engine.ports.page_tokens import make_token, read_token, readable
from cloudsched.engine.ports.store import Page, Stored, StoredLock, TaskQuery, Version
from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cloudsched.adapters.google import channel as google_calls
    from cloudsched.engine.ports.store import Folded

D = TypeVar("D", bound=Document)

DEADLINE = timedelta(seconds=10)
"""How long a call may take, with its repetitions."""

_COMMIT_ID = "commitId"
_OFFER_WRITTEN_AT = "offerWrittenAt"
_Write: google_calls.Message = proto.Write.pb()
_REQUEST_TIME = proto.DocumentTransform.FieldTransform.ServerValue.REQUEST_TIME

_SEGMENT = re.compile(r"(?!\.{1,2}$)(?!__.*__$)[^/]+", re.DOTALL)
_LONGEST = 1500
"""How many bytes an id, or a value that is looked for, may have."""

_PURGE_SIZE = 300
"""How many documents are removed at once."""
_MOST_STEPS = 10_000
"""More than a journal may have."""


class FirestoreStore:
    """A `Store` in a Firestore database."""

    def __init__(
        self,
        *,
        project: str,
        database: str = "(default)",
        emulator: str | None = None,
        deadline: timedelta = DEADLINE,
    ) -> None:
        """Open a channel to the database; nothing is sent before the first call.

        Args:
            project: The Google Cloud project.
            database: The database's id.
            emulator: ``host:port`` of Google's Firestore emulator; None for the service itself.
            deadline: How long a call may take, with its repetitions.

        Raises:
            Misconfigured: There are no credentials.
        """
        path = f"projects/{project}/databases/{database}"
        self._documents = f"{path}/documents"
        self._calls = Calls(path, emulator, deadline)

    def load(self, task_id: str) -> Stored | None:
        """Return the task as it is now, or None. One document is read."""
        found = self._get("tasks", task_id)
        return None if found is None else _stored(found)

    def commit(
        self,
        task: Task,
        expect: Version | None,
        executions: Sequence[Execution] = (),
        messages: Sequence[Message] = (),
        lock: StoredLock | None = None,
        *,
        entries: Sequence[JournalEntry] = (),
        folded: Sequence[Folded] = (),
    ) -> Version:
        """Write a task, its records and a lock in one commit, if task and lock still have the expected versions.

        A commit whose answer was lost is made again, and then conflicts with itself: the caller reads what is there
        and decides again, as after any other conflict.
        """
        writes = [self._expecting(self._write(task, "tasks", task.id), expect)]
        if task.offer is not None:
            writes[0].update_transforms.add(field_path=_OFFER_WRITTEN_AT, set_to_server_value=_REQUEST_TIME)
        writes += (self._write(e, "tasks", task.id, "executions", e.id) for e in executions)
        writes += (self._write(m, "inboxes", m.owner, "messages", m.id) for m in messages)
        if lock is not None:
            writes += self._lock_writes(lock)
        for each in folded:
            steps = f"{self._documents}/tasks/{task.id}/executions/{each.execution_id}/steps"
            writes += (_Write(delete=f"{steps}/{entry_id(number)}") for number in range(1, each.size + 1))
        writes += (self._write(e, "tasks", task.id, "executions", e.execution_id, "steps", e.id) for e in entries)
        answer = self._calls.commit(writes)
        if answer is None:
            raise VersionConflict(f"task {task.id}")
        return _version(answer.write_results[0].update_time)

    def load_lock(self, key: str) -> StoredLock:
        """Return the lock of a key as it is now; an empty one if there is none. One document is read."""
        found = self._get("locks", lock_id(key))
        if found is None:
            return StoredLock(Lock(key=key), None)
        return StoredLock(_read(Lock, found), _version(found.update_time))

    def commit_lock(self, lock: StoredLock) -> None:
        """Write a lock alone, if it still has the version that it was read at."""
        writes = self._lock_writes(lock)
        if writes and self._calls.commit(writes) is None:
            raise VersionConflict(f"lock {lock.lock.key}")

    def journal(self, task_id: str, execution_id: str) -> Sequence[JournalEntry]:
        """Return the journal of an open execution, whole."""
        name = self._name("tasks", task_id, "executions", execution_id)
        found = [] if name is None else self._calls.query(name, STEPS.query(_MOST_STEPS, name))
        return [_read(JournalEntry, each) for each in found]

    def purge(self, task_id: str) -> None:
        """Remove a deleted task's executions and journals, some at a time, then the task.

        Each commit expects the task as it was read. So the first one after somebody has changed it, or made it again,
        removes nothing, and is the last; whoever asks again goes on.
        """
        name = self._name("tasks", task_id)
        if name is None:
            return
        stored = self.load(task_id)
        if stored is not None and stored.task.deleted_at is None:
            return
        version = None if stored is None else stored.version
        for names in self._below(name, stored):
            writes = [_unchanged(name, version), *(_Write(delete=each) for each in names)]
            if self._calls.commit(writes) is None:
                return
        if stored is not None:
            self._calls.commit([self._expecting(_Write(delete=name), version)])

    def _below(self, name: str, stored: Stored | None) -> Iterator[list[str]]:
        """Yield the names of what lies below a task, some at a time; those of its records until none is left."""
        for run in stored.task.runs if stored else ():
            steps = f"{name}/executions/{run.execution_id}/steps"
            numbers = range(1, run.steps + 1)
            for begin in range(0, run.steps, _PURGE_SIZE):
                yield [f"{steps}/{entry_id(number)}" for number in numbers[begin : begin + _PURGE_SIZE]]
        some = names_only(EXECUTIONS.query(_PURGE_SIZE, name))
        while found := self._calls.query(name, some):
            yield [each.name for each in found]

    def expire(self, now: datetime) -> int:  # noqa: ARG002 - the port's
        """Leave it to the TTL policies of ``infra/firestore.ttl.json``."""
        return 0

    def tasks(self, query: TaskQuery, *, limit: int, page_token: str | None = None) -> Page[Task]:
        """Return a page of the tasks that fit."""
        listing = listing_of_tasks(query)
        longest = max((len(str(value).encode()) for value in (listing.equals or {}).values()), default=0)
        parent = self._documents if longest <= _LONGEST else None
        return self._page(Task, parent, listing, query, limit, page_token)

    def due(self, before: datetime, *, limit: int, page_token: str | None = None) -> Page[Task]:
        """Return a page of the tasks whose `wake_at` is not later than `before`, the earliest first."""
        return self._page(Task, self._documents, listing_of_due(before), "due", limit, page_token)

    def offered(
        self, lanes: Sequence[str], owner: str | None = None, *, limit: int, after: tuple[str, str] | None = None
    ) -> Sequence[Stored]:
        """Return tasks with an offer in one of the lanes, in its order."""
        listing, found = listing_of_offers(lanes, owner), list[Stored]()
        while len(found) < limit:  # what cannot be read is passed over, and hides nothing behind it
            wanted = limit - len(found)
            part = list(self._calls.query(self._documents, listing.query(wanted, self._documents, after)))
            found += readable((each.name, partial(_stored, each)) for each in part)
            if len(part) < wanted:
                break
            key, data = _row(part[-1])
            after = data["offer"]["order"], key
        return found

    def next_wake(self) -> datetime | None:
        """Return the earliest `wake_at` of all tasks, or None if nothing is waited for. Reads one."""
        found = self._calls.query(self._documents, WAKING.query(1, self._documents))
        return _read(Task, found[0]).wake_at if found else None

    def execution(self, task_id: str, execution_id: str) -> Execution | None:
        """Return one execution's record, or None."""
        found = self._get("tasks", task_id, "executions", execution_id)
        return None if found is None else _read(Execution, found)

    def executions(self, task_id: str, *, limit: int, page_token: str | None = None) -> Page[Execution]:
        """Return a page of a task's executions, the latest first."""
        parent = self._name("tasks", task_id)
        return self._page(Execution, parent, EXECUTIONS, ("executions", task_id), limit, page_token)

    def inbox(self, owner: str, *, limit: int, page_token: str | None = None) -> Page[Message]:
        """Return a page of an owner's messages, the newest first."""
        parent = self._name("inboxes", owner)
        return self._page(Message, parent, MESSAGES, ("inbox", owner), limit, page_token)

    def check(self) -> datetime:
        """Ask for documents that are not there; return what time it is at Firestore."""
        return self._calls.time(self._documents)

    def close(self) -> None:
        """Close the channel."""
        self._calls.close()

    def _name(self, *path: str) -> str | None:
        """Return a document's full name, or None if Firestore has no such names.

        Source: firebase.google.com/docs/firestore/quotas, constraints on document ids.
        """
        if not all(_SEGMENT.fullmatch(segment) and len(segment.encode()) <= _LONGEST for segment in path):
            return None
        return "/".join((self._documents, *path))

    def _get(self, *path: str) -> google_calls.Message | None:
        name = self._name(*path)
        return None if name is None else self._calls.get(name)

    def _write(self, document: Document, *path: str) -> google_calls.Message:
        write = _Write()
        write.update.name = "/".join((self._documents, *path))
        fill(write.update.fields, document.to_stored())
        return write

    def _lock_writes(self, lock: StoredLock) -> list[google_calls.Message]:
        path = "locks", lock_id(lock.lock.key)
        if not lock.lock.is_empty:
            return [self._expecting(self._write(lock.lock, *path), lock.version)]
        if lock.version is None:
            return []  # there is none, and there will be none
        return [self._expecting(_Write(delete="/".join((self._documents, *path))), lock.version)]

    @staticmethod
    def _expecting(write: google_calls.Message, version: Version | None) -> google_calls.Message:
        if write.HasField("update"):
            write.update.fields[_COMMIT_ID].string_value = secrets.token_hex(8)
        if version is None:
            write.current_document.exists = False
        else:
            write.current_document.update_time.FromNanoseconds(version.value)
        return write

    def _page(
        self, kind: type[D], parent: str | None, listing: Listing, query: object, limit: int, page_token: str | None
    ) -> Page[D]:
        after = read_token(query, page_token) if page_token else None
        if parent is None:
            return Page(())
        rows: list[tuple[str, dict[str, Any]]] = []
        while True:
            wanted = limit + 1 - len(rows)
            part = [_row(each) for each in self._calls.query(parent, listing.query(wanted, parent, after))]
            rows += [(key, data) for key, data in part if listing.without not in data]
            if len(rows) > limit or len(part) < wanted:
                break
            key, data = part[-1]
            after = data[listing.order], key
        documents = [(key, partial(kind.from_stored, key, data)) for key, data in rows[:limit]]
        items = readable(documents) if listing.passes_over else [read() for _, read in documents]
        if len(rows) <= limit:
            return Page(items)
        key, data = rows[limit - 1]
        return Page(items, make_token(query, data[listing.order], key))


def _row(found: google_calls.Message) -> tuple[str, dict[str, Any]]:
    data = decode(found.fields)
    data.pop(_COMMIT_ID, None)
    data.pop(_OFFER_WRITTEN_AT, None)
    return found.name.rpartition("/")[2], data


def _read(kind: type[D], found: google_calls.Message) -> D:
    return kind.from_stored(*_row(found))


def _stored(found: google_calls.Message) -> Stored:
    return Stored(_read(Task, found), _version(found.update_time))


def _unchanged(name: str, version: Version | None) -> google_calls.Message:
    """Return a write that changes nothing, and lets its commit fail if the document is not as it was read.

    An empty mask names no field to be written, and leaves the ``update_time`` as it is.
    """
    if version is None:
        write = _Write(delete=name)
        write.current_document.exists = False
        return write
    write = _Write()
    write.update.name = name
    write.update_mask.SetInParent()
    write.current_document.update_time.FromNanoseconds(version.value)
    return write


def _version(update_time: google_calls.Message) -> Version:
    return Version(update_time.ToNanoseconds())
