"""`--data FILE`: the queues on disk, so that nothing acknowledged is lost when the process dies at any moment.

The file is a list of records, each a change, only ever appended to. A call is acknowledged once its records are synced
to the disk; calls that arrive while a sync runs share the next one. A record carries its length and checksum: what a
crash cut short at the end is dropped when the file is read again. At the start, and when it has grown to several times
of what is alive, the file is written anew beside the old one and put in its place.

An attempt that was under way when the process died is made again: at least once, as the service promises.
"""

from __future__ import annotations

import asyncio
import os
import zlib
from typing import TYPE_CHECKING, Final

from cloudsched.emulator.api import messages as schema
from cloudsched.emulator.model.errors import Code, RpcError
from cloudsched.emulator.storage.records import apply_record, iter_snapshot, make_task_record, make_task_removal
from cloudsched.emulator.storage.records import make_queue_record as queue_put_record
from cloudsched.emulator.storage.records import make_queue_removal as queue_gone_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from cloudsched.emulator.api.messages import Proto
    from cloudsched.emulator.model.queue import Queue
    from cloudsched.emulator.model.queues import Queues
    from cloudsched.emulator.model.task import Task

_MAGIC: Final = b"cloudsched emulator journal, version 1\n"
_HEAD_BYTES: Final = 8
_MIN_REWRITE_BYTES: Final = 64 * 1024 * 1024
_REWRITE_GROWTH_FACTOR: Final = 4
_Record: Final = schema.message_class("cloudsched.emulator.Record")


class UnreadableData(ValueError):
    """The file is no journal of this version, or belongs to an emulator that is running."""


class WriteAheadLog:
    """The file, as a `QueueObserver` of the board. To be used within one event loop.

    Args:
        path: The file; made if it is missing.
        board: What is restored from it and written to it.

    Raises:
        UnreadableData: if the file is something else, or in use.
        OSError: if it cannot be read or written.
    """

    def __init__(self, path: Path, queues: Queues, now: datetime) -> None:
        self._path = path
        self._queues = queues
        self._lock = _acquire_lock(path)
        try:
            for record in _read_records(path):
                apply_record(record, queues, now)
            for queue in queues.queues.values():
                queues.reschedule(queue)
            self._size = self._size_after_rewrite = _rewrite(path, self._snapshot())
            self._file = path.open("ab", buffering=0)
        except BaseException:
            os.close(self._lock)
            raise
        self._pending: list[bytes] = []
        self._sync_waiters: list[asyncio.Future[None]] = []
        self._write_task: asyncio.Task[None] | None = None

    def on_queue_changed(self, queue: Queue) -> None:
        """See `QueueObserver`."""
        self._append(queue_put_record(queue))

    def on_queue_deleted(self, name: str, at: datetime) -> None:
        """See `QueueObserver`."""
        self._append(queue_gone_record(name, at))

    def on_task_changed(self, queue: Queue, task: Task) -> None:
        """See `QueueObserver`."""
        self._append(make_task_record(queue.name, task))

    def on_task_removed(self, queue: Queue, task: Task, until: datetime) -> None:
        """See `QueueObserver`."""
        self._append(make_task_removal(queue.name, task.id, until))

    def append_reset(self) -> None:
        """Everything was forgotten."""
        self._append(_Record(wiped=True))

    def wait_for_sync(self) -> asyncio.Future[None] | None:
        """What the acknowledgement of the last change has to wait for; None if there was no change."""
        if not self._pending:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sync_waiters.append(future)
        return future

    async def close(self) -> None:
        """Write what is left, and let go of the file."""
        if self._write_task is not None:
            await self._write_task
        self._file.close()
        os.close(self._lock)

    def _append(self, record: Proto) -> None:
        self._pending.append(_encode_record(record))
        self._start_writing()

    def _start_writing(self) -> None:
        if self._write_task is None:
            self._write_task = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._pending:
                data, self._pending = b"".join(self._pending), []
                waiting, self._sync_waiters = self._sync_waiters, []
                try:
                    await loop.run_in_executor(None, self._sync, data, self._snapshot_if_large())
                except OSError as error:
                    self._pending.insert(0, data)  # to be tried again with the next change
                    refused = RpcError(Code.UNAVAILABLE, f"The emulator cannot write {self._path}: {error}")
                    for future in waiting:
                        if not future.done():
                            future.set_exception(refused)
                    return
                for future in waiting:
                    if not future.done():  # its caller may have gone
                        future.set_result(None)
        finally:
            self._write_task = None

    def _snapshot_if_large(self) -> bytes | None:
        worth = max(_MIN_REWRITE_BYTES, _REWRITE_GROWTH_FACTOR * self._size_after_rewrite)
        return self._snapshot() if self._size > worth else None

    def _snapshot(self) -> bytes:
        return b"".join(_encode_record(record) for record in iter_snapshot(self._queues))

    def _sync(self, data: bytes, fresh: bytes | None) -> None:
        """Runs in another thread; the loop waits for it before the next."""
        if fresh is not None:  # taken after the records of `data`, which it contains
            self._file.close()
            self._size = self._size_after_rewrite = _rewrite(self._path, fresh)
            self._file = self._path.open("ab", buffering=0)
            return
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(self._size)  # half a record would hide all that follow it
            raise
        self._size += len(data)


def _encode_record(record: Proto) -> bytes:
    payload: bytes = record.SerializeToString()
    return len(payload).to_bytes(4, "big") + zlib.crc32(payload).to_bytes(4, "big") + payload


def _read_records(path: Path) -> Iterator[Proto]:
    data = path.read_bytes() if path.exists() else b""
    if not data.startswith(_MAGIC):
        if not _MAGIC.startswith(data):  # else it was cut short at its very beginning
            raise UnreadableData(f"{path} is not a journal of this version of the emulator; give another --data file.")
        return
    at = len(_MAGIC)
    while at + _HEAD_BYTES <= len(data):
        end = at + _HEAD_BYTES + int.from_bytes(data[at : at + 4], "big")
        payload = data[at + _HEAD_BYTES : end]
        if end > len(data) or zlib.crc32(payload) != int.from_bytes(data[at + 4 : at + _HEAD_BYTES], "big"):
            return
        yield _Record.FromString(payload)
        at = end


def _rewrite(path: Path, content: bytes) -> int:
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        file.write(_MAGIC + content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    _sync_folder(path)
    return len(_MAGIC) + len(content)


def _sync_folder(path: Path) -> None:
    if os.name == "posix":  # elsewhere a folder cannot be opened, and needs not be
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _acquire_lock(path: Path) -> int:
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    if os.name == "posix":
        import fcntl  # noqa: PLC0415 - there is none elsewhere

        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise UnreadableData(f"{path} belongs to an emulator that is running.") from None
    return lock
