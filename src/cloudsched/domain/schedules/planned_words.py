"""A task's schedule in words, for those who see the task and not a text that is about to become one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.schedules.describe import Description, describe

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.schedules.schedule import Schedule


def describe_planned(schedule: Schedule, following: datetime | None, locale: str = "en") -> Description:
    """Return a task's schedule in words, as its page does: its first time is named only while that follows."""
    based = schedule.rebase()
    first = None if based.is_adjusted else based.first()  # by days that may not be known here
    return describe(based, locale, has_begun=first is None or first != following)
