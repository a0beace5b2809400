"""Triggers that are safe to repeat: by an idempotency key of the caller's, which the task remembers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.execution import Trigger
from cloudsched.domain.documents.manual_request import KeyedTrigger
from cloudsched.domain.transitions.planning import execution_id
from cloudsched.errors import KeyReused

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task

MAX_KEYED_TRIGGERS: Final = 50
"""How many of the latest keys a task remembers: about 7 KB."""


@dataclass(frozen=True, slots=True)
class TriggerMark:
    """The idempotency key of a trigger."""

    key: str
    """A hash of the key and of who uses it."""
    fingerprint: str
    """A hash of what is asked for."""

    @classmethod
    def of(cls, key: str, caller: str, payload: dict[str, Any] | None) -> TriggerMark:
        """Return the mark of a key that a caller gives with a payload; None means the task's."""
        return cls(_hash([caller, key]), _hash(payload))

    def find(self, task: Task) -> str | None:
        """Return the execution that this very request has asked for before, if the task remembers it.

        Raises:
            KeyReused: The key was used for another request.
        """
        found = next((each for each in task.keyed_triggers if each.key == self.key), None)
        if found is not None and found.fingerprint != self.fingerprint:
            hint = "A key identifies one request; use a new key for a different request."
            raise KeyReused("Idempotency-Key", "was already used for a different request", hint)
        return None if found is None else found.execution_id

    def add_to(self, task: Task, execution: str) -> tuple[KeyedTrigger, ...]:
        """Return the triggers that the task remembers once this one has asked for an execution."""
        kept = task.keyed_triggers[-MAX_KEYED_TRIGGERS + 1 :]
        return (*kept, KeyedTrigger(key=self.key, fingerprint=self.fingerprint, execution_id=execution))


def find_triggered(task: Task, mark: TriggerMark | None) -> str | None:
    """Return the execution that a trigger has asked for, of the task that the trigger returned."""
    if mark is not None:
        return mark.find(task)
    manual = task.last_manual_request
    return None if manual is None else execution_id(manual.at, Trigger.MANUAL, manual.at)


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
