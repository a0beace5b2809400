"""The times of something that anybody may cause, which limits how often it is done."""

from __future__ import annotations

from typing import ClassVar

from cloudsched.domain.documents.document import Instant  # noqa: TC001 - a field's type
from cloudsched.domain.documents.record import Record


class RecentCount(Record):
    """The times of an action that anybody may cause, such as a request to a host. ``recentCounts/{id}``."""

    collection: ClassVar[str] = "recentCounts"

    sent_at: tuple[Instant, ...] = ()
