"""When the sweep ran last, and what it found."""

from __future__ import annotations

from typing import ClassVar, Final

from cloudsched.domain.documents.document import Instant  # noqa: TC001 - a field of the model
from cloudsched.domain.documents.record import Record

SWEEP_NOTE_ID: Final = "last"


class SweepNote(Record):
    """The last sweep (``sweeps/last``), or that of a shard which takes several parts (``sweeps/shard-3``).

    Its `updated_at` is when it, or its last part, ended.
    """

    collection: ClassVar[str] = "sweeps"
    is_listed_by_owner: ClassVar[bool] = False

    started_at: Instant
    examined: int = 0
    """Tasks that were overdue."""
    dispatched: int = 0
    """Dispatches that it sent again."""
    unsent: int = 0
    """Tasks whose dispatches the queue did not accept."""
    failed: int = 0
    """Tasks that could not be repaired."""
    is_continuing: bool = False
    """Whether another part of it follows, in a sweep of one shard (``sweeps/shard-3``)."""
