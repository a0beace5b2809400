"""How many bytes the documents of an hourly task have, and how many a run of it writes.

The task runs every hour, has a handler of two lines, and is created with nothing that it need not say. The bytes are
those after its last run: as SQLite stores them, and at Google's Firestore emulator as they are sent, which is what a
commit carries, and as Firestore counts them, which is what is billed.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.firestore.values import decode
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.json_limits import document_size
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.ports.store import Store

START = datetime(2027, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
TASK = "recurring"
RUNS = 39


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes after the last run."""

    task: int
    record: int
    task_counted: int = 0
    """As Firestore counts the document, with its name."""
    record_counted: int = 0
    claim: int = 0
    """What the commit of a claim writes, with the documents' names."""
    finish: int = 0
    """What the commit of a result writes."""

    @property
    def written(self) -> int:
        """What a run writes."""
        return self.claim + self.finish


class _Queue:
    """Keeps the messages, to be delivered by hand."""

    def __init__(self) -> None:
        self.messages: deque[QueueMessage] = deque()

    def create(self, message: QueueMessage) -> None:
        self.messages.append(message)

    def close(self) -> None:
        pass


def run_hourly_task(store: Store, runs: int) -> None:
    """Create an hourly task in a store, and deliver its first dispatches."""
    clock, queue = ManualClock(START), _Queue()
    app = App(Settings(secret=uuid.uuid4().hex), store=store, dispatcher=queue, clock=clock)

    @app.handler("tick")
    def tick() -> str:
        return "tock"

    schedule = Schedule.every(HOUR, start=START + HOUR)
    app.create(id=TASK, owner="ada", title="Tick", handler="tick", schedule=schedule)
    for _ in range(runs):
        message = queue.messages.popleft()
        clock.move_to(message.at)
        action = app.deliver(message.body, message.token).action
        assert action == "ran", action


def measure_sqlite(folder: Path, runs: int = RUNS) -> Sizes:
    """Return the bytes of the JSON that SQLite stores."""
    path = folder / "tasks.db"
    store = SqliteStore(path)
    run_hourly_task(store, runs)
    store.close()
    with closing(sqlite3.connect(path)) as database:
        (task,) = database.execute("SELECT length(CAST(body AS BLOB)) FROM tasks").fetchone()
        latest = "SELECT length(CAST(body AS BLOB)) FROM executions ORDER BY scheduled_for DESC"
        (record,) = database.execute(latest).fetchone()
    return Sizes(task, record)


def measure_firestore(address: str, runs: int = RUNS) -> Sizes:
    """Return the bytes of the messages that Firestore is sent, and of what it stores."""
    store = FirestoreStore(project=f"demo-{uuid.uuid4().hex[:20]}", emulator=address)
    commits = list[int]()
    rpc: Any = store._rpc  # noqa: SLF001 - what is sent is not to be seen elsewhere
    send = rpc.commit

    def commit(writes: Sequence[Any]) -> object:
        commits.append(sum(write.ByteSize() for write in writes))
        return send(writes)

    rpc.commit = commit
    run_hourly_task(store, runs)
    root = store._documents  # noqa: SLF001 - the same
    task, _ = rpc.get(f"{root}/tasks/{TASK}")
    (record,) = rpc.query(f"{root}/tasks/{TASK}", _latest(f"{root}/tasks/{TASK}"))
    store.close()
    claim, finish = commits[-2:]
    path = ("tasks", TASK, "executions", record.name.rpartition("/")[2])
    return Sizes(
        _fields_size(task), _fields_size(record),
        document_size(path[:2], decode(task.fields)), document_size(path, decode(record.fields)),
        claim, finish,
    )  # fmt: skip


def _latest(parent: str) -> object:
    from cloudsched.adapters.firestore.queries import EXECUTIONS  # noqa: PLC0415 - read beside its only use

    return EXECUTIONS.to_query(1, parent)


def _fields_size(document: Any) -> int:  # noqa: ANN401 - a protobuf message
    """Return the size of a document as it is sent, without its name and its times."""
    about = len(document.name) + 3 + document.create_time.ByteSize() + document.update_time.ByteSize() + 4
    return int(document.ByteSize() - about)
