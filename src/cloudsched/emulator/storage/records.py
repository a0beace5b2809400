"""The write-ahead log's records: from the model to a record, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cloudsched.emulator.api import messages
from cloudsched.emulator.api.queue_codec import PAUSED, read_config, write_queue
from cloudsched.emulator.api.task_codec import FULL, restore_task, set_timestamp, to_datetime, write_task
from cloudsched.emulator.model.queue import Queue
from cloudsched.emulator.model.token_bucket import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from cloudsched.emulator.api.messages import Proto
    from cloudsched.emulator.model.queues import Queues
    from cloudsched.emulator.model.task import Task

_Record: Final = messages.message_class("cloudsched.emulator.Record")


def make_queue_record(queue: Queue) -> Proto:
    """Record a queue's configuration and state."""
    record = _Record()
    record.queue_put.queue.CopyFrom(write_queue(queue))
    limits, retry = queue.config.rate_limits, queue.config.retry_config
    record.queue_put.no_doublings = retry.max_doublings == 0
    record.queue_put.burst = -1 if limits.burst is None else limits.burst
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
    config = replace(
        config,
        rate_limits=replace(config.rate_limits, burst=None if record.burst < 0 else record.burst),
        retry_config=replace(config.retry_config, max_doublings=0) if record.no_doublings else config.retry_config,
    )
    queues.deleted_at.pop(message.name, None)
    queue = queues.queues.get(message.name)
    if queue is None:
        bucket = TokenBucket.full(config.rate_limits, now)
        queue = queues.queues[message.name] = Queue(message.name, config, bucket, queues.faults, queues.observer)
    else:
        queue.set_config(config, now)
    queue.paused = message.state == PAUSED
    queue.purged_at = to_datetime(message.purge_time) if message.HasField("purge_time") else None
