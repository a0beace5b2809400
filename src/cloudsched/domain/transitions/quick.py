"""Which tasks a quick handler can run with one commit: those that need no claim of their own.

The runs of a quick handler are claimed by the commit of their result. So nothing else may depend on a claim: no lock,
no workers, no overlap policy that asks whether a run is open, and no attempt that takes long.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.policy import Overlap

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import PublicTask

MAX_QUICK_DURATION = timedelta(seconds=20)
"""The longest expected duration: the sweep takes an occurrence for lost that is overdue for that long, and sends it
again."""


def fits_quick(task: PublicTask) -> bool:
    """Return whether a quick handler can run this task with one commit; if not, its runs are claimed first."""
    is_alone = task.pull is None and task.lock_key is None and task.overlap is Overlap.ALLOW
    return is_alone and task.expected_duration <= MAX_QUICK_DURATION
