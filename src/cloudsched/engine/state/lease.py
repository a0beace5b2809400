"""The lease under which a handler runs, as its context sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class LeaseState:
    """What a renewal found: the lease's new end, or that the run is no longer the caller's."""

    until: datetime | None
    is_cancelled: bool
    renewed_at: datetime | None = None
    """When that was, by the clock that leases are measured by; None if that is not known."""
