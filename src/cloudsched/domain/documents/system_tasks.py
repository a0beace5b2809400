"""The system's own tasks: the names of their handlers, which other code compares with, and what their payloads say."""

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
"""The name of the handler of the tasks that plan again what follows a person to another time zone."""
MAX_TOOLS: Final = 20


class AssistantPayload(WireModel):
    """What the assistant may use. What it does is the task's `purpose`."""

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
    """When the writer began."""

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
    """How far the tasks of a change are planned again: the progress of the run that does it, as JSON.

    It is stored with the run, under its lease: a process that stands still and has lost that leaves nothing behind.
    """

    revision: int = 0
    """The revision by which these tasks were planned."""
    after: str = ""
    """The link up to which the tasks are done."""
    has_open_links: bool = False
    """Whether there were links whose tasks were not stored yet."""

    def to_text(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return what such a text says."""
        return cls(**json.loads(text))


class CalendarJobs(Protocol):
    """What the system does with calendars."""

    def refresh(self, key: str) -> str:
        """Fetch a calendar again; return what was found."""
        ...

    def replan(self, change: ChangeToFollow, reached: Reached) -> Reached | None:
        """Plan tasks of a changed calendar again; return how far that came, None if nothing is left to do."""
        ...
