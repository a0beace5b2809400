"""The shard of a task: which range of the store's indexes it is in, where they are split into several."""

from __future__ import annotations

import hashlib


def choose_shard(task_id: str, count: int) -> int:
    """Return the shard of a task, of `count`."""
    if count == 1:
        return 0
    return int.from_bytes(hashlib.blake2b(task_id.encode(), digest_size=8).digest(), "big") % count
