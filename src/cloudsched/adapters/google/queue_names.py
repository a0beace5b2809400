"""Which queue takes which dispatch.

Each priority has a queue of its own, whose rate and concurrency the operator sets: ``cloudsched`` for NORMAL,
``cloudsched-critical``, ``cloudsched-high`` and ``cloudsched-low``. So has each channel for deliveries, such as
``cloudsched-email``, whose rate is what the provider allows. A priority that needs more dispatches a second than one
queue delivers has further queues, such as ``cloudsched-low-q2``, over which they are spread by a hash of their names.
Hops, which run nothing, have ``cloudsched-hops``, so that they do not hold up what is due.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from cloudsched.domain.documents.policy import Priority

if TYPE_CHECKING:
    from cloudsched.engine.ports.queue import QueueMessage

_SHARED_QUEUES = {"COMPLETION": "WEBHOOK"}
"""The channels that have the queue of another one."""


def queue_id(queue: str, priority: Priority, number: int = 1) -> str:
    """Return the id of one of a priority's queues, counted from 1; `queue` is the id of the first NORMAL one."""
    first = queue if priority is Priority.NORMAL else f"{queue}-{priority.lower()}"
    return first if number == 1 else f"{first}-q{number}"


def channel_queue_id(queue: str, channel: str) -> str:
    """Return the id of the queue of a channel's deliveries; `queue` is the id of the NORMAL one."""
    return f"{queue}-{_SHARED_QUEUES.get(channel, channel).lower()}"


def hop_queue_id(queue: str) -> str:
    """Return the id of the queue of hops; `queue` is the id of the NORMAL one."""
    return f"{queue}-hops"


def list_queue_ids(queue: str, queues_per_priority: int = 1) -> list[str]:
    """Return the ids of all queues but those of channels."""
    numbers = range(1, queues_per_priority + 1)
    return [*(queue_id(queue, each, number) for each in Priority for number in numbers), hop_queue_id(queue)]


def choose_queues(queue: str, message: QueueMessage, queues_per_priority: int = 1) -> list[str]:
    """Return the id of a dispatch's queue, then those that take it if that one does not exist; the NORMAL one is last.

    The same dispatch has the same queue, so that the queue recognizes a repeated one.
    """
    number = zlib.crc32(message.name.encode()) % queues_per_priority + 1
    own = [queue_id(queue, message.priority, number), queue_id(queue, message.priority)]
    if message.channel is not None:
        own = [channel_queue_id(queue, message.channel)]
    hops = [hop_queue_id(queue)] if message.is_hop else []
    return list(dict.fromkeys([*hops, *own, queue_id(queue, Priority.NORMAL, number), queue]))
