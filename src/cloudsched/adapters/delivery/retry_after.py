"""Read ``Retry-After``: how long another side asks to wait (RFC 9110 §10.2.3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

_LONGEST_WAIT: Final = timedelta(days=1)


def parse_retry_after(text: str | None, now: float) -> timedelta | None:
    """Return how long to wait, at most a day; None for what is neither seconds nor a date.

    Args:
        text: The header, if there is one.
        now: The system's clock, in seconds since 1970: dates are the other side's.
    """
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=min(int(text[:9]), 86_400)), _LONGEST_WAIT)
    try:
        wait = parsedate_to_datetime(text).astimezone(UTC) - datetime.fromtimestamp(now, UTC)
    except (ValueError, OverflowError):
        return None
    return min(max(wait, timedelta(0)), _LONGEST_WAIT)
