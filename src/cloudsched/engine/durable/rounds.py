"""Rounds of requests, as scripts and lists of children make them: in parallel, with all their ends seen only together.

The failures of one round are therefore one cause, and a manual retry repeats all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.journal import StepKind

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.engine.durable.journal_cursor import JournalCursor


def start_round(cursor: JournalCursor) -> int:
    """Return the number of the entry that the round's first request will have."""
    return cursor.position + 1


def end_round(cursor: JournalCursor, since: int) -> datetime | None:
    """Merge the failures of the round whose first entry is `since`.

    Returns:
        When its last request ended, the same in every replay; None if it had none.
    """
    cursor.failures.merge_since(since, cursor.position)
    entries = [cursor.journal[number] for number in range(since, cursor.position + 1)]
    return max((entry.finished_at or entry.started_at for entry in entries), default=None)


def called_handlers(cursor: JournalCursor) -> frozenset[str]:
    """Return the handlers that were called so far, in this attempt and earlier ones."""
    return frozenset(entry.name for entry in cursor.journal.values() if entry.kind is StepKind.CALL)
