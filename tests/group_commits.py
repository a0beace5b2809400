"""What a `GroupDispatcher` calls, where there is nothing to commit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.engine.ports.queue import QueueMessage


def deliver_each(
    deliver: Callable[[bytes, str], object],
) -> Callable[[Sequence[QueueMessage], Sequence[None]], tuple[Sequence[Callable[[], None]], Sequence[None]]]:
    """Return a `commit` that has each dispatch delivered alone."""

    def call(message: QueueMessage) -> None:
        deliver(message.body, message.token)

    return lambda messages, ends: ([partial(call, each) for each in messages], ends)
