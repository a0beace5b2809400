"""The system's own tasks: the names of their handlers, which other code compares with, and their payloads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Protocol, Self

from pydantic import Field, StringConstraints

from cloudsched.domain.documents.document import WireModel

ASSISTANT_HANDLER: Final = "assistant"
"""The name of the handler. It has no prefix: people name it themselves."""
ERASE_HANDLER: Final = "cloudsched.erase-person"
EXPORT_HANDLER: Final = "cloudsched.export-person"
FOLLOW_HANDLER: Final = "cloudsched.follow-person"
"""The name of the handler of the tasks that plan again, in another time zone, the tasks that follow a person."""
MAX_TOOLS: Final = 20


class AssistantPayload(WireModel):
    """The tools of the assistant. Its instructions are the task's `purpose`."""

    tools: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...],
        Field(max_length=MAX_TOOLS),
    ] = ()
    """The handlers that it may call, of those that the app opens to it."""


REFRESH_HANDLER: Final = "cloudsched.calendar.refresh"
"""The name of the handler of the tasks that fetch calendars from their URLs."""
REPLAN_HANDLER: Final = "cloudsched.calendar.replan"
"""The name of the handler of the tasks that plan a changed calendar's tasks again."""


@dataclass(frozen=True, slots=True)
class ChangeToFollow:
    """A change of a calendar, as the task that follows it knows it."""

    calendar: str
    """The calendar's id."""
    revision: int
    """The calendar's revision once the change is written."""
    since: datetime
    """The time at which the writer began."""

    @property
    def payload(self) -> dict[str, Any]:
        """The payload of the task."""
        since = self.since.isoformat()
        return {"calendar": self.calendar, "revision": self.revision, "since": since}

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> Self:
        """Return the change that a task follows."""
        return cls(
            str(payload["calendar"]),
            int(payload["revision"]),
            datetime.fromisoformat(str(payload["since"])),
        )


@dataclass(frozen=True, slots=True)
class Reached:
    """The progress of planning the tasks of a change again: the progress of the run that does it, as JSON.

    It is stored with the run, under its lease, so a stalled process that has lost its lease leaves nothing behind.
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


class CalendarJobs(Protocol):
    """The system's work on calendars."""

    def refresh(self, key: str) -> str:
        """Fetch a calendar again, and return the result in words."""
        ...

    def replan(self, change: ChangeToFollow, reached: Reached) -> Reached | None:
        """Plan tasks of a changed calendar again. Return the progress, or None if nothing is left to do."""
        ...
