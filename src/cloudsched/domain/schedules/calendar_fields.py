"""What a schedule says of calendars: the fields that name them, and their effect on its occurrences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, FailFast, Field

from cloudsched.domain.recurrence.iso8601 import UTC_EPOCH, utc_seconds
from cloudsched.domain.schedules.calendar_rule import CALENDAR_ID, MAX_CALENDARS, CalendarRule
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from cloudsched.domain.recurrence.recurrence_set import Recurrence
    from cloudsched.domain.schedules.calendar_recurrence import CalendarRecurrence


class CalendarFields(BaseModel):
    """The fields of a schedule that name calendars."""

    model_config: ClassVar[ConfigDict] = ConfigDict(defer_build=True)

    no_adjustments: ClassVar[Mapping[str, Any]] = {"calendars": (), "business_day": None}
    """The fields that adjust its occurrences, with the values with which they do not."""
    patterns: ClassVar[Mapping[str, str]] = {
        CALENDAR_ID: "must be 1 to 100 letters, digits, hyphens and underscores",
    }

    calendars: Annotated[tuple[CalendarRule, ...], FailFast(), Field(max_length=MAX_CALENDARS)] = ()
    """The calendars that the schedule respects, each with the policy for occurrences on its days."""
    business_day: Annotated[int, Field(strict=True, ge=-23, le=23)] | None = None
    """Moves every occurrence to that free day of its month: 3 is the third, -1 the last. A free day is on none of
    the calendars."""

    @property
    def is_adjusted(self) -> bool:
        """Return whether it respects a calendar."""
        return bool(self.calendars)

    @property
    def effects(self) -> Sequence[tuple[str, Sequence[str | int]]]:
        """The effect of each calendar, or that of all on a business day.

        `domain.schedules.words` has a text for each kind.
        """
        if self.business_day is not None:
            return [("business day", [self.business_day, *[rule.id for rule in self.calendars]])]
        return [(rule.on, [rule.id]) for rule in self.calendars]

    def check_adjustments(self) -> None:
        """Check that the business day is one, and has calendars to count with. Raises InvalidSchedule."""
        if not (self.business_day and self.calendars):
            problem = "is 0" if self.business_day == 0 else "needs a calendar to count with"
            raise InvalidSchedule(
                "businessDay",
                problem,
                "give 3 for the third, -1 for the last; beside calendars",
            )

    def adjust(self, base: Recurrence) -> Recurrence | CalendarRecurrence:
        """Return the occurrences with the calendars applied.

        Raises InvalidSchedule if their days are not known.
        """
        return self._apply(base) if self.calendars else base

    def _apply(self, base: Recurrence) -> CalendarRecurrence:
        from cloudsched.domain.schedules.calendar_recurrence import apply_calendars  # noqa: PLC0415 - few have any

        return apply_calendars(base, self.calendars, self.business_day)

    @property
    def _applied(self) -> CalendarRecurrence:
        schedule: Any = self  # a `Schedule`, which has rules
        return self._apply(schedule.recurrence)

    def find_skipped(self, instant: datetime, until: datetime) -> datetime | None:
        """Return the first occurrence after ``instant``, up to ``until``, that a calendar leaves out, in UTC."""
        if not self.calendars:
            return None
        seconds = self._applied.first_skipped(utc_seconds(instant) + 1, utc_seconds(until))
        if seconds is None:
            return None
        return UTC_EPOCH + timedelta(seconds=seconds)

    def adjustment_note(self, occurrence: datetime) -> str | None:
        """Return why a calendar left an occurrence out, or from where it moved it, or None."""
        if not self.calendars:
            return None
        from cloudsched.domain.schedules.calendar_recurrence import describe_effect  # noqa: PLC0415 - few have any

        return describe_effect(self._applied, utc_seconds(occurrence))

    def find_moved_day(self, occurrence: datetime) -> date | None:
        """Return the day from which a calendar moved an occurrence, or None if it did not."""
        if not self.calendars:
            return None
        from cloudsched.domain.schedules.calendar_days import to_date  # noqa: PLC0415 - few have any

        move = self._applied.explain(utc_seconds(occurrence))
        return None if move is None else to_date(move.day)

    def with_days(self, contents: Mapping[str, str | None]) -> Self:
        """Return it with the days of its calendars, by their ids.

        A calendar that is not given keeps its days.
        """
        rules = tuple(rule.with_content(contents.get(rule.id, rule.content)) for rule in self.calendars)
        if rules == self.calendars:
            return self
        return self.copy_rules(rules)

    def copy_rules(self, rules: tuple[CalendarRule, ...]) -> Self:
        """Return it with other rules for calendars, which are valid, each once."""
        return self.copy_unchecked(calendars=tuple(dict.fromkeys(rules)))

    def copy_unchecked(self, **changes: Any) -> Self:
        """Return a copy with these fields changed, for changes that leave a schedule valid."""
        return BaseModel.model_copy(self, update=changes)

    def equals_unresolved(self, other: Self) -> bool:
        """Return whether two schedules are the same but for their calendars."""
        return self.copy_rules(()) == other.copy_rules(())

    def resolved_like(self, present: Self) -> Self | None:
        """Return it with the days of a later version of it, or None if that names other calendars."""
        contents = {rule.id: rule.content for rule in present.calendars}
        if not contents.keys() >= {rule.id for rule in self.calendars}:
            return None
        return self.with_days(contents)
