"""Versions of a handler's code: an execution follows the one that it started with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.journal import StepKind, StepStatus

if TYPE_CHECKING:
    from cloudsched.engine.durable.journal_cursor import JournalCursor


def choose_version(cursor: JournalCursor, name: str, newest: int) -> int:
    """Return which version of the code this execution follows."""
    cursor.require_may_record(StepKind.VERSION, name)
    if name not in cursor.versions:
        recorded = cursor.journal.get(cursor.position + 1)
        if recorded is None or (recorded.kind, recorded.name) == (StepKind.VERSION, name):
            number, entry = cursor.next_entry(StepKind.VERSION, name)
            if entry is None:
                new_entry = cursor.new_entry(number, StepKind.VERSION, name)
                entry = cursor.put(new_entry, status=StepStatus.SUCCEEDED, result=newest)
            cursor.versions[name] = entry.result
        else:
            cursor.versions[name] = 1
    return cursor.versions[name]
