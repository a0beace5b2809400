"""What kind of work a task does: its owner chooses channels by it, and lists and feeds can have one kind only."""

from __future__ import annotations

from cloudsched.domain.documents.document import StoredEnum


class Category(StoredEnum):
    """What kind of work a task does for its owner."""

    REMINDER = "REMINDER"
    REPORT = "REPORT"
    ANALYSIS = "ANALYSIS"
    OTHERS = "OTHERS"
