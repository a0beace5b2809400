"""Notice that tasks are created with ids that follow each other: Firestore writes all of them to one place.

Documents lie in the order of their names, so ``order-1000001`` and ``order-1000002`` are neighbours. What is
created or run one after the other then meets the limit of one range, however many shards there are. See
firebase.google.com/docs/firestore/best-practices: "Do not use monotonically increasing document IDs".
"""

from __future__ import annotations

import threading
from itertools import pairwise
from time import monotonic
from typing import Final

from cloudsched.domain.own_logger import own_logger

log: Final = own_logger(__name__)

COUNT: Final = 200
"""The number of created ids that are looked at together."""
WITHIN_SECONDS: Final = 5.0
"""The time within which a process creates so many if the rate matters: a range takes some 125 such tasks a
second, and several processes may share them."""
_MOST: Final = 0.8
"""The part of neighbours that has the same order. Of random ids it is a half, give or take a tenth."""


def is_in_order(ids: list[str]) -> bool:
    """Return whether ids rise or fall, but for some that overtook each other."""
    rising = sum(first < second for first, second in pairwise(ids))
    return max(rising, len(ids) - 1 - rising) >= _MOST * (len(ids) - 1)


class RisingIds:
    """Warns once in this process, at the cost of a comparison for each created task."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._since = 0.0
        self._is_told = False
        self._lock = threading.Lock()

    def note(self, task_id: str) -> None:
        """Note the id of a task that was created now."""
        if self._is_told:
            return
        with self._lock:
            now = monotonic()
            if not self._ids:
                self._since = now
            self._ids.append(task_id)
            if len(self._ids) < COUNT:
                return
            ids = self._ids
            self._ids = []
            if now - self._since > WITHIN_SECONDS or not is_in_order(ids) or self._is_told:
                return
            self._is_told = True

        log.warning(
            "The ids of new tasks follow each other, so Firestore stores them in one place: it takes some 125 such "
            "tasks a second, and more wait. Put a hash of each id in front of it. See "
            "docs/run/capacity.md#ids-that-follow-each-other.",
            extra={"action": "rising_ids", "taskId": task_id},
        )
