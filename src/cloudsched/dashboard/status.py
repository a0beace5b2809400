"""The look of a status, which is a shape, a word and a class, and an execution's message about it.

Never a shape without its word, never colour alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.delivery_channels import DeliveryStatus
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.execution import FAILURE_STATUSES, OPEN_STATUSES, ExecutionError, ExecutionStatus
from cloudsched.domain.documents.journal import StepStatus
from cloudsched.domain.documents.task import NeedCause, TaskStatus
from cloudsched.domain.explanation.explain import BLOCKING
from cloudsched.domain.explanation.findings import drop_policy
from cloudsched.domain.explanation.need_words import NEED_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit


def write_message(record: Json, visit: Visit) -> str:
    """Return an execution's message about its status. A sleep's end is an instant as pages show it."""
    message = str(record.get("message") or "")
    if not message.startswith("It sleeps until ") or not record.get("nextAttemptAt"):
        return drop_policy(message)
    end = visit.moment(record["nextAttemptAt"])
    return f"It {'sleeps' if end.local > end.now else 'was to sleep'} until {end.text}."


def shorten_error(error: Json) -> str:
    """Return an error as a part of a sentence. The page of its run has the whole."""
    return ExecutionError.model_validate(error, extra="ignore").brief


SHAPES: Final = {
    "run": "◉", "retry": "↻", "wait": "◐", "ok": "✓", "fail": "✕", "late": "◷", "cancel": "⊘", "expire": "⊗",
    "skip": "»", "active": "▷", "pause": "‖", "due": "○", "offer": "⋯", "shift": "↷",
}  # fmt: skip
"""The symbols of statuses, by their names: each is a letter that all systems have."""


@dataclass(frozen=True, slots=True)
class Status:
    """A status as it is shown."""

    shape: str
    """The name of its symbol."""
    word: str
    css: str


_EXECUTION: Final = complete_table(
    ExecutionStatus,
    {
        ExecutionStatus.RUNNING: Status("run", "Running", "run"),
        ExecutionStatus.RETRYING: Status("retry", "Retrying", "retry"),
        ExecutionStatus.SUSPENDED: Status("wait", "Suspended", "wait"),
        ExecutionStatus.SUCCEEDED: Status("ok", "Succeeded", "ok"),
        ExecutionStatus.FAILED: Status("fail", "Failed", "fail"),
        ExecutionStatus.TIMED_OUT: Status("late", "Timed out", "timeout"),
        ExecutionStatus.CANCELLED: Status("cancel", "Cancelled", "ended"),
        ExecutionStatus.EXPIRED: Status("expire", "Expired", "ended"),
        ExecutionStatus.SKIPPED: Status("skip", "Skipped", "ended"),
    },
)
_TASK: Final = complete_table(
    TaskStatus,
    {
        TaskStatus.ACTIVE: Status("active", "Active", "due"),
        TaskStatus.PAUSED: Status("pause", "Paused", "retry"),
        TaskStatus.COMPLETED: Status("ok", "Completed", "ok"),
        TaskStatus.FAILED: _EXECUTION[ExecutionStatus.FAILED],
        TaskStatus.CANCELLED: _EXECUTION[ExecutionStatus.CANCELLED],
        TaskStatus.EXPIRED: _EXECUTION[ExecutionStatus.EXPIRED],
    },
)
_STEP: Final = complete_table(
    StepStatus,
    {
        StepStatus.WAITING: Status("wait", "Waiting", "wait"),
        StepStatus.SUCCEEDED: _EXECUTION[ExecutionStatus.SUCCEEDED],
        StepStatus.FAILED: _EXECUTION[ExecutionStatus.FAILED],
        StepStatus.TIMED_OUT: _EXECUTION[ExecutionStatus.TIMED_OUT],
        StepStatus.CANCELLED: _EXECUTION[ExecutionStatus.CANCELLED],
    },
)
_DELIVERY: Final = complete_table(
    DeliveryStatus,
    {
        DeliveryStatus.PENDING: Status("due", "Waits", "due"),
        DeliveryStatus.SENDING: Status("run", "Sending", "run"),
        DeliveryStatus.RETRYING: _EXECUTION[ExecutionStatus.RETRYING],
        DeliveryStatus.SENT: Status("ok", "Sent", "ok"),
        DeliveryStatus.FAILED: _EXECUTION[ExecutionStatus.FAILED],
        DeliveryStatus.EXPIRED: _EXECUTION[ExecutionStatus.EXPIRED],
        DeliveryStatus.SUPPRESSED: Status("skip", "Not sent", "ended"),
    },
)
OFFERED: Final = Status("offer", "Waits for a worker", "retry")
"""Of a run that waits for its first worker, and has no record yet."""
OPEN: Final = frozenset(OPEN_STATUSES)
"""The statuses of an open execution."""
BAD: Final = FAILURE_STATUSES
"""The statuses that lie below the line."""


_NEED: Final = {
    NeedCause.WAITING: _EXECUTION[ExecutionStatus.SUSPENDED],
    NeedCause.OVERDUE: _EXECUTION[ExecutionStatus.TIMED_OUT],
    **dict.fromkeys(
        (NeedCause.QUEUE_PAUSED, NeedCause.BUDGET_USED_UP, NeedCause.PAUSED, NeedCause.HELD, NeedCause.LIMITED),
        _TASK[TaskStatus.PAUSED],
    ),
    NeedCause.NO_WORKER: OFFERED,
}


def show_need(cause: str) -> Status:
    """Return a cause of what needs attention as it is shown: in the shape of failures if it has no other."""
    look = _NEED.get(NeedCause(cause)) or _EXECUTION[ExecutionStatus.FAILED]
    return replace(look, word=NEED_WORDS[cause].chip)


def find_block(findings: Iterable[Json]) -> str:
    """Return the first reason in an explanation why the next run of a task cannot start. Empty if it can."""
    return next((each["sentence"] for each in findings if each["reason"] in BLOCKING), "")


def say_halts(answer: Json, rows: Iterable[Json]) -> str:
    """Return what keeps tasks from starting: paused queues and missing workers, and of these rows handlers and budgets.

    `answer` has the overview of the API, or None.
    """
    named = {row.get(name) for row in rows for name in ("owner", "handler")}
    return " ".join(
        each["sentence"]
        for each in (answer["overview"] or {}).get("needs", ())
        if each["cause"] in BLOCKING and (each["path"] == "queues" or each["subject"] in named)
    )


def show_status(name: Status | str) -> Status:
    """Return a status as it is shown. One that only a newer API knows has its own name as its word."""
    if isinstance(name, Status):
        return name
    known = _TASK.get(name) or _EXECUTION.get(name) or _STEP.get(name) or _DELIVERY.get(name)
    return known or Status("due", name.replace("_", " ").capitalize(), "due")
