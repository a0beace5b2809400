"""What is asked before a task is run by hand: what is going to happen, and with which payload."""

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


def make_question(task: Json, due: Sequence[datetime], visit: Visit) -> RunQuestion | None:
    """Return the question; None if the caller cannot run the task now."""
    if "trigger" not in task.get("allowedVerbs", ()):
        return None
    children = task.get("children", ())
    payload = task.get("payload", {})
    what = f"All {len(children)} of its tasks run" if children else "It runs"
    then = f" The next one is still due {visit.sure(due[0]).text}." if due else ""
    beside = " Another run of it is open, and goes on beside this one." if task.get("isRunning") else ""
    where = (task.get("pull") or {}).get("queue")
    waits = f" It is offered to the workers of the queue {where}, and starts when one takes it." if where else ""
    return RunQuestion(
        sentence=f"{what} once, now, beside the schedule, which stays as it is.{then}{beside}{waits} "
        "A run that has started cannot be taken back.",
        handler_gets="" if children else _write_gets(task["handler"], is_empty=not payload),
        payload="" if children or not payload else shorten(json.dumps(payload, indent=2, ensure_ascii=False), _SHOWN),
        button="Run it now",
        can_change=not children,
    )


def _write_gets(handler: str, *, is_empty: bool) -> str:
    return f"The handler {handler} gets the task's own payload{', which is empty.' if is_empty else ':'}"
