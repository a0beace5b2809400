"""Build a schedule from drafts of rules, a start and an end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule, SearchLimitReached
from cloudsched.language.calendar import add_length, find_first_day, find_last_day, make_local_time
from cloudsched.language.context import TimeOfDay
from cloudsched.language.nodes import Clock, End, Length, Relative, Unit
from cloudsched.language.result import Option, Refused
from cloudsched.language.rules import MAX_RULES, Draft

if TYPE_CHECKING:
    from cloudsched.language.context import Context
    from cloudsched.language.groups import Plan

BEGINNING = "1970-01-01T00:00:00"
"""DTSTART of a schedule whose meaning does not depend on its start, like a cron expression."""
END_OF_DAY = TimeOfDay(23, 59, 59)
_STEPS = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
_SECONDS = {Unit.SECOND: 1, Unit.MINUTE: 60, Unit.HOUR: 3600}


@dataclass(slots=True)
class Bounds:
    """Where the rules of a plan start and end, as far as that is known."""

    start: date
    """The first day."""
    has_start: bool
    """Whether somebody has chosen it; otherwise the rules begin now."""
    until: date | None = None
    """The last day."""
    until_clock: TimeOfDay = END_OF_DAY
    """When the last day ends."""
    count: int | None = None
    """After how many times the rules end."""
    dtstart: str | None = None
    """The local time that the rules keep counting from, if an edit leaves it as it is."""


class Builder:
    """Gives the rules of a plan their start and their end."""

    def __init__(self, plan: Plan, context: Context, drafts: list[Draft], bounds: Bounds) -> None:
        self.plan, self.context, self.drafts, self.bounds = plan, context, drafts, bounds

    def build(self, exdates: list[str]) -> Schedule:
        """Return the schedule.

        Raises:
            Refused: The schedule never runs, lies in the past, or no set of rules can express it.
            Unclear: The phrase is ambiguous.
        """
        for draft in self.drafts:
            self._fill_days(draft)
            if "skip-back" in self.plan.marks:
                draft.skip = "BACKWARD"
            if "skip-forward" in self.plan.marks:
                draft.skip = "FORWARD"
        for end in self.plan.ends:
            self._apply_end(end)
        if self.bounds.count is not None and self.bounds.until is not None:
            raise Refused("contradiction", self.plan.ends[-1].span, "keep either the number of times or the end date")
        says_seconds = any(time.second for draft in self.drafts for time in draft.times)
        for draft in self.drafts:
            draft.says_seconds = says_seconds
        texts = [text for draft in self.drafts for text in draft.to_rrules()]
        if len(texts) > MAX_RULES:
            raise Refused("too-many")
        if self.bounds.count is not None and len(texts) > 1:
            raise Refused("inexpressible", self.plan.ends[0].span, "give an end date instead of a number of times")
        dtstart = self.bounds.dtstart or self._find_dtstart()
        suffix = ""
        if self.bounds.count is not None:
            suffix = f";COUNT={self.bounds.count}"
        elif self.bounds.until is not None:
            suffix = f";UNTIL={make_local_time(self.bounds.until, *self.bounds.until_clock):%Y%m%dT%H%M%S}"
        rules = [text + suffix for text in texts]
        try:
            schedule = Schedule(rrule=rules, dtstart=dtstart, timezone=self.context.timezone, exdates=exdates)
            if self.context.stretched:
                kept = self._list_needed(exdates, schedule.copy_unchecked(exdates=()))
                schedule = Schedule(rrule=rules, dtstart=dtstart, timezone=self.context.timezone, exdates=kept)
        except SearchLimitReached:
            raise
        except InvalidSchedule as error:
            raise Refused("never", hint=str(error)) from None
        if schedule.next_after(self.context.now) is None and not self.plan.added:
            raise Refused("past" if self.plan.ends else "never")
        return schedule

    def _list_needed(self, exdates: list[str], full: Schedule) -> list[str]:
        """Return the exceptions without those days of a stretch on which nothing runs."""
        kept = []
        for text in exdates:
            if text in self.context.stretched:
                day = datetime.fromisoformat(text)
                begin = self.context.to_instant(day)
                if not full.between(begin, self.context.to_instant(day + timedelta(days=1)) - timedelta(seconds=1)):
                    continue
            kept.append(text)
        return kept

    @property
    def _needs_phase(self) -> bool:
        fine = any(draft.freq in _STEPS and not draft.names_times for draft in self.drafts)
        open_ended = self.bounds.count is None and self.bounds.until is None and not self.bounds.has_start
        return fine or not open_ended or any(draft.interval > 1 for draft in self.drafts)

    def _fill_days(self, draft: Draft) -> None:
        """Fill in the days that a rule takes from its start: "every month" uses the day of the month of the start."""
        if draft.freq == "WEEKLY" and not draft.weekdays:
            draft.weekdays = [(0, self.bounds.start.weekday())]
            self.context.choices.assume(f"It runs on {self.bounds.start:%A}.")
        elif draft.freq == "MONTHLY" and not (draft.weekdays or draft.month_days):
            draft.month_days = [self.bounds.start.day]
            self.context.choices.assume(f"It runs on day {self.bounds.start.day} of the month.")
            if self.bounds.start.day > 28:
                options = (
                    Option("only in months that have that day", ""),
                    Option("on the last day of shorter months", "BACKWARD"),
                )
                draft.skip = str(self.context.choices.pick("month-end", (0, 0), options))
        elif draft.freq == "YEARLY" and not (draft.weekdays or draft.month_days or draft.year_days or draft.weeks):
            draft.months, draft.month_days = draft.months or [self.bounds.start.month], [self.bounds.start.day]
            self.context.choices.assume(f"It runs on {self.bounds.start:%B} {self.bounds.start.day}.")
        else:
            return
        self.floating = True

    floating = False

    def _apply_end(self, end: End) -> None:
        if end.count is not None:
            if self.bounds.count is not None:
                raise Refused("contradiction", end.span)
            if end.before and not self.drafts[0].freq.endswith(("HOURLY", "MINUTELY", "SECONDLY")):
                options = (Option(f"{end.count} times in total", end.count),)
                self.context.choices.pick("count-or-rate", end.span, options)
            self.bounds.count = end.count
            return
        if end.length is not None:
            self._apply_duration(end.length)
            return
        if end.point is None or self.bounds.until is not None:
            raise Refused("contradiction", end.span)
        base = max(self.bounds.start, self.context.today)
        self.bounds.until = find_last_day(end.point, self.context, base)
        if end.before and any(pick.nth for group in self.plan.groups for days in group.days for pick in days.picks):
            raise Refused("inexpressible", end.span)  # "the last Thursday before Christmas"
        if end.before:
            self.bounds.until = find_first_day(end.point, self.context, base) - timedelta(days=1)
        if end.clock is not None:
            self.bounds.until_clock = self.context.resolve_time(end.clock)
        if self.bounds.until < self.bounds.start:
            raise Refused("never" if self.bounds.has_start else "past", end.span)
        self.context.choices.assume(f"The last day is {self.bounds.until:%Y-%m-%d}.")

    def _apply_duration(self, length: Length) -> None:
        """End after a length of time: as a number of occurrences if that is exact, otherwise as a date."""
        draft = self.drafts[0]
        unit, amount = length.amounts[0]
        single = len(self.drafts) == 1 and len(length.amounts) == 1 and len(draft.to_rrules()) == 1
        a_day = max(len(draft.times), 1)
        plain = single and draft.interval == 1 and not (draft.months or draft.positions or self.plan.exceptions)
        if plain and draft.freq == "DAILY" and unit in (Unit.DAY, Unit.WEEK):
            self.bounds.count = amount * (7 if unit == Unit.WEEK else 1) * a_day
        elif plain and draft.freq == "WEEKLY" and unit == Unit.WEEK:
            self.bounds.count = amount * len(set(draft.weekdays)) * a_day
        elif plain and draft.freq == "MONTHLY" and unit == Unit.MONTH and len(draft.month_days) == 1:
            self.bounds.count = amount * a_day
        elif length.finest < Unit.DAY:
            step = _STEPS.get(draft.freq)
            if not single or step is None:
                raise Refused("inexpressible", length.span)
            self.bounds.count = max(amount * _SECONDS[unit] // (step * draft.interval), 1)
        elif draft.freq in _STEPS and not self.bounds.has_start:
            self.bounds.until = add_length(self.bounds.start, length)
            self.bounds.until_clock = TimeOfDay(*self.context.local.timetuple()[3:6])
        else:
            self.bounds.until = add_length(self.bounds.start, length) - timedelta(days=1)
            self.context.choices.assume(f"The last day is {self.bounds.until:%Y-%m-%d}.")

    def _find_dtstart(self) -> str:
        if not self._needs_phase:
            return BEGINNING
        context = self.context
        fine = next((draft for draft in self.drafts if draft.freq in {"HOURLY", "MINUTELY", "SECONDLY"}), None)
        clock = self.plan.start.clock if self.plan.start is not None else None
        if fine is not None:
            return self._find_subdaily_start(clock)
        first = min(time for draft in self.drafts for time in draft.times)
        phase = make_local_time(self.bounds.start, *first)
        if self.floating and not (
            self.bounds.count is not None and phase <= context.local and not self.bounds.has_start
        ):
            return phase.isoformat()
        daily = all(draft.freq == "DAILY" and draft.interval > 1 for draft in self.drafts)
        if (
            daily
            and not self.bounds.has_start
            and self.bounds.count is None
            and not any(d.weekdays or d.months for d in self.drafts)
        ):
            return phase.isoformat()
        return self._find_first_occurrence().isoformat()

    def _find_subdaily_start(self, clock: Clock | None) -> str:
        context = self.context
        point = self.plan.start.point if self.plan.start is not None else None
        if isinstance(point, Relative) and point.kind == "now":
            return context.local.isoformat()
        if self.bounds.has_start:
            time = context.resolve_time(clock) if clock is not None else TimeOfDay(0)
            begin = make_local_time(self.bounds.start, *time)
            return begin.isoformat()
        context.choices.assume("The interval counts from now.")
        if self.bounds.count is not None:  # the first occurrence is one interval from now
            step = max(draft.interval * _STEPS.get(draft.freq, 0) for draft in self.drafts)
            return (context.local + timedelta(seconds=step)).isoformat()
        return context.local.isoformat()

    def _find_first_occurrence(self) -> datetime:
        """Return the first local time of the rules: from the start if the phrase sets one, otherwise after now."""
        context = self.context
        texts = [text for draft in self.drafts for text in replace(draft, interval=1).to_rrules()]
        begin = datetime(self.bounds.start.year, self.bounds.start.month, self.bounds.start.day)  # noqa: DTZ001 -- on the zone's clock
        if not self.bounds.has_start:
            begin = max(begin, context.local + timedelta(seconds=1))
        day = datetime(begin.year, begin.month, begin.day)  # noqa: DTZ001 -- see above
        try:
            free = Schedule(rrule=texts, dtstart=day.isoformat(), timezone="UTC")
        except SearchLimitReached:
            raise
        except InvalidSchedule as error:
            raise Refused("never", hint=str(error)) from None
        clock = self.plan.start.clock if self.plan.start is not None else None
        if clock is not None and self.bounds.has_start:
            begin = make_local_time(self.bounds.start, *context.resolve_time(clock))
        moment = begin - timedelta(seconds=1)
        result = free.next_after(moment.replace(tzinfo=UTC))
        if result is None:
            raise Refused("never")
        return result.replace(tzinfo=None)
