"""Texts that pages show otherwise than the API has them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit

_WAKES_AT: Final = re.compile(r"(?<=^It sleeps until )\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d")


def shorten(text: str, limit: int = 160) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def write_message(record: Json, visit: Visit) -> str:
    """Return what an execution says about its status; if it sleeps, until when as pages show instants, not as ISO."""
    message = str(record.get("message") or "")
    if record["status"] != "SUSPENDED":
        return message
    try:
        return _WAKES_AT.sub(lambda found: visit.sure(found[0]).text, message)
    except (ValueError, OverflowError):  # a worker that interrupts a run writes what it likes
        return message
