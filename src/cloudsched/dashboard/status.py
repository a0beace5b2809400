"""What a status looks like: a shape, a word and a class. Never a shape without its word, never colour alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Status:
    """A status as it is shown."""

    shape: str
    """The name of its symbol."""
    word: str
    css: str


_EXECUTION: Final = {
    "RUNNING": Status("run", "Running", "run"),
    "RETRYING": Status("retry", "Retrying", "retry"),
    "SUSPENDED": Status("wait", "Suspended", "wait"),
    "SUCCEEDED": Status("ok", "Succeeded", "ok"),
    "FAILED": Status("fail", "Failed", "fail"),
    "TIMED_OUT": Status("late", "Timed out", "timeout"),
    "CANCELLED": Status("cancel", "Cancelled", "ended"),
    "EXPIRED": Status("expire", "Expired", "ended"),
    "SKIPPED": Status("skip", "Skipped", "ended"),
    "WAITING": Status("wait", "Waiting", "wait"),
}
_TASK: Final = {
    "ACTIVE": Status("active", "Active", "due"),
    "PAUSED": Status("pause", "Paused", "retry"),
    "COMPLETED": Status("ok", "Completed", "ok"),
}
TASK_STATUSES: Final = ("ACTIVE", "PAUSED", "COMPLETED", "FAILED", "CANCELLED", "EXPIRED")
OPEN: Final = frozenset({"RUNNING", "RETRYING", "SUSPENDED"})
"""The statuses of an execution that is not over."""
BAD: Final = frozenset({"FAILED", "TIMED_OUT"})
"""The statuses that lie below the line."""


def show_status(name: str) -> Status:
    """Return a status as it is shown; one that only a newer API knows has its own name as its word."""
    found = _TASK.get(name) or _EXECUTION.get(name)
    return found or Status("due", name.replace("_", " ").capitalize(), "due")
