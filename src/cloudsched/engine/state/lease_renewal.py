"""What a renewal of a lease has found, as the context of the handler under it sees it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class LeaseRenewal:
    """The result of a renewal: the new end of the lease, or None if the caller no longer holds it."""

    until: datetime | None
    is_cancelled: bool
    """Whether the handler should stop: the lease is lost, or the task has ended or is being deleted."""
    renewed_at: datetime | None = None
    """When it was renewed, by the clock that leases are measured by; None if that is not known."""
