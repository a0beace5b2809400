"""A message as tests send it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cloudsched.engine.ports.sender import OutgoingMessage, Recipient

ADA = Recipient(address="ada@example.com", name="Ada")


def make_message(**changes: Any) -> OutgoingMessage:
    """Return a message that differs from the usual one in these fields."""
    fields: dict[str, Any] = {
        "id": "msg_4f9aT1",
        "thread": "task_77Zq",
        "title": "Water the plants",
        "body": "All of them.\n\nThe fern twice.",
        "created_at": datetime(2026, 11, 21, 8, tzinfo=UTC),
    }
    return OutgoingMessage(**{**fields, **changes})
