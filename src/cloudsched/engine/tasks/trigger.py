"""Trigger a task by hand, with its own payload or with another one for this run alone."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.json_limits import to_json_value
from cloudsched.domain.transitions import manual_runs
from cloudsched.domain.transitions.merge_patch import edit_draft
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.domain.transitions.lifecycle import Transition
    from cloudsched.domain.transitions.manual_runs import TriggerMark

OWN_PAYLOAD: Final = "With a payload of its own."
"""What a task's history says of such a trigger."""


@dataclass(frozen=True, slots=True)
class TriggerRequest:
    """What a caller asks for."""

    payload: dict[str, Any] | None
    """What this run gets in place of the task's payload."""
    mark: TriggerMark | None
    """The caller's idempotency key, if there is one."""
    validate: Callable[[TaskDraft], object]
    """Checks that the caller could give the task this payload."""
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    """The same however often the request is decided."""

    def decide(self, task: Task, now: datetime) -> Transition:
        """Decide to run a task now; nothing changes if the task remembers that it was asked for.

        Raises:
            InvalidInput: The payload does not fit the handler, is not the caller's to set, or finds no room.
            KeyReused: The key was used for another request.
            NotAllowed: The task is not active, or has too many open runs.
        """
        is_repeated = self.mark is not None and self.mark.find(task) is not None
        if self.payload is not None and not is_repeated:
            self.validate(edit_draft(task, {}).model_copy(update={"payload": self.payload}))
        return manual_runs.trigger(task, now, self.token, self.payload, self.mark)


def to_payload(value: object) -> dict[str, Any]:
    """Return a payload as JSON. Raises InvalidInput if it is no object."""
    payload = to_json_value("payload", value)
    if not isinstance(payload, dict):
        raise InvalidInput("payload", "is not an object", "Give one JSON object, {…}, or a model of its fields.")
    return payload
