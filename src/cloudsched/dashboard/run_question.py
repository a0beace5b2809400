"""What is asked before a task is run or retried by hand: what is going to happen, and with which payload."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.texts import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit

_SHOWN: Final = 2000
"""How many characters of a payload are shown."""
RESUME_QUESTION: Final = (
    "Its schedule goes on from now: first runs what was still to run when it was paused. What came due since is not "
    "run, and what has failed is not retried."
)
"""What is asked before a task that failures have paused is resumed."""


@dataclass(frozen=True, slots=True)
class RunQuestion:
    """The view model."""

    sentence: str
    handler_gets: str
    payload: str
    """What the handler gets; nothing if that is empty, or for a task of several handlers."""
    button: str
    can_change: bool
    """Whether it can be run with another payload."""


@dataclass(frozen=True, slots=True)
class RetryQuestion:
    """What is asked before an execution is retried."""

    sentence: str
    handler_gets: str
    payload: str
    """What the handler gets; nothing if that is empty or not known, or for a task of several handlers."""


def make_question(task: Json, due: Sequence[datetime], visit: Visit) -> RunQuestion | None:
    """Return the question; None if the caller cannot run the task now."""
    if "trigger" not in task.get("allowedVerbs", ()):
        return None
    children = task.get("children", ())
    handler_gets, payload = _show_payload(task)
    what = f"All {len(children)} of its tasks run" if children else "It runs"
    then = f" The next one is still due {visit.sure(due[0]).text}." if due else ""
    beside = " Another run of it is open, and goes on beside this one." if task.get("isRunning") else ""
    return RunQuestion(
        sentence=f"{what} once, now, beside the schedule, which stays as it is.{then}{beside}{_write_offer(task)} "
        "A run that has started cannot be taken back.",
        handler_gets=handler_gets,
        payload=payload,
        button="Run it now",
        can_change=not children,
    )


def make_retry_question(task: Json, record: Json, *, is_payload_listed: bool = True) -> RetryQuestion:
    """Return the question for one of a task's executions that has ended.

    Args:
        task: The task.
        record: The execution.
        is_payload_listed: Whether the record has the payload of its run, if that had one: lists across tasks leave it
            out.
    """
    is_known = is_payload_listed or record.get("trigger") != "MANUAL"
    handler_gets, payload = _show_payload(task, record.get("payload")) if is_known else (_write_unlisted(task), "")
    return RetryQuestion(
        sentence="It gets one more attempt, at once. What its steps have recorded is kept; what failed is done again, "
        f"and so is what the handler does outside of steps.{_write_offer(task)}",
        handler_gets=handler_gets,
        payload=payload,
    )


def _write_offer(task: Json) -> str:
    where = (task.get("pull") or {}).get("queue")
    return f" It is offered to the workers of the queue {where}, and starts when one takes it." if where else ""


def _show_payload(task: Json, own: Json | None = None) -> tuple[str, str]:
    """Return a sentence on what the handler gets, and that as JSON if there is any; nothing for several handlers."""
    if task.get("children"):
        return "", ""
    payload = task.get("payload", {}) if own is None else own
    whose = "the task's own payload" if own is None else "the payload that this run has for itself"
    said = f"The handler {task['handler']} gets {whose}{':' if payload else ', which is empty.'}"
    return said, shorten(json.dumps(payload, indent=2, ensure_ascii=False), _SHOWN) if payload else ""


def _write_unlisted(task: Json) -> str:
    if task.get("children"):
        return ""
    return f"It was run by hand: the handler {task['handler']} gets the payload of that run, which its page shows."
