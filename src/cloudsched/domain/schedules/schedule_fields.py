"""The fields of a schedule, for modules that format one and that `schedule.py` itself imports."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cloudsched.domain.recurrence.rule_streams import SubDaily
    from cloudsched.domain.recurrence.wall_clock import Fold, Gap
    from cloudsched.domain.schedules.calendar_days import CalendarRule


class ScheduleFields(Protocol):
    """The fields needed to format a schedule. `Schedule` documents them."""

    @property
    def at(self) -> datetime | None:
        """The one instant of a schedule that fires once."""

    @property
    def delay(self) -> timedelta | None:
        """The time after its task's creation at which a schedule fires once."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The RRULE values."""

    @property
    def dtstart(self) -> str | None:
        """The local time from which the rules count."""

    @property
    def timezone(self) -> str:
        """The IANA name of the zone of all local times."""

    @property
    def rdates(self) -> tuple[str, ...]:
        """The added occurrences."""

    @property
    def exdates(self) -> tuple[str, ...]:
        """The excluded occurrences."""

    @property
    def gap(self) -> Gap:
        """The policy for local times that a clock change skips."""

    @property
    def fold(self) -> Fold:
        """The instant that a repeated local time means: the first, the second or both."""

    @property
    def sub_daily(self) -> SubDaily:
        """The way in which rules finer than a day step."""

    @property
    def calendars(self) -> tuple[CalendarRule, ...]:
        """The calendars that the schedule respects."""

    @property
    def business_day(self) -> int | None:
        """The free day of the month to which occurrences move."""

    @property
    def follows_owner(self) -> bool:
        """Return whether the time zone is the owner's."""

    @property
    def policies(self) -> Mapping[str, str]:
        """The policies for clock changes that are not the defaults, by field."""
