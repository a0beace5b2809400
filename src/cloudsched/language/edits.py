"""Split a schedule into drafts of its rules, and rebuild it after a change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.rrule import Frequency, parse_rule
from cloudsched.language.builder import BEGINNING, Bounds, Builder
from cloudsched.language.calendar import find_first_day
from cloudsched.language.context import TimeOfDay
from cloudsched.language.named_calendars import add_calendars
from cloudsched.language.refusals import Refused
from cloudsched.language.rules import Draft

if TYPE_CHECKING:
    from cloudsched.domain.recurrence.rrule import Rule
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.language.context import Context
    from cloudsched.language.groups import Plan


@dataclass
class Edit:
    """A recurring schedule that is being edited.

    Attributes:
        drafts: The rules.
        current: The schedule before the change, anchored.
        dtstart: Its original DTSTART.
        until: Its end, in local time.
        count: Its number of occurrences.
        exdates: The occurrences it leaves out.
        moved: The days have changed, so intervals count from a new start.
    """

    current: Schedule
    drafts: list[Draft]
    dtstart: datetime
    until: datetime | None = None
    count: int | None = None
    exdates: list[str] = field(default_factory=list)
    moved: bool = False

    @property
    def times(self) -> list[TimeOfDay]:
        """The times of day that all rules share.

        Raises:
            Refused: The rules have different times.
        """
        first = self.drafts[0].times
        if any(draft.times != first for draft in self.drafts):
            raise Refused(
                "no-update", hint="it has different times on different days; describe the whole schedule again"
            )
        return list(first)

    def build(self, plan: Plan, context: Context) -> Schedule:
        """Build the edited schedule.

        Raises:
            Refused: No occurrence is left, or no rule can express the end.
        """
        own_start = self.dtstart.isoformat() != BEGINNING
        begin = max(self.dtstart.date(), context.today) if own_start else context.today
        bounds = Bounds(begin, has_start=own_start and self.dtstart > context.local)
        if plan.start is not None:
            bounds.start, bounds.has_start = find_start(plan, context), True
        if not plan.ends:
            bounds.count = self.count
            if self.until is not None:
                bounds.until, bounds.until_clock = self.until.date(), TimeOfDay(*self.until.timetuple()[3:6])
        if own_start and plan.start is None and not self.moved:
            first = min((time for draft in self.drafts for time in draft.times), default=None)
            kept = self.dtstart if first is None else datetime.combine(self.dtstart.date(), datetime.min.time())
            if first is not None:
                kept = kept.replace(hour=first.hour, minute=first.minute, second=first.second)
            bounds.dtstart = kept.isoformat()
        built = Builder(plan, context, self.drafts, bounds).build(self.exdates)
        unchanged = {name: getattr(self.current, name) for name in ("gap", "fold", "sub_daily", "calendars")}
        if not any(group.days for group in plan.groups):
            unchanged["business_day"] = self.current.business_day
        return add_calendars(built.model_copy(update=unchanged), plan, context)


def find_start(plan: Plan, context: Context) -> date:
    """Return the first day of a plan."""
    if plan.start is None or plan.start.point is None:
        return context.today
    return find_first_day(plan.start.point, context, context.today)


def take_apart(current: Schedule, context: Context) -> Edit:
    """Split a schedule into an `Edit`.

    Raises:
        Refused: The schedule has parts that no phrase can express.
    """
    anchored = current.anchored(context.now)
    if anchored.dtstart is None or not anchored.rules or anchored.rdates:
        raise Refused("no-update", hint="describe the whole schedule again")
    dtstart = datetime.fromisoformat(anchored.dtstart)
    rules = [parse_rule(rule) for rule in anchored.rules]
    ends = {(rule.until, rule.count) for rule in rules}
    if len(ends) > 1:
        raise Refused("no-update", hint="its rules end at different times; describe the whole schedule again")
    until, count = ends.pop()
    last = None
    if until is not None:
        if until.is_utc:
            raise Refused("no-update", hint="its end is given in UTC; describe the whole schedule again")
        last = datetime(1970, 1, 1) + timedelta(seconds=until.seconds)  # noqa: DTZ001 -- on the zone's clock
    drafts = _merge_drafts([_build_draft(rule, dtstart) for rule in rules])
    return Edit(anchored, drafts, dtstart, last, count, list(anchored.exdates))


def _build_draft(rule: Rule, dtstart: datetime) -> Draft:
    fine = rule.frequency > Frequency.DAILY
    if (fine and (rule.hours or rule.minutes or rule.seconds)) or (rule.positions and len(rule.hours) > 1):
        raise Refused("no-update", hint="describe the whole schedule again")
    draft = Draft(
        rule.frequency.name,
        rule.interval,
        [(day.nth, day.weekday) for day in rule.weekdays],
        list(rule.month_days),
        list(rule.year_days),
        list(rule.week_numbers),
        list(rule.months),
        list(rule.positions),
        skip="" if rule.skip == "OMIT" else rule.skip,
        week_start=rule.week_start,
    )
    if not fine:
        hours, minutes = rule.hours or (dtstart.hour,), rule.minutes or (dtstart.minute,)
        seconds = rule.seconds or (dtstart.second,)
        draft.times = [TimeOfDay(*time) for time in product(hours, minutes, seconds)]
    if draft.freq == "WEEKLY" and not draft.weekdays:
        draft.weekdays = [(0, dtstart.weekday())]
    named = draft.weekdays or draft.month_days or draft.year_days or draft.weeks
    if draft.freq in {"MONTHLY", "YEARLY"} and not named:
        draft.month_days = [dtstart.day]
        if draft.freq == "YEARLY":
            draft.months = draft.months or [dtstart.month]
    return draft


def _merge_drafts(drafts: list[Draft]) -> list[Draft]:
    """Join rules that differ only in their times of day."""
    joined: list[Draft] = []
    for draft in drafts:
        twin = next((one for one in joined if replace(one, times=[]) == replace(draft, times=[])), None)
        if twin is not None:
            twin.times = sorted(set(twin.times) | set(draft.times))
        else:
            joined.append(draft)
    return joined
