"""Work with a caller's own google-cloud-firestore: its commits write tasks too, and it reads tasks live.

The caller's library sends the commit, so nothing of it is decided here: a transaction that Firestore aborts
is tried again by the library, with the caller's function and what it calls here. What follows a commit, such
as the dispatch of a new task, waits for it. Only a commit whose answer came counts. After any other, and
after a crash, the sweep finds what was stored.

A task's write keeps the precondition that it has not changed since it was read. It is not read with the
transaction's id: then Firestore would hold it until the commit, against the run that is to renew its lease or
to end. If such a precondition fails in a transaction, the library is told what it is told of any contention,
and tries again.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary, WeakSet, ref

from google.api_core.exceptions import Aborted, FailedPrecondition, GoogleAPICallError
from google.cloud.firestore import AsyncTransaction, AsyncWriteBatch, Transaction, WriteBatch
from google.cloud.firestore_v1.types import Write

from cloudsched.adapters.firestore import protos as messages
from cloudsched.adapters.firestore.list_fields import drop_list_fields, unhide
from cloudsched.config.settings import Settings
from cloudsched.domain.documents.task import Task
from cloudsched.domain.own_logger import own_logger
from cloudsched.errors import CloudschedError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from google.cloud.firestore import AsyncClient, Client, DocumentSnapshot, Watch

    from cloudsched.adapters.firestore.rpc import FirestoreRpc
    from cloudsched.adapters.firestore.store import FirestoreStore
    from cloudsched.adapters.google.channel import Message
    from cloudsched.domain.transitions.commit import Commit, VersionedTask

log: Final = own_logger(__name__)
_FIELD: Final = "transaction"
_KINDS: Final = "Give a Transaction, an AsyncTransaction, a WriteBatch or an AsyncWriteBatch of google.cloud.firestore."


class Joins:
    """The transactions and batches that a store has joined, each with its present attempt."""

    def __init__(self, store: FirestoreStore) -> None:
        self._store = store
        self._found: WeakKeyDictionary[WriteBatch | AsyncWriteBatch, FirestoreJoinedStore] = WeakKeyDictionary()
        self._watched: WeakSet[WriteBatch | AsyncWriteBatch] = WeakSet()

    def join(self, group: object) -> FirestoreJoinedStore:
        """Return the store of the present attempt of a transaction or batch.

        Raises InvalidInput if it has none.
        """
        if not isinstance(group, WriteBatch | AsyncWriteBatch):
            raise InvalidInput(_FIELD, f"is a {type(group).__name__}", _KINDS)
        attempt = b""
        if isinstance(group, Transaction | AsyncTransaction):
            attempt = group.id
        if attempt is None:
            hint = "Call this in the function that @firestore.transactional runs, with the transaction that it gets."
            raise InvalidInput(_FIELD, "has not begun, or is over", hint)
        joined = self._found.get(group)
        if group not in self._watched:  # it may be used again
            self._watched.add(group)
            self._watch(group)
        if joined is None or joined.attempt != attempt:
            joined = self._found[group] = FirestoreJoinedStore(self._store, group, attempt)
        return joined

    def _watch(self, group: WriteBatch | AsyncWriteBatch) -> None:
        """Do what follows a commit once the library's own method has returned.

        The library has no callback for it.
        """
        name = "commit"
        if isinstance(group, Transaction | AsyncTransaction):
            name = "_commit"
        commit: Callable[..., Any] = getattr(group, name)

        def take() -> FirestoreJoinedStore | None:
            joined = self._found.get(group)
            if joined is not None and joined.is_present:
                return joined
            return None

        if inspect.iscoroutinefunction(commit):

            async def commit_and_await(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - the library's
                joined = take()
                try:
                    answer = await commit(*arguments, **named)
                except FailedPrecondition as error:
                    raise await asyncio.to_thread(_to_contention, error, joined) from error
                self._found.pop(group, None)
                await asyncio.to_thread(_follow, joined)
                return answer

            setattr(group, name, commit_and_await)
            return

        def commit_and_follow(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - the library's
            joined = take()
            try:
                answer = commit(*arguments, **named)
            except FailedPrecondition as error:
                raise _to_contention(error, joined) from error
            self._found.pop(group, None)
            _follow(joined)
            return answer

        setattr(group, name, commit_and_follow)


def _follow(joined: FirestoreJoinedStore | None) -> None:
    if joined is not None:
        joined.follow()


def _to_contention(error: GoogleAPICallError, joined: FirestoreJoinedStore | None) -> GoogleAPICallError:
    """Return a commit's error as a conflict that the library retries, if a task in it has changed meanwhile."""
    if joined is None or not joined.attempt or not joined.has_conflict():
        return error
    return Aborted(f"A task has changed meanwhile: {error.message}")  # type: ignore[no-untyped-call]


