"""What the journal writes of the model, and how the model is made of it again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cloudsched.emulator.api import messages as schema
from cloudsched.emulator.api.queue_codec import PAUSED, read_config, write_queue
from cloudsched.emulator.api.task_codec import FULL, instant, put_instant, restore_task, write_task
from cloudsched.emulator.model.queue import Queue
from cloudsched.emulator.model.token_bucket import Bucket

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from cloudsched.emulator.api.messages import Proto
    from cloudsched.emulator.model.queues import Board
    from cloudsched.emulator.model.task import Task

_Record: Final = schema.message_class("cloudsched.emulator.Record")


def queue_put(queue: Queue) -> Proto:
    """A queue's configuration and state."""
    record = _Record()
    record.queue_put.queue.CopyFrom(write_queue(queue))
    limits, retry = queue.config.rate_limits, queue.config.retry_config
    record.queue_put.no_doublings = retry.max_doublings == 0
    record.queue_put.burst = -1 if limits.burst is None else limits.burst
    return record


def queue_gone(name: str, at: datetime) -> Proto:
    """A queue that was deleted then."""
    record = _Record()
    record.queue_gone.name = name
    put_instant(record.queue_gone.at, at)
    return record


def task_put(queue_name: str, task: Task) -> Proto:
    """A task with its counters."""
    record = _Record()
    saved = record.task_put
    saved.task.CopyFrom(write_task(task, queue_name, FULL))
    saved.queue = queue_name
    saved.execution_count = task.execution_count
    saved.previous_status = task.previous_status or 0
    return record


def task_gone(queue_name: str, task_id: str, until: datetime) -> Proto:
    """A task that is gone, whose name stays taken until then."""
    record = _Record()
    record.task_gone.queue = queue_name
    record.task_gone.name = task_id
    put_instant(record.task_gone.at, until)
    return record


def snapshot(board: Board) -> Iterator[Proto]:
    """The records that make up all of a board."""
    for name, at in board.deleted_at.items():
        yield queue_gone(name, at)
    for queue in board.queues.values():
        yield queue_put(queue)
        for task_id, until in queue.taken_names():
            yield task_gone(queue.name, task_id, until)
        for task in queue.tasks.values():
            yield task_put(queue.name, task)


def restore(record: Proto, board: Board, now: datetime) -> None:
    """Make one recorded change again."""
    change = record.WhichOneof("change")
    if change == "queue_put":
        _restore_queue(record.queue_put, board, now)
    elif change == "queue_gone":
        board.queues.pop(record.queue_gone.name, None)
        board.deleted_at[record.queue_gone.name] = instant(record.queue_gone.at)
    elif change == "task_put":
        saved = record.task_put
        queue = board.queues[saved.queue]
        task = restore_task(saved.task)
        task.execution_count = saved.execution_count
        task.previous_status = saved.previous_status or None
        queue.restore(task)
    elif change == "task_gone":
        queue = board.queues[record.task_gone.queue]
        queue.drop(record.task_gone.name)
        queue.remember(record.task_gone.name, instant(record.task_gone.at))
    elif change == "wiped":
        board.clear()


def _restore_queue(saved: Proto, board: Board, now: datetime) -> None:
    message = saved.queue
    config = read_config(message)
    config = replace(
        config,
        rate_limits=replace(config.rate_limits, burst=None if saved.burst < 0 else saved.burst),
        retry_config=replace(config.retry_config, max_doublings=0) if saved.no_doublings else config.retry_config,
    )
    board.deleted_at.pop(message.name, None)
    queue = board.queues.get(message.name)
    if queue is None:
        bucket = Bucket.full(config.rate_limits, now)
        queue = board.queues[message.name] = Queue(message.name, config, bucket, board.faults, board.log)
    else:
        queue.change(config, now)
    queue.paused = message.state == PAUSED
    queue.purged_at = instant(message.purge_time) if message.HasField("purge_time") else None
