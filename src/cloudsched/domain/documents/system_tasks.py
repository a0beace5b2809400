"""The system's own tasks: the names of their handlers, which other code compares with, and their payloads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

ASSISTANT_HANDLER: Final = "assistant"
"""The name of the handler. It has no prefix: people name it themselves."""
BATCH_CHANGE_HANDLER: Final = "cloudsched.change-tasks"
"""The handler that makes a batch change. Such a change never concerns the tasks of this handler."""
ERASE_HANDLER: Final = "cloudsched.erase-person"
EXPORT_HANDLER: Final = "cloudsched.export-person"
FOLLOW_HANDLER: Final = "cloudsched.follow"
"""The name of the handler of the tasks that plan again what depends on a changed record."""


@dataclass(frozen=True, slots=True)
class ChangeToFollow:
    """A change of a record on which schedules depend, as the task that follows it knows it."""

    key: str
    """The id of the record, or the key of the person's zone."""
    revision: int
    """The revision of the record or the zone once the change is written."""
    since: datetime
    """The time at which the writer began."""
    owner: str | None = None
    """The person whose zone changes, None for another record."""

    @property
    def payload(self) -> dict[str, Any]:
        """The payload of the task."""
        content = {"calendar": self.key, "revision": self.revision, "since": self.since.isoformat()}
        if self.owner is None:
            return content
        return {**content, "owner": self.owner}

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> Self:
        """Return the change that a task follows."""
        return cls(
            str(payload["calendar"]),
            int(payload["revision"]),
            datetime.fromisoformat(str(payload["since"])),
            payload.get("owner"),
        )


@dataclass(frozen=True, slots=True)
class Reached:
    """The progress of planning the tasks of a change again: the progress of the run that does it, as JSON.

    It is stored with the run, under its lease, so a stalled process that has lost its lease leaves nothing
    behind.
    """

    revision: int = 0
    """The revision by which these tasks were planned."""
    after: str = ""
    """The link up to which the tasks are done."""
    has_open_links: bool = False
    """True if there were links whose tasks were not stored yet."""

    def to_text(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read it from such a text."""
        return cls(**json.loads(text))
