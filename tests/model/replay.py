"""The code that runs, one call of a port at a time.

A process is an entry of the engine (a delivery, a sweep, a request) with the answers that its calls have got so far. To
find its next call it is run from its beginning with these answers, and stopped there: nothing but the answers and the
clock decides what it does. So where a process stands is a value, it can be left at any call for ever (a crash), and
each answer that a port may give is tried. What was found is kept, by entry and answers: most steps of an exploration
run no engine code at all.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Never, cast

from pydantic import BaseModel
from tests.model.broken import Broken
from tests.model.values import Call, Values, Writes, to_instant, to_seconds

from cloudsched import App, Context, Execution, Settings, Task
from cloudsched.config.access import Access
from cloudsched.domain.documents.journal import JournalEntry
from cloudsched.domain.documents.record import Record
from cloudsched.domain.transitions.commit import Commit, Version, VersionedTask
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.ports.records import VersionedRecord
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.ports.sender import OutgoingMessage, Recipient
from cloudsched.engine.storage.pages import MAX_PAGE_BYTES, Page
from cloudsched.errors import CloudschedError, QueueUnavailable, StoreUnavailable, VersionConflict
from cloudsched.features.locks.lock import Lock, VersionedLock, Waiter
from cloudsched.features.pull.fields import OfferEntry
from cloudsched.features.pull.offers import build_offer_entry

Answer = Any
"""What a port answers, as a small value: the number of a document, or the name of an error."""
UNAVAILABLE: Final = "unavailable"
CONFLICT: Final = "conflict"
SECRET: Final = "the-secret-of-this-world-0123456789"  # noqa: S105 - it guards nothing but this test
LEASE_TOKEN: Final = 16
"""How many bytes of chance a lease token has."""
MOST_TOKENS: Final = 8
"""How many processes may hold leases at once; each may draw more tokens, numbered in steps of this."""
MOST_DRAWS: Final = 16
"""How many each may draw: a worker draws one for each try."""
NO_CLOCK: Final = -1
"""The time of a process that has not looked at the clock since its last answer."""


class Stopped(BaseException):
    """The process has no answer to its next call. No handler catches it."""


@dataclass(frozen=True)
class Entry:
    """Where a process begins."""

    name: str
    """What it does, for stories."""
    kind: str
    """``deliver``, ``sweep``, ``worker`` or ``client``."""
    work: Callable[[], object] = field(compare=False)
    message: int = -1
    """The dispatch that it was given."""
    token: int = 0
    """The number of the lease token that it draws."""
    revision: int | None = None
    """The task's revision in its dispatch."""


class Node:
    """Where a process stands: its entry, and the answers that it has got, each with the time that it then saw."""

    __slots__ = ("_children", "_ends", "answer", "entry", "number", "parent", "time")

    def __init__(self, number: int, entry: Entry, parent: Node | None, time: int, answer: Answer) -> None:
        self.number = number
        self.entry = entry
        self.parent = parent
        self.time = time
        self.answer = answer
        self._children: dict[tuple[int, Answer], Node] = {}
        self._ends: dict[int, Step] = {}


@dataclass(frozen=True)
class Step:
    call: int
    """The number of its call; -1 if it has ended."""
    reads_clock: bool
    """Whether it has looked at the clock before that."""
    result: Any = None
    """What its entry has returned or raised, if it has ended."""


class FixedChance(random.Random):
    """No chance: each random part of a wait is nothing, and each name is another one."""

    def __init__(self, processes: Processes) -> None:
        super().__init__(0)
        self._processes = processes

    def random(self) -> float:
        return 0.0

    def getrandbits(self, k: int, /) -> int:
        del k
        return int(self._processes.draw_token(0), 16)


