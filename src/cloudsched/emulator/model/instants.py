"""Instants as people and programs write them: RFC 3339, with an offset from UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

INSTANT_EXAMPLE: Final = "2027-01-31T09:00:00Z"


def parse_time(text: str) -> datetime:
    """Return a time as it is written: an instant in UTC if it has an offset, else a naive local time.

    Raises:
        ValueError: It is not a time. The message says so, and how to write one.
    """
    try:
        at = datetime.fromisoformat(text)
        return at if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is not an instant; write it like {INSTANT_EXAMPLE}.") from None


def parse_instant(text: str) -> datetime:
    """Return an instant in UTC.

    Raises:
        ValueError: It is not a time, or has no offset. The message says so, and how to write one.
    """
    at = parse_time(text)
    if at.tzinfo is None:
        raise ValueError(f"{text[:40]!r} has no time zone; end it with Z for UTC.")
    return at
