"""The situation in which a text is read: what was said and when, and which handlers and tasks it may name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence.parse import is_notation
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule
from cloudsched.language.reader import read
from cloudsched.language.result import Problem, Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, time

    from cloudsched.domain.documents.task import Task
    from cloudsched.drafts.request import DraftRequest
    from cloudsched.engine.handlers.handler import Handler

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Situation:
    """In what situation a text is read.

    Attributes:
        request: What was said.
        now: The instant from which its words count.
        handlers: The handlers that may be proposed.
        load_tasks: Returns the owner's tasks that may be meant; only texts that may change one pay for it.
        default_time: The time of day of words without one.
        default_calendar: The calendar that "holidays" means.
        tools: What the assistant may use, where it is on.
    """

    request: DraftRequest
    now: datetime
    handlers: Sequence[Handler]
    load_tasks: Callable[[], Sequence[Task]]
    default_time: time
    default_calendar: str | None = None
    tools: Sequence[Handler] = ()

    @property
    def tasks(self) -> Sequence[Task]:
        """The owner's tasks that may be meant; the one that the context names, if it does."""
        return self.load_tasks()

    def read(self, text: str, current: Schedule | None = None) -> Reading:
        """Return what words of the grammar mean, or a notation such as cron; a date alone is words, and has no time."""
        if current is None and is_notation(text) and not _DATE.fullmatch(text.strip()):
            try:
                return Reading("schedule", Schedule.parse(text, timezone=self.request.timezone, now=self.now))
            except InvalidSchedule as error:
                return Reading("refusal", problems=(Problem((0, len(text)), "invalid", str(error)),))
        return read(
            text,
            now=self.now,
            timezone=self.request.timezone,
            current=current,
            default_time=(self.default_time.hour, self.default_time.minute),
            default_calendar=self.default_calendar,
        )

    def find_handler(self, name: str) -> Handler | None:
        """Return a handler that is open for drafts."""
        return next((each for each in self.handlers if each.name == name), None)
