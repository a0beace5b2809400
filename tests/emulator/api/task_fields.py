"""The task that the API's tests create: it is due a day after the frozen clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2027, 1, 1, tzinfo=UTC)
URL = "http://127.0.0.1:9/"
LATER = START + timedelta(days=1)


def make_task(**fields: Any) -> dict[str, Any]:
    """Return the fields of a task for ``create_task``, some of them replaced."""
    return {"http_request": {"url": URL}, "schedule_time": LATER, **fields}
