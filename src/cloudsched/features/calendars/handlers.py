"""The built-in handlers of calendars: fetch one again, and plan again what follows one that has changed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.execution import ProgressNote
from cloudsched.domain.documents.system_tasks import ChangeToFollow, Reached
from cloudsched.domain.transitions.outcome import Outcome, go_on
from cloudsched.errors import InvalidPayload

if TYPE_CHECKING:
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.handlers.context import Context
    from cloudsched.runtime.container import Container

_AGAIN_AFTER: Final = timedelta(minutes=1)


def refresh(container: Container, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - its result
    """Fetch a calendar's file again."""
    return container.calendars.refresh(str(payload["calendar"]))


def check_refresh(_container: Container, draft: TaskDraft, _requesters: object) -> None:
    """Check that a task names a calendar. Raises InvalidPayload."""
    if "calendar" not in draft.payload:
        raise _refuse(draft)


def follow(container: Container, ctx: Context, payload: dict[str, Any]) -> Outcome | None:
    """Plan again the tasks that depend on a calendar or a zone, as far as there is time."""
    notes = ctx.progress_notes
    known = Reached.from_text(notes[-1].text) if notes else Reached()
    reached = container.followers.follow(ChangeToFollow.from_payload(payload), known)
    if reached is None:
        return None

    ctx.replace_progress([ProgressNote(at=ctx.now(), text=reached.to_text())])
    return go_on("There are more tasks to plan again, or some that are just being stored.", _AGAIN_AFTER)


def check_follow(_container: Container, draft: TaskDraft, _requesters: object) -> None:
    """Check that a task names a change. Raises InvalidPayload."""
    try:
        ChangeToFollow.from_payload(draft.payload)
    except (KeyError, ValueError):
        raise _refuse(draft) from None


def _refuse(draft: TaskDraft) -> InvalidPayload:
    hint = "Leave it out: the system makes such tasks, with what they need."
    return InvalidPayload("payload", f"is not one of {draft.handler!r}", hint)
