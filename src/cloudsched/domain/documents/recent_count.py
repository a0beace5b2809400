"""The latest times of an action that any caller may cause, so that it can be rate-limited."""

from __future__ import annotations

from typing import ClassVar

from cloudsched.domain.documents.document import Instant  # noqa: TC001 - a field's type
from cloudsched.domain.documents.record import Record


class RecentCount(Record):
    """The latest times of an action that any caller may cause, such as a request to a host.

    ``recentCounts/{id}``.
    """

    collection: ClassVar[str] = "recentCounts"

    sent_at: tuple[Instant, ...] = ()
