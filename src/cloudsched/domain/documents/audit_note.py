"""What the audit trail keeps of an act whose object keeps no history: a deletion, a budget, a queue of Cloud Tasks."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final, Self

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.record import Record
from cloudsched.domain.documents.task import HistoryEntry  # noqa: TC001 - a field's type

KEPT_FOR: Final = timedelta(days=400)
"""The time for which a note is kept."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = 10**18
"""More microseconds than any instant has."""


class AuditNote(Record):
    """An act, and who did it. ``auditNotes/{id}``. The ids of later notes come first."""

    collection: ClassVar[str] = "auditNotes"

    entry: HistoryEntry
    """Its number is that in the task's history, or without a task, that among the notes of its instant."""
    task_id: str | None = None
    """The task that was deleted."""
    title: str = ""
    """Its title."""
    queue: str | None = None
    """The queue that was changed."""

    @classmethod
    def of(
        cls,
        entry: HistoryEntry,
        *,
        owner: str = SYSTEM_OWNER,
        task_id: str | None = None,
        title: str = "",
        queue: str | None = None,
    ) -> Self:
        """Return the note of an act. That of the same act has the same id."""
        names = [entry.action, owner, task_id or "", queue or ""]
        if task_id is None and entry.number > 1:
            names.append(str(entry.number))
        about = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
        return cls(
            id=find_first_id(entry.at) + about,
            owner=owner,
            created_at=entry.at,
            updated_at=entry.at,
            expire_at=entry.at + KEPT_FOR,
            entry=entry,
            task_id=task_id,
            title=title,
            queue=queue,
        )


def find_first_id(at: datetime) -> str:
    """Return what precedes the ids of the notes of an instant, and follows those of all later ones."""
    return f"{_LATEST - (at - _EPOCH) // timedelta(microseconds=1):018}-"