class FirestoreJoinedStore:
    """The store of one attempt: what is committed to it is written by the caller's commit, or not at all."""

    def __init__(self, store: FirestoreStore, group: Any, attempt: bytes) -> None:  # noqa: ANN401 - see `Joins`
        self._store = store.over(self._wrap)
        self.attempt = attempt
        self._group = ref(group)  # an aborted one must not stay for as long as the app
        self._read: dict[str, VersionedTask | None] = {}
        self._written: dict[str, VersionedTask] = {}
        self._then: list[Callable[[], object]] = []
        self._lock = RLock()
        self._changing: list[Message] | None = None
        """The writes of a change in progress, whose last check may still refuse it."""
        self.held: set[str] = set()
        """The documents that the commit has written before: it is certain of their state."""

        database = group._client._database_string  # noqa: SLF001 - it has no other name
        if database != self.database:
            hint = "One commit cannot write two databases. Use a client of the same project and database."
            raise InvalidInput(_FIELD, f"is of {database}, and tasks are in {self.database}", hint)

    def _wrap(self, rpc: FirestoreRpc) -> FirestoreRpc:
        self.database: str = rpc.database
        self._prefix = rpc.prefix
        return cast("FirestoreRpc", _JoinedRpc(rpc, self))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what else a change asks, such as for an owner's record
        return getattr(self._store, name)

    @property
    def is_present(self) -> bool:
        """Return whether the attempt has not been aborted."""
        group = self._group()
        return group is not None and bool(getattr(group, "id", b"") == self.attempt)

    def later(self, do: Callable[[], object]) -> None:
        """Do something once the commit has taken effect."""
        self._then.append(do)

    def follow(self) -> None:
        """Do what follows the commit. It raises nothing, since the caller's commit has taken effect."""
        for do in self._then:
            try:
                do()
            except CloudschedError as error:
                log.warning("deferred: %s", error, extra={"action": "deferred"})
            except Exception:
                log.exception(
                    "What follows a commit failed; the sweep sends what is due",
                    extra={"action": "deferred"},
                )

    def load(self, task_id: str) -> VersionedTask | None:
        """Return the task as this attempt has left it, or as it is."""
        if (written := self._written.get(task_id)) is not None:
            return written
        self._read[task_id] = found = self._store.load(task_id)
        return found

    def has_conflict(self) -> bool:
        """Return whether a task that the attempt writes is not as it was read."""
        written = self._read.keys() & self._written.keys()
        return any(self._store.load(task_id) != self._read[task_id] for task_id in written)

    def commit(self, commit: Commit) -> VersionedTask:
        """Write one task by the caller's commit.

        Raises InvalidInput if more than that belongs to the change.
        """
        more = commit.others, commit.messages, commit.unchanged
        if commit.linked is not None or any(more) or commit.delivered is not None:
            why = "it changes a lock, a quota, an inbox or another task as well"
            raise InvalidInput(
                _FIELD,
                f"cannot carry this change: {why}",
                "Make it on its own, before or after.",
            )
        committed = self._written[commit.task.id] = self._store.commit(commit)
        return committed

    @contextmanager
    def change(self) -> Iterator[None]:
        """Apply a change as a whole: if it is refused, the caller's commit contains nothing of it."""
        with self._lock:  # coroutines may make several changes at once
            if self._changing is not None:  # a part of a change
                yield
                return
            written = dict(self._written)
            then = list(self._then)
            self._changing = []
            try:
                yield
                self._add(self._changing)
            except BaseException:
                self._written = written
                self._then = then
                raise
            finally:
                self._changing = None

    def write(self, writes: Sequence[Message]) -> None:
        """Write with the change in progress."""
        assert self._changing is not None  # noqa: S101 - whatever writes is a change
        self._changing += writes

    def _add(self, writes: Sequence[Message]) -> None:
        """Add writes to the caller's."""
        group = self._group()
        if group is None or not self.is_present:
            raise InvalidInput(
                _FIELD,
                "is over, or in another attempt",
                "Call `app.joining` in each attempt.",
            )
        for write in writes:
            name = write.update.name or write.delete
            if name in self.held:
                write.ClearField("current_document")
            self.held.add(name)
            self._prefix.add_to_write(write)
        # Its public methods take documents, not writes as they are sent.
        group._add_write_pbs([Write.deserialize(each.SerializeToString()) for each in writes])  # noqa: SLF001


