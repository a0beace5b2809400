"""`--data FILE`: a write-ahead log of the queues, so that a crash loses nothing that was acknowledged.

The file is a list of change records and is only appended to. A call is acknowledged once its records are synced to the
disk. Calls that arrive during a sync share the next one. Each record carries its length and checksum: a record that a
crash cut short at the end is dropped when the file is read again. At startup, and when the file has grown to several
times the size of the live data, a compacted copy is written beside it and then replaces it.

An attempt that was in progress when the process died is made again: at-least-once delivery, as the service promises.
"""

from __future__ import annotations

import asyncio
import logging
import os
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cloudsched.emulator.api import messages
from cloudsched.emulator.api.queue_codec import PAUSED, read_config, write_queue
from cloudsched.emulator.api.task_codec import FULL, restore_task, set_timestamp, to_datetime, write_task
from cloudsched.emulator.model.errors import Code, RpcError
from cloudsched.emulator.model.queue import Queue
from cloudsched.emulator.model.token_bucket import TokenBucket

if TYPE_CHECKING:
    from cloudsched.emulator.api.messages import Proto
    from cloudsched.emulator.model.queues import Queues
    from cloudsched.emulator.model.task import Task


def make_queue_record(queue: Queue) -> Proto:
    """Record a queue's configuration and state."""
    record = _Record()
    record.queue_put.queue.CopyFrom(write_queue(queue))
    record.queue_put.no_doublings = queue.config.retry_config.max_doublings == 0
    return record


def make_queue_removal(name: str, at: datetime) -> Proto:
    """Record that a queue was deleted at that instant."""
    record = _Record()
    record.queue_gone.name = name
    set_timestamp(record.queue_gone.at, at)
    return record


def make_task_record(queue_name: str, task: Task) -> Proto:
    """Record a task with its counters."""
    record = _Record()
    saved = record.task_put
    saved.task.CopyFrom(write_task(task, queue_name, FULL))
    saved.queue = queue_name
    saved.execution_count = task.execution_count
    saved.previous_status = task.previous_status or 0
    return record


def make_task_removal(queue_name: str, task_id: str, until: datetime) -> Proto:
    """Record that a task is gone and that its name stays taken until then."""
    record = _Record()
    record.task_gone.queue = queue_name
    record.task_gone.name = task_id
    set_timestamp(record.task_gone.at, until)
    return record


def iter_snapshot(queues: Queues) -> Iterator[Proto]:
    """Yield the records that describe the whole state."""
    for name, at in queues.deleted_at.items():
        yield make_queue_removal(name, at)
    for queue in queues.queues.values():
        yield make_queue_record(queue)
        for task_id, until in queue.iter_reserved_names():
            yield make_task_removal(queue.name, task_id, until)
        for task in queue.tasks.values():
            yield make_task_record(queue.name, task)


def apply_record(record: Proto, queues: Queues, now: datetime) -> None:
    """Apply one recorded change to the queues."""
    change = record.WhichOneof("change")
    if change == "queue_put":
        _restore_queue(record.queue_put, queues, now)
    elif change == "queue_gone":
        queues.queues.pop(record.queue_gone.name, None)
        queues.deleted_at[record.queue_gone.name] = to_datetime(record.queue_gone.at)
    elif change == "task_put":
        saved = record.task_put
        queue = queues.queues[saved.queue]
        task = restore_task(saved.task)
        task.execution_count = saved.execution_count
        task.previous_status = saved.previous_status or None
        queue.restore(task)
    elif change == "task_gone":
        queue = queues.queues[record.task_gone.queue]
        queue.drop(record.task_gone.name)
        queue.reserve_name(record.task_gone.name, to_datetime(record.task_gone.at))
    elif change == "wiped":
        queues.clear()


def _restore_queue(record: Proto, queues: Queues, now: datetime) -> None:
    message = record.queue
    config = read_config(message)
    if record.no_doublings:
        config = replace(config, retry_config=replace(config.retry_config, max_doublings=0))
    queues.deleted_at.pop(message.name, None)
    queue = queues.queues.get(message.name)
    if queue is None:
        bucket = TokenBucket.full(config.rate_limits, now)
        queue = queues.queues[message.name] = Queue(message.name, config, bucket, queues.faults, queues.observer)
    else:
        queue.set_config(config, now)
    queue.paused = message.state == PAUSED
    queue.purged_at = to_datetime(message.purge_time) if message.HasField("purge_time") else None


_MAGIC: Final = b"cloudsched emulator journal, version 1\n"
_HEAD_BYTES: Final = 8
MIN_REWRITE_BYTES: Final = 64 * 1024 * 1024
"""The size below which a running emulator does not compact its file."""
_REWRITE_GROWTH_FACTOR: Final = 4
_log: Final = logging.getLogger(__name__)
_Record: Final = messages.message_class("cloudsched.emulator.Record")


class UnreadableData(ValueError):
    """The file is not a log of this version, or a running emulator uses it."""