class Processes:
    """All processes that were met, and the app that they run."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.nodes: list[Node] = []
        self.calls: list[Call] = []
        self.messages: list[QueueMessage] = []
        self._roots: dict[Entry, Node] = {}
        self._call_ids: dict[tuple[str, tuple[Any, ...]], int] = {}
        self._message_ids: dict[str, int] = {}
        self._times: list[int] = []
        self._answers: list[tuple[str, Answer]] = []
        self._position = 0
        self._reads_clock = False
        self._stopped_at: Call | None = None
        self._entry: Entry | None = None
        self._drawn = 0
        self.runs = 0
        """How often an entry was run from its beginning."""
        self.app = self._make_app()
        self.other_app = self._make_app()
        """Another version of the code, which has no handlers."""

    def _make_app(self) -> App:
        return App(
            Settings(secret=SECRET, executor_url="http://executor", access=Access(open=True)),
            store=ValueStore(self),
            dispatcher=ValueQueue(self),
            clock=ValueClock(self),
            chance=FixedChance(self),
            monotonic=lambda: 0.0,
        )

    # ── Where processes stand ────────────────────────────────────────────────────────────────────────────────────

    def begin(self, entry: Entry) -> Node:
        known = self._roots.get(entry)
        if known is None:
            known = self._roots[entry] = self._add(entry, None, NO_CLOCK, None)
        return known

    def answer(self, node: Node, time: int, answer: Answer) -> Node:
        """Return where a process stands that got an answer to its next call."""
        known = node._children.get((time, answer))  # noqa: SLF001 - its own
        if known is None:
            known = node._children[time, answer] = self._add(node.entry, node, time, answer)  # noqa: SLF001 - the same
        return known

    def _add(self, entry: Entry, parent: Node | None, time: int, answer: Answer) -> Node:
        node = Node(len(self.nodes), entry, parent, time, answer)
        self.nodes.append(node)
        return node

    def next_step(self, node: Node, time: int) -> Step:
        """Return what a process does next that looks at the clock at that time."""
        known = node._ends.get(NO_CLOCK) or node._ends.get(time)  # noqa: SLF001 - its own
        if known is None:
            known = self._run(node, time)
            node._ends[time if known.reads_clock else NO_CLOCK] = known  # noqa: SLF001 - the same
        return known

    def _run(self, node: Node, time: int) -> Step:
        times, answers, each = [time], list[tuple[str, Answer]](), node
        while each.parent is not None:
            times.append(each.time)
            call = self.calls[self.next_step(each.parent, each.time).call]
            answers.append((call.kind, each.answer))
            each = each.parent
        self._times, self._answers = times[::-1], answers[::-1]
        for app in (self.app, self.other_app):
            for name in ("many_tasks", "usage_limit"):  # what a process remembers of what owners use
                vars(app.container).pop(name, None)
        self._position, self._reads_clock, self._stopped_at, self._drawn = 0, False, None, 0
        self._entry = node.entry
        self.runs += 1
        result: object = None
        try:
            result = node.entry.work()
        except Stopped:
            pass
        except Broken:
            raise
        except CloudschedError as error:
            result = error
        except Exception as error:  # the rule is that there is none
            raise Broken(f"an unexpected error: {type(error).__name__}: {error}") from error
        stopped = self._stopped_at
        if stopped is not None:
            return Step(self.keep_call(stopped), self._reads_clock)
        return Step(-1, self._reads_clock, result)

    def keep_call(self, call: Call) -> int:
        key = call.kind, call.key
        known = self._call_ids.get(key)
        if known is None:
            known = self._call_ids[key] = len(self.calls)
            self.calls.append(call)
        return known

    def keep_message(self, message: QueueMessage) -> int:
        """Return the number of a message; those of one name are one."""
        known = self._message_ids.get(message.name)
        if known is None:
            known = self._message_ids[message.name] = len(self.messages)
            self.messages.append(message)
        return known

    # ── What the running process asks ────────────────────────────────────────────────────────────────────────────

    def now(self) -> datetime:
        if self._position == len(self._answers):
            self._reads_clock = True
        return to_instant(self._times[self._position])

    def ask(self, kind: str, make: Callable[[], Call]) -> Answer:
        if self._stopped_at is not None:
            raise Stopped
        if self._position == len(self._answers):
            self._stopped_at = make()
            raise Stopped
        asked, answer = self._answers[self._position]
        if asked != kind:
            raise Broken(f"the code does not repeat itself: it asks for {kind}, and asked for {asked} before")
        self._position += 1
        if answer == UNAVAILABLE:
            if kind == "send":
                raise QueueUnavailable("The queue", "it does not answer")
            raise StoreUnavailable("The store", "it does not answer")
        if answer == CONFLICT:
            raise VersionConflict("a document")
        return answer

    def read(self, kind: str, *key: Any) -> Answer:
        return self.ask(kind, lambda: Call(kind, key))

    def commit(self, make: Callable[[], Writes]) -> Answer:
        """Ask to write; the answer is the number of the first document."""

        def call() -> Call:
            writes = make()
            return Call("commit", (writes.checks, writes.documents, writes.required, writes.emptied), writes)

        return self.ask("commit", call)

    def draw_token(self, size: int) -> str:
        """Return what the running process draws in place of chance."""
        assert self._entry is not None
        self._drawn += 1
        if size == LEASE_TOKEN:
            return self.values.token(self._entry.token + MOST_TOKENS * (self._drawn - 1))
        return f"{self._entry.token:04x}{self._drawn:04x}"

    @contextmanager
    def without_chance(self) -> Iterator[None]:
        """Let processes draw what their entries say, for the block."""
        before = secrets.token_hex, secrets.token_urlsafe
        secrets.token_hex = lambda nbytes=None: self.draw_token(nbytes or 32)
        secrets.token_urlsafe = lambda nbytes=None: self.draw_token(nbytes or 32)
        try:
            yield
        finally:
            secrets.token_hex, secrets.token_urlsafe = before


def handle(processes: Processes, ctx: Context) -> str:
    """Be the handler of a run: return how it ends, as the world chooses; heartbeats come first."""
    begins = True
    while True:
        until = to_seconds(ctx._lease_until)  # noqa: SLF001 - a rule needs it
        lock_key = ctx.task.scoped_lock_key
        choice = processes.read("handler", ctx.task.id, ctx.execution_id, ctx.attempt, until, lock_key, begins)
        if choice != "heartbeat":
            return str(choice)
        ctx.heartbeat()
        begins = False


def perform(processes: Processes, ctx: Context, name: str) -> str:
    """Be a step of a durable handler: return how it ends, as the world chooses."""
    until = to_seconds(ctx._lease_until)  # noqa: SLF001 - a rule needs it
    known, begins = (ctx.task.id, ctx.execution_id, ctx.attempt, until, ctx.task.scoped_lock_key), False
    return str(processes.read("handler", *known, begins, name))


class SentNote(BaseModel):
    """What a receiver has taken."""

    name: str


class ValueSender:
    """A sender of messages: what it has taken is a value of the world."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:
        del recipient
        name = f"<{message.id}@example>"
        keep = self._processes.values.keep
        self._processes.commit(lambda: Writes((), ((f"sent/{name}", keep(SentNote(name=name))),), ()))
        return name


