"""Explain why a task waits and when it is sent next. Pure, like the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cloudsched.emulator.runtime.history import format_rfc3339

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.emulator.model.queue import Queue
    from cloudsched.emulator.model.task import Task

Reason = Literal["RUNNING", "PAUSED", "SCHEDULED", "BACKOFF", "HELD", "CONCURRENCY", "RATE", "DUE"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task is not done."""

    name: str
    reason: Reason
    text: str
    next_at: datetime | None
    """The earliest instant of its next attempt, if known; None if the task waits for something else."""
    dispatch_count: int
    last_status: int | None

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as the control API shows it."""
        return {
            "name": self.name,
            "reason": self.reason,
            "text": self.text,
            "nextTime": format_rfc3339(self.next_at) if self.next_at is not None else None,
            "dispatchCount": self.dispatch_count,
            "lastStatus": self.last_status,
        }


def explain(queue: Queue, task: Task, now: datetime) -> Explanation:
    """Explain why a task of a queue waits."""
    reason, text, next_at = _find_reason(queue, task, now)
    return Explanation(
        name=f"{queue.name}/tasks/{task.id}",
        reason=reason,
        text=text,
        next_at=next_at,
        dispatch_count=task.dispatch_count,
        last_status=task.previous_status,
    )


def _find_reason(  # noqa: PLR0911 - one return for each reason
    queue: Queue, task: Task, now: datetime
) -> tuple[Reason, str, datetime | None]:
    fires_at = task.delayed_until or task.schedule_at
    if task.running_attempts:
        since = task.last_attempt.dispatch_at if task.last_attempt is not None else now
        return "RUNNING", f"Attempt {task.dispatch_count} has been running since {format_rfc3339(since)}.", None
    if queue.paused:
        return "PAUSED", "Its queue is paused; resume the queue.", None
    if fires_at > now:
        if task.delayed_until is not None and task.schedule_at <= now:
            return "HELD", f"A fault delays it until {format_rfc3339(fires_at)}.", fires_at
        if task.dispatch_count:
            failed = f"Attempt {task.dispatch_count} failed ({task.previous_status or 'no response'})"
            return "BACKOFF", f"{failed}; the next is due at {format_rfc3339(fires_at)}.", fires_at
        return "SCHEDULED", f"It is scheduled for {format_rfc3339(fires_at)}.", fires_at
    limit = queue.config.rate_limits.max_concurrent_dispatches
    if queue.running_attempts >= limit:
        return "CONCURRENCY", f"Its queue runs {queue.running_attempts} attempts, and the limit is {limit}.", None
    token_at = queue.bucket.ready_at()
    if token_at > now:
        return "RATE", f"Its queue's rate allows the next dispatch at {format_rfc3339(token_at)}.", token_at
    return "DUE", "It is due, after other tasks that are due as well.", now