class _JoinedRpc:
    """The calls of an attempt: the commit is the caller's."""

    def __init__(self, rpc: FirestoreRpc, store: FirestoreJoinedStore) -> None:
        self._rpc = rpc
        self._store = store

    def commit(self, writes: Sequence[Message]) -> Message:
        self._store.write(writes)
        return messages.CommitResponse(write_results=[{} for _ in writes])

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what a change asks beside, such as for its records
        return getattr(self._rpc, name)


class TaskReference:
    """A task's document, as your own client of Firestore reads it.

    Attributes:
        document: The client's own reference: `get` it in a transaction of yours, say, and read that with
            `to_task`.
    """

    def __init__(self, client: Client | AsyncClient, task_id: str, *, prefix: str | None = None) -> None:
        """Read the prefix of collections from the environment, as an app does, if none is given."""
        if prefix is None:
            text = Settings.from_environment().collection_prefix
        else:
            text = prefix
        self.document: Final = client.collection(f"{text}tasks").document(task_id)

    def get(self) -> Task | None:
        """Return the task as it is now, None if there is none. One read. Not for an AsyncClient."""
        return self.to_task(cast("DocumentSnapshot[Any]", self.document.get()))

    def on_snapshot(self, show: Callable[[Task | None], None]) -> Watch:
        """Call a function in another thread with the task as it is now, and whenever it changes.

        None: it is gone.

        Returns what ends that: `unsubscribe`. Not for an AsyncClient, whose library has no listeners.
        """
        return self.document.on_snapshot(lambda found, *_: show(self.to_task(found[0]) if found else None))

    @staticmethod
    def to_task(snapshot: DocumentSnapshot[Any]) -> Task | None:
        """Return the task of a snapshot. None if it has none, or one that is being deleted."""
        data = snapshot.to_dict()
        if data is None:
            return None
        task = Task.from_stored(snapshot.id, drop_list_fields(unhide(_to_stored(data))))
        return None if task.deleted_at is not None else task


def _to_stored(value: Any) -> Any:  # noqa: ANN401 - what Firestore can hold
    """Return a value of a snapshot as it was stored: a list in a list is bytes in Firestore."""
    match value:
        case dict():
            return {key: _to_stored(each) for key, each in value.items()}
        case list():
            return [_to_stored(each) for each in value]
        case bytes():
            return json.loads(value)
        case datetime():
            return datetime.fromtimestamp(0, UTC) + (value - datetime.fromtimestamp(0, UTC))
        case _:
            return value