class ValueClock:
    """The clock of the running process."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def now(self) -> datetime:
        return self._processes.now()


class ValueQueue:
    """A queue that takes every message to the world."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def create(self, message: QueueMessage) -> None:
        self._processes.ask("send", lambda: Call("send", (self._processes.keep_message(message),)))

    def close(self) -> None:
        """Do nothing."""


def _of_task(task_id: str) -> str:
    return f"task/{task_id}"


class _Values:
    """Reads and writes documents as values of the world. A version is the number of a document."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def _read(self, kind: str, *key: Any) -> Any:  # noqa: ANN401 - a number
        return self._processes.read(kind, *key)

    def _document(self, number: int | None) -> Any:  # noqa: ANN401 - a document
        return None if number is None else self._processes.values.documents[number]


class ValueLocks(_Values):
    """A `LockStore` of values."""

    def load(self, key: str) -> VersionedLock:
        number = self._read("load_lock", f"lock/{key}")
        return VersionedLock(Lock(key=key) if number is None else self._document(number), _version(number))

    def list_waiters(
        self, key: str, *, limit: int, task_ids: Sequence[str] | None = None, worker_group: str | None = None
    ) -> Sequence[Waiter]:
        wanted = None if task_ids is None else tuple(task_ids)
        found = self._read("list_waiters", f"waiter/{key}/", limit, wanted, worker_group)
        return [self._document(number) for number in found]

    def commit(self, lock: VersionedLock) -> None:
        self._processes.commit(lambda: self.lower(lock))

    def lower(self, lock: VersionedLock) -> Writes:
        key, keep = lock.lock.key, self._processes.values.keep
        checks = ((f"lock/{key}", _number_or_none(lock.version)),)
        documents = list[tuple[str, int | None]]()
        if lock.is_document_changed or lock.version is None:
            documents.append((f"lock/{key}", None if lock.new_document.is_empty else keep(lock.new_document)))
        documents += [(f"waiter/{key}/{each.entry_id}", None) for each in lock.left]
        documents += [(f"waiter/{key}/{each.entry_id}", keep(each)) for each in lock.entered]
        return Writes(checks, tuple(documents), ())

    def list_all(self, **_: object) -> Never:
        raise AssertionError("no world lists locks")


class ValueSweep(_Values):
    """A `SweepStore` of values."""

    def list_due(
        self,
        before: datetime,
        *,
        since: datetime | None = None,
        shard: int | None = None,
        is_removal: bool = False,
        limit: int,
        page_token: str | None = None,
    ) -> Page[Task]:
        del since, limit, page_token
        if is_removal:  # in these worlds everything is kept
            return Page(())
        found = self._read("list_due", before, shard)
        return Page([self._document(number) for number in found])

    def remove(self, *_: object) -> Never:
        raise AssertionError("in these worlds everything is kept")

    def count_shards(self) -> int:
        return 1

    def next_wakeup(self) -> datetime | None:
        raise AssertionError("no world asks for it")

    def purge(self, task_id: str) -> None:
        self._read("purge", _of_task(task_id))

    def expire(self, now: datetime) -> int:
        del now
        return 0


class ValueStore(_Values):
    """A `Store` of values. A version is the number of a document: what is equal may be overwritten alike."""

    def __init__(self, processes: Processes) -> None:
        super().__init__(processes)
        self.records = ValueRecords(processes)
        self.locks = ValueLocks(processes)
        self.sweep = ValueSweep(processes)

    @property
    def inbox(self) -> Never:
        raise AssertionError("no world has readers of messages")

    @property
    def search(self) -> Never:
        raise AssertionError("no world searches")

    def _versioned(self, number: int) -> VersionedTask:
        return VersionedTask(self._document(number), Version(number))

    def make_id(self, at: datetime) -> None:
        """Return None: all that it creates have ids."""

    def load(self, task_id: str) -> VersionedTask | None:
        number = self._read("load", _of_task(task_id))
        return None if number is None else self._versioned(number)

    def recall(self, task_id: str) -> VersionedTask | None:  # noqa: ARG002 - the same
        """Return None: a process that decides by what it knows is one that stood still after it had read that."""
        return None

    def load_many(self, task_ids: Sequence[str]) -> Sequence[VersionedTask]:
        found = self._read("load_many", *map(_of_task, task_ids))
        return [self._versioned(number) for number in found if number is not None]

    def commit(self, commit: Commit) -> VersionedTask:
        return self._versioned(self._processes.commit(lambda: self._lower(commit)))

    def _lower(self, commit: Commit) -> Writes:
        keep = self._processes.values.keep
        checks, documents = list[tuple[str, int | None]](), list[tuple[str, int | None]]()
        tasks = (commit, *commit.others)
        for each in tasks:
            checks.append((_of_task(each.task.id), None if each.base is None else _number(each.base.version)))
            documents.append((_of_task(each.task.id), keep(each.task)))
            documents += [(f"record/{each.task.id}/{one.id}", keep(one)) for one in each.executions]
        documents += [(f"message/{one.id}", keep(one)) for one in commit.messages]
        documents += [(_of_entry(commit.task.id, one), keep(one)) for one in commit.entries]
        required: list[tuple[str, tuple[str, Any]]] = [
            (f"record/{w.task.id}/{w.kept_record}", ("expire_at", None)) for w in tasks if w.kept_record
        ]
        checks += [(_of_task(one.task.id), _number(one.version)) for one in commit.unchanged]
        if commit.delivered is not None:
            key = f"record/{commit.delivered.task_id}/{commit.delivered.execution_id}"
            required.append((key, ("is_delivered", True)))
        if commit.linked is not None:
            lowered = self.locks.lower(cast("VersionedLock", commit.linked))
            checks, documents = [*checks, *lowered.checks], [*documents, *lowered.documents]
        emptied = tuple(f"step/{commit.task.id}/{one.execution_id}/" for one in commit.archived)
        return Writes(tuple(checks), tuple(documents), tasks, tuple(required), emptied)

    def load_journal(self, task_id: str, execution_id: str) -> Sequence[JournalEntry]:
        found = self._read("list", f"step/{task_id}/{execution_id}/")
        return [self._document(number) for number in found]

    def list_tasks(
        self, query: TaskQuery, *, limit: int, page_token: str | None = None, max_bytes: int = MAX_PAGE_BYTES
    ) -> Page[Task]:
        del max_bytes
        after = int(page_token or 0)
        found = self._read("list_tasks", query, after, limit)
        items = [self._document(number) for number in found[:limit]]
        return Page(items, str(after + limit) if len(found) > limit else None)

    def list_offers(
        self, queue_keys: Sequence[str], owner: str | None, *, limit: int, after: tuple[str, str] | None = None
    ) -> Sequence[OfferEntry]:
        del limit
        if after is not None:
            return ()
        found = self._read("list_offers", tuple(queue_keys), owner)
        entries = [build_offer_entry(self._document(number)) for number in found]
        return sorted((one for one in entries if one is not None), key=lambda one: (one.order, one.task_id))

    def load_execution(self, task_id: str, execution_id: str) -> Execution | None:
        found: Execution | None = self._document(self._read("load", f"record/{task_id}/{execution_id}"))
        return found

    def check(self) -> None:
        """Answer at once."""

    def close(self) -> None:
        """Do nothing."""

    def join(self, attempt: JoinedValues) -> JoinedValues:
        return attempt


class StockNote(BaseModel):
    """What a caller of Firestore has: so many pieces."""

    pieces: int


class JoinedValues(ValueStore):
    """One attempt of a caller's own transaction, and the store of the tasks that join it."""

    def __init__(self, store: ValueStore) -> None:
        super().__init__(store._processes)  # noqa: SLF001 - of its own kind
        self.stock = self._read("load", "order/stock")
        self._lowered = list[Writes]()
        self._then = list[Callable[[], object]]()

    def later(self, do: Callable[[], object]) -> None:
        self._then.append(do)

    @contextmanager
    def change(self) -> Iterator[None]:
        """Forget the writes of a change that is refused, and what was to follow them."""
        lowered, then = len(self._lowered), len(self._then)
        try:
            yield
        except BaseException:
            del self._lowered[lowered:], self._then[then:]
            raise

    def commit(self, commit: Commit) -> VersionedTask:
        self._lowered.append(self._lower(commit))  # guard: joined writes
        return VersionedTask(commit.task, Version(self._processes.values.keep(commit.task)))

    def commit_order(self, name: str) -> None:
        """Take a piece, write an order and what has joined, and do what follows. Raises VersionConflict."""
        keep, left = self._processes.values.keep, self._document(self.stock).pieces - 1
        documents = (("order/stock", keep(StockNote(pieces=left))), (f"order/{name}", keep(StockNote(pieces=1))))
        checks = tuple(each for one in self._lowered for each in one.checks)
        joined = tuple(each for one in self._lowered for each in one.documents)
        tasks = tuple(each for one in self._lowered for each in one.tasks)
        whole = Writes((*checks, ("order/stock", self.stock)), (*documents, *joined), tasks)
        self._processes.commit(lambda: whole)
        for do in self._then:
            do()