class WriteAheadLog:
    """The log file, as a `QueueObserver`. Use it within one event loop.

    Args:
        path: The file, created if it is missing.
        queues: The queues to restore from the file, whose changes are then logged.
        now: The instant at which restored queues start.

    Raises:
        UnreadableData: if the file is not a log, or is in use.
        OSError: if it cannot be read or written.
    """

    def __init__(self, path: Path, queues: Queues, now: datetime) -> None:
        self._path = path
        self._queues = queues
        self._lock = _acquire_lock(path)
        try:
            self._size = _restore(path, queues, now)
            self._compact_at_startup()
            self._size_after_rewrite = self._size
            self._file = path.open("ab", buffering=0)
        except BaseException:
            os.close(self._lock)
            raise
        self._pending: list[bytes] = []
        self._sync_waiters: list[asyncio.Future[None]] = []
        self._write_task: asyncio.Task[None] | None = None

    def on_queue_changed(self, queue: Queue) -> None:
        """See `QueueObserver`."""
        self._append(make_queue_record(queue))

    def on_queue_deleted(self, name: str, at: datetime) -> None:
        """See `QueueObserver`."""
        self._append(make_queue_removal(name, at))

    def on_task_changed(self, queue: Queue, task: Task) -> None:
        """See `QueueObserver`."""
        self._append(make_task_record(queue.name, task))

    def on_task_removed(self, queue: Queue, task: Task, until: datetime) -> None:
        """See `QueueObserver`."""
        self._append(make_task_removal(queue.name, task.id, until))

    def append_reset(self) -> None:
        """Record that everything was deleted."""
        self._append(_Record(wiped=True))

    def wait_for_sync(self) -> asyncio.Future[None] | None:
        """Return a future that is done when the last change is synced. None if there was no change."""
        if not self._pending:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sync_waiters.append(future)
        return future

    async def close(self) -> None:
        """Write what is pending and release the file."""
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
                waiters, self._sync_waiters = self._sync_waiters, []
                try:
                    await loop.run_in_executor(None, self._sync, data, self._snapshot_if_large())
                except OSError as error:
                    self._pending.insert(0, data)  # retried with the next change
                    refused = RpcError(Code.UNAVAILABLE, f"The emulator cannot write {self._path}: {error}")
                    for future in waiters:
                        if not future.done():
                            future.set_exception(refused)
                    return
                for future in waiters:
                    if not future.done():  # its caller may have disconnected
                        future.set_result(None)
        finally:
            self._write_task = None

    def _snapshot_if_large(self) -> bytes | None:
        threshold = max(MIN_REWRITE_BYTES, _REWRITE_GROWTH_FACTOR * self._size_after_rewrite)
        return self._snapshot() if self._size > threshold else None

    def _snapshot(self) -> bytes:
        return b"".join(_encode_record(record) for record in iter_snapshot(self._queues))

    def _compact_at_startup(self) -> None:
        """Write the file anew. If there is no room for a second one, continue with the old one."""
        snapshot = self._snapshot()
        try:
            self._size = _rewrite(self._path, snapshot)
        except OSError as error:
            if not self._size:  # there is no old file to continue with
                raise OSError(error.errno, error.strerror, str(self._path)) from None
            _log.warning("%s cannot be compacted and is used as it is: %s", self._path, error.strerror)
            os.truncate(self._path, self._size)  # a record that was cut short would hide all records after it

    def _sync(self, data: bytes, snapshot: bytes | None) -> None:
        """Append and sync. Runs in another thread, one call at a time."""
        if snapshot is not None and self._compact(snapshot):  # the snapshot was taken after `data` and contains it
            return
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(self._size)  # a partial record would hide all records after it
            raise
        self._size += len(data)

    def _compact(self, snapshot: bytes) -> bool:
        """Replace the file by a snapshot. Return False if there is no room for it."""
        try:
            self._size = _rewrite(self._path, snapshot)
        except OSError as error:
            _log.warning("%s cannot be compacted and keeps growing: %s", self._path, error.strerror)
            self._size_after_rewrite = self._size  # try again once it has grown by the same factor
            return False
        self._size_after_rewrite = self._size
        self._file.close()
        self._file = self._path.open("ab", buffering=0)
        return True


def _restore(path: Path, queues: Queues, now: datetime) -> int:
    """Apply the records of a file, and return the length of its readable part."""
    size = 0
    for record, end in _read_records(path):
        if record is not None:
            apply_record(record, queues, now)
        size = end
    for queue in queues.queues.values():
        queues.reschedule(queue)
    return size


def _encode_record(record: Proto) -> bytes:
    payload: bytes = record.SerializeToString()
    return len(payload).to_bytes(4, "big") + zlib.crc32(payload).to_bytes(4, "big") + payload


def _read_records(path: Path) -> Iterator[tuple[Proto | None, int]]:
    """Yield each record and where it ends, but first None and where the header ends."""
    data = path.read_bytes() if path.exists() else b""
    if not data.startswith(_MAGIC):
        if not _MAGIC.startswith(data):  # otherwise a crash cut even the header short
            raise UnreadableData(f"{path} is not a log of this version of the emulator; choose another --data file.")
        return
    at = len(_MAGIC)
    yield None, at
    while at + _HEAD_BYTES <= len(data):
        end = at + _HEAD_BYTES + int.from_bytes(data[at : at + 4], "big")
        payload = data[at + _HEAD_BYTES : end]
        if end > len(data) or zlib.crc32(payload) != int.from_bytes(data[at + 4 : at + _HEAD_BYTES], "big"):
            return
        yield _Record.FromString(payload), end
        at = end


def _rewrite(path: Path, content: bytes) -> int:
    fresh = path.with_name(f"{path.name}.new")
    try:
        with fresh.open("wb", buffering=0) as file:
            view = memoryview(_MAGIC + content)
            while view:
                view = view[file.write(view) :]
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)  # an incomplete copy is useless
        raise
    _sync_folder(path)
    return len(_MAGIC) + len(content)


def _sync_folder(path: Path) -> None:
    if os.name == "posix":  # Windows cannot open a folder, and need not
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _acquire_lock(path: Path) -> int:
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    if os.name == "posix":
        import fcntl  # noqa: PLC0415 - POSIX only

        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise UnreadableData(f"{path} is in use by another emulator that is running.") from None
    return lock
