"""The built-in handler that fetches a calendar again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.errors import InvalidPayload
from cloudsched.features.calendars.wiring import CalendarsWiring

if TYPE_CHECKING:
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.runtime.container import Container


def refresh(container: Container, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - its result
    """Fetch a calendar's file again."""
    return CalendarsWiring.of(container).calendars.refresh(str(payload["calendar"]))


def check_refresh(_container: Container, draft: TaskDraft, _requesters: object) -> None:
    """Check that a task names a calendar. Raises InvalidPayload."""
    if "calendar" not in draft.payload:
        hint = "Leave it out: the system makes such tasks, with what they need."
        raise InvalidPayload("payload", f"is not one of {draft.handler!r}", hint)