class ValueRecords:
    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def load(self, kind: type[Record], record_id: str) -> Any:  # noqa: ANN401 - of its kind
        number = self._processes.read("load", f"{kind.collection}/{record_id}")
        return None if number is None else VersionedRecord(self._processes.values.documents[number], Version(number))

    def write(self, record: Record, expected_version: Version | None) -> Version:
        key, expected = f"{record.collection}/{record.id}", _number_or_none(expected_version)
        keep = self._processes.values.keep
        return Version(self._processes.commit(lambda: Writes(((key, expected),), ((key, keep(record)),), ())))

    def delete(self, kind: type[Record], record_id: str, expected_version: Version) -> None:
        key = f"{kind.collection}/{record_id}"
        self._processes.commit(lambda: Writes(((key, _number(expected_version)),), ((key, None),), ()))

    def list_all(self, kind: type[Record], *, limit: int, after: str = "") -> Sequence[Any]:
        del limit
        found = self._processes.read("list", f"{kind.collection}/")
        documents = [self._processes.values.documents[number] for number in found]
        return [each for each in documents if each.id > after]

    def list(self, kind: type[Record], owner: str, *, limit: int, after: str = "") -> Sequence[Any]:
        return [each for each in self.list_all(kind, limit=limit, after=after) if each.owner == owner]


def _number(version: Version) -> int:
    assert isinstance(version.value, int)
    return version.value


def _number_or_none(version: Version | None) -> int | None:
    return None if version is None else _number(version)


def _version(number: int | None) -> Version | None:
    return None if number is None else Version(number)


def _of_entry(task_id: str, entry: JournalEntry) -> str:
    return f"step/{task_id}/{entry.execution_id}/{entry.number:06}"
