r"""The schedule: when a task is due, in any time zone.

A schedule is one instant, one delay from its task's creation, or a recurrence set of RFC 5545: the union of
RRULEs and RDATEs from a DTSTART on, without the EXDATEs, on the wall clock of an IANA time zone. Policies of
the schedule determine the effect of clock changes:

======== ============ =====================================================================================
policy   value        meaning
======== ============ =====================================================================================
gap      ``SHIFT``    a local time that does not exist is read with the offset before the gap: 02:30 fires
                      at 03:30, and counts (RFC 5545, section 3.3.5, erratum 4271)
\         ``SKIP``     it does not fire, and COUNT does not count it
fold     ``FIRST``    a local time that occurs twice fires the first time
\         ``LAST``     it fires the second time
\         ``BOTH``     it fires both times
subDaily ``ELAPSED``  a rule finer than a day steps in real time: hourly is once every real hour. Its BYxxx
                      parts filter by what the clock shows
\         ``WALL``     it steps on the clock face, under ``gap`` and ``fold``: every six hours stays at 2, 8,
                      14 and 20. An instant that two periods produce fires once
======== ============ =====================================================================================

COUNT counts the instants that its rule produces under these policies, before EXDATEs are removed. All
occurrences are on whole seconds, except one given as a single instant.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from functools import wraps
from itertools import islice, pairwise, takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.alias_generators import to_camel

from cloudsched.domain.any_case import AnyCase
from cloudsched.domain.in_words import NO_ZONE, describe_error, list_errors, list_given
from cloudsched.domain.recurrence import exdates, time_zones
from cloudsched.domain.recurrence.allowance import spend_steps
from cloudsched.domain.recurrence.iso8601 import (
    EPOCH,
    FIRST_YEAR,
    LAST_YEAR,
    UTC_EPOCH,
    parse_moment,
    reject_number,
    to_utc,
    utc_seconds,
)
from cloudsched.domain.recurrence.recurrence_set import Recurrence, SubDaily, compile_recurrence, list_rules
from cloudsched.domain.recurrence.rrule import MAX_LENGTH, Frequency, normalize_rule, parse_rule
from cloudsched.domain.recurrence.time_zones import find_zone, is_fixed, load_tzinfo, require_zone
from cloudsched.domain.recurrence.wall_clock import Fold, Gap, clock_of, wall_clock
from cloudsched.domain.schedules.calendar_fields import CalendarFields
from cloudsched.errors import InvalidSchedule, Portable, SearchLimitReached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cloudsched.domain.schedules.describe import Description

_SECOND: Final = timedelta(seconds=1)
_TICK: Final = timedelta(microseconds=1)
OWNER_ZONE: Final = "owner"
"""The value of `timezone` that stands for the zone of the task's owner."""
_NAMED_FROM: Final = "1971"
"""A start before that was not chosen by a person. Words omit it, unless intervals count from it."""
MAX_LISTED = 100_000
MAX_RULES = 20
MAX_DATES = 1000
_DAY: Final = timedelta(days=1)
_COUNT: Final = re.compile(r";?\bCOUNT=\d+", re.IGNORECASE)
_END: Final = re.compile(r";?\b(?:COUNT|UNTIL)=[^;]+", re.IGNORECASE)
_LOOKED_BACK: Final = timedelta(days=400)
"""The time before a start from which an occurrence may be moved behind it."""
_STEPS: Final = (
    *(timedelta(days=1461), timedelta(days=1461), timedelta(weeks=1), _DAY),
    *(timedelta(hours=1), timedelta(minutes=1), _SECOND),
)
"""After how long the dates of each frequency come again, in its order."""
_COMPARED: Final = 20
_MAX_LOST: Final = 50
_DATE_STEPS: Final = 3
"""The steps of a search that it takes to read one of the dates that a request gives."""
_get_parts: Final = attrgetter(
    *("rrule", "dtstart", "timezone", "rdates", "exdates", "gap", "fold", "sub_daily", "start_zone")
)
_TIMES: Final = frozenset({"at", "delay", "local", "dtstart", "rdates"})
"""The fields that say when it happens. An empty rule without any of these is once, now."""


def _read_instant(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise InvalidSchedule("at", *NO_ZONE)
    try:
        to_utc(at)
    except ValueError:
        hint = f"{FIRST_YEAR} to {LAST_YEAR}, in UTC as well"
        raise InvalidSchedule("at", f"the year {at.year} is out of range", hint) from None
    return UTC_EPOCH + (at - UTC_EPOCH)  # a plain datetime, even if the store returns a subclass


def _read_rules(value: object) -> object:
    """Return the canonical text of rules: a string for one, a tuple for several, None for none.

    An empty text is none: it is how tables and other schedulers store that something happens once.
    """
    if value == "":
        return None
    if isinstance(value, str):
        if len(value) > MAX_LENGTH:
            raise InvalidSchedule(
                "rrule",
                f"the rule is {len(value)} characters long",
                f"at most {MAX_LENGTH}",
            )
        text = normalize_rule(value)
        if not text:
            raise InvalidSchedule("rrule", "is empty", "write it like FREQ=DAILY, or leave it out")
        if "=" not in text:
            raise InvalidSchedule("rrule", f"{value[:40]!r} is not a rule", _rule_hint(value))
        return text
    if isinstance(value, list | tuple) and all(isinstance(rule, str) for rule in value):
        if len(value) > MAX_RULES:
            raise InvalidSchedule("rrule", f"{len(value)} rules", f"at most {MAX_RULES}")
        rules = tuple(dict.fromkeys(_read_rules(rule or " ") for rule in value))
        return rules if len(rules) > 1 else next(iter(rules), None)
    return value


def _rule_hint(text: str) -> str:
    from cloudsched.domain.recurrence.notations import is_notation  # noqa: PLC0415 -- only for errors

    like = "write it like FREQ=WEEKLY;BYDAY=MO,WE"
    if is_notation(text):
        return f"{like}; cron is no rule but the schedule itself: {text[:40]!r}"
    return like


def _read_dtstart(value: object) -> object:
    if isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, str):
        moment = parse_moment(value, "dtstart")
        if moment.offset is not None:
            hint = "leave the offset out; timezone says where"
            raise InvalidSchedule("dtstart", "is a local time and takes no offset", hint)
        return (EPOCH + timedelta(seconds=moment.wall)).isoformat()
    return value


def _read_dates(value: object, info: ValidationInfo) -> object:
    """Return a list of dates and times as canonical ISO texts, which those of a stored schedule are."""
    field = str(info.field_name)
    if info.context and info.context.get("stored"):
        return value
    if isinstance(value, str | datetime):
        value = (value,)
    if isinstance(value, list | tuple):
        if len(value) > MAX_DATES:
            raise InvalidSchedule(field, f"{len(value)} dates", f"at most {MAX_DATES}")
        spend_steps(_DATE_STEPS * len(value))
        dates = (date.isoformat() if isinstance(date, datetime) else date for date in value)
        return tuple(
            parse_moment(date, f"{field}.{number}").isoformat() if isinstance(date, str) else date
            for number, date in enumerate(dates)
        )
    return value


def _read_delay(value: object) -> object:
    if isinstance(value, bool):
        raise InvalidSchedule("delay", f"is {value}", "give a length of time, such as PT10M")
    return value


class _FieldFault(Portable, ValueError):
    """Lets pydantic go on with the other fields of a schedule after an error of ours."""

    def __init__(self, fault: InvalidSchedule) -> None:
        self.fault = fault
        super().__init__(fault.problem)


def _collect(read: Callable[..., Any]) -> Callable[..., Any]:
    """Return a validator of a field whose errors are collected, and told together."""

    @wraps(read)
    def call(*given: Any) -> Any:  # noqa: ANN401 - whatever the validator takes and returns
        try:
            return read(*given)
        except SearchLimitReached:
            raise
        except InvalidSchedule as error:
            raise _FieldFault(error) from None

    return call


def _require_known_zone(zone: str, info: ValidationInfo) -> str:
    if zone != "UTC" and not (info.context and info.context.get("stored")):  # all data know UTC
        require_zone(zone)
    return zone


class Schedule(CalendarFields):
    """One instant, a delay, or a recurrence set. It is immutable, and camelCase in JSON and Firestore.

    Attributes:
        at: The one instant of a schedule that fires once, aware.
        delay: The time after the creation (or the edit) at which it fires once, 0 for now. JSON: an ISO 8601
            duration. A stored schedule has the instant instead.
        rrule: One RRULE value such as ``FREQ=WEEKLY;BYDAY=MO``, or several, which are united.
        dtstart: The local time, as ISO text, from which the rules count. It supplies the parts that they do
            not name. Without it the schedule is not anchored yet: see `anchor`.
        timezone: The IANA name of the zone of all local times here. With ``at`` alone, or ``delay``, it is
            only shown.
        local: The local time of a schedule that fires once. Its clock's time counts: ``at`` follows from it,
            and moves if a new release of the time zone data says so.
        rdates: More occurrences: local times, instants with an offset, or dates (at DTSTART's time of day).
        exdates: Occurrences to leave out: local times, instants, or dates (everything on that local day).
        gap: The policy for local times that a clock change skips.
        fold: The instants that a local time means if a clock change repeats it: the first, the last or both.
        sub_daily: The clock by which rules finer than a day step: elapsed time, or the wall clock.
        follows_owner: True if `timezone` is the zone of the task's owner, and changes with it.
            ``timezone="owner"`` says so, too: until the schedule is given to a task, it is read in UTC then.
        start_zone: The zone of ``dtstart``, if `timezone` has changed since: rules of elapsed time still
            count from that instant. Set by the scheduler.

    Raises:
        InvalidSchedule: A field is not valid, the fields contradict each other, or the schedule can never
            fire.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, defer_build=True
    )

    at: Annotated[datetime, AfterValidator(_collect(_read_instant)), BeforeValidator(reject_number)] | None = None
    delay: Annotated[timedelta | None, BeforeValidator(_collect(_read_delay))] = None
    rrule: Annotated[str | tuple[str, ...] | None, BeforeValidator(_collect(_read_rules))] = None
    dtstart: Annotated[str | None, BeforeValidator(_collect(_read_dtstart))] = None
    timezone: Annotated[str, AfterValidator(_collect(_require_known_zone))] = "UTC"
    rdates: Annotated[tuple[str, ...], BeforeValidator(_collect(_read_dates))] = ()
    exdates: Annotated[tuple[str, ...], BeforeValidator(_collect(_read_dates))] = ()
    gap: Annotated[Gap, AnyCase] = "SHIFT"
    fold: Annotated[Fold, AnyCase] = "FIRST"
    sub_daily: Annotated[SubDaily, AnyCase] = "ELAPSED"
    local: Annotated[str | None, BeforeValidator(_collect(_read_dtstart))] = None
    follows_owner: Annotated[bool, Field(strict=True)] = False
    start_zone: str | None = None

    @classmethod
    def once(cls, at: datetime, timezone: str | None = None) -> Self:
        """Return the schedule of one instant, which is shown in a zone. None is UTC, here and below.

        Raises:
            InvalidSchedule: ``at`` has no time zone.

        >>> schedule = Schedule.once(datetime(2027, 1, 4, 9, tzinfo=UTC), "Europe/Paris")
        """
        return cls._in(timezone, at=at)

    @classmethod
    def after(cls, delay: timedelta, timezone: str | None = None) -> Self:
        """Return the schedule of one run, a time after the task is created. ``timedelta(0)`` is now.

        Raises:
            InvalidSchedule: The delay is no timedelta, or negative.

        >>> later = Schedule.after(timedelta(minutes=4))
        >>> task = app.create(handler="remind", payload={"about": "Tea"}, schedule=later)
        """
        if not isinstance(delay, timedelta):
            hint = "give a timedelta, such as timedelta(minutes=5); for the next occurrence use next_after"
            raise InvalidSchedule("delay", f"is {delay!r}"[:60], hint)
        return cls._in(timezone, delay=delay)

    @classmethod
    def _in(cls, zone: str | None, **fields: Any) -> Self:
        """Return a schedule in a zone. If none is named, the edit of a task with it stays in the task's."""
        if zone is None:
            return cls(**fields)
        return cls(**fields, timezone=zone)

    @classmethod
    def once_at(cls, local: datetime, timezone: str) -> Self:
        """Return the schedule of one local time. Its clock's time counts, whatever governments do until then.

        Raises:
            InvalidSchedule: ``local`` has a time zone, or there is no zone of that name.

        >>> print(Schedule.once_at(datetime(2027, 7, 4, 9), "Europe/Paris").at)
        2027-07-04 07:00:00+00:00
        """
        return cls(local=local.isoformat(), timezone=timezone)

    @classmethod
    def every(
        cls,
        interval: timedelta,
        *,
        start: datetime | None = None,
        timezone: str | None = None,
    ) -> Self:
        """Return the schedule of one occurrence every ``interval``.

        Whole days and weeks keep their local time through clock changes. Any other interval is real, elapsed
        time.

        Args:
            interval: Whole seconds, at least one.
            start: The first occurrence, aware. Without it the schedule is not anchored yet.
            timezone: The IANA name of the zone whose days count.

        Raises:
            InvalidSchedule: The interval is not a positive number of whole seconds.

        >>> Schedule.every(timedelta(days=2), timezone="Europe/Paris").rrule
        'FREQ=DAILY;INTERVAL=2'
        """
        if not isinstance(interval, timedelta):
            problem = f"is {interval!r}"[:60]
            raise InvalidSchedule("interval", problem, "give a timedelta, such as timedelta(minutes=5)")
        seconds = interval.days * 86_400 + interval.seconds
        if seconds < 1 or interval.microseconds:
            raise InvalidSchedule("rrule", f"cannot repeat every {interval}", "give whole seconds, 1 or more")
        units = (("WEEKLY", 604_800), ("DAILY", 86_400), ("HOURLY", 3600), ("MINUTELY", 60), ("SECONDLY", 1))
        name, length = next(unit for unit in units if seconds % unit[1] == 0)
        count = seconds // length
        rule = f"FREQ={name}" + (f";INTERVAL={count}" if count > 1 else "")
        schedule = cls._in(timezone, rrule=rule)
        return schedule if start is None else schedule.anchor(start)

    @classmethod
    def parse(cls, text: str, timezone: str | None = None, *, now: datetime | None = None) -> Self:
        """Parse a schedule from text.

        Accepts an RRULE value, an iCalendar block, a cron expression of five fields, an ISO 8601 instant or
        local time, and an ISO 8601 duration from ``now``.

        Args:
            text: The schedule.
            timezone: The zone of local times without one.
            now: The start of a duration. If given, an RRULE without DTSTART is anchored here. ``now`` and a
                duration of nothing stay `is_now`: whoever plans them decides what time it is.

        Raises:
            InvalidSchedule: The text is none of these, or not valid.

        >>> Schedule.parse("0 9 * * MON", "Europe/Paris").rrule
        'FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0'
        """
        from cloudsched.domain.recurrence.notations import parse_fields  # noqa: PLC0415 -- stored schedules are no text

        fields = parse_fields(text, timezone=timezone or "UTC", now=now)
        if timezone is None and fields.get("timezone") == "UTC" and "DTSTART" not in text.upper():
            del fields["timezone"]  # which nobody has named
        schedule = cls(**fields)
        if now is None or schedule.is_anchored or schedule.is_now:
            return schedule
        return schedule.anchor(now)

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        """Refuse a schedule that contradicts itself or never fires.

        One from the store was validated when created.
        """
        if info.context and info.context.get("stored"):
            return self
        if self.follows_owner or self.start_zone is not None:
            self._check_following()
        if self.local is not None:
            self._place()
        if self.business_day is not None:
            self.check_adjustments()

        if self.at is not None or self.delay is not None:
            self._check_once()
        elif self.dtstart is None:
            self._check_without_start()
        elif self.recurrence.first is None:
            raise InvalidSchedule("rrule", "can never fire", "check its days, its UNTIL and the EXDATEs")
        return self

    def _check_without_start(self) -> None:
        """Check a recurrence without DTSTART, which gets one when its task is created."""
        if self.rrule is None:
            lines = {"exdates": 'rrule "FREQ=DAILY"', "rdates": 'dtstart "2027-01-01T09:00:00"'}
            beside = [f"; beside {each} give {line}" for each, line in lines.items() if getattr(self, each)]
            hint = f"give `at` for one instant, or `rrule` for several{''.join(beside)}"
            raise InvalidSchedule("rrule", "is missing", hint)
        for rule in self.rules:
            parse_rule(rule)

    def _check_once(self) -> None:
        single = "at" if self.at is not None else "delay"
        for field in ("delay", "rrule", "dtstart", "rdates", "exdates", *self.no_adjustments):
            if field != single and getattr(self, field) not in (None, ()):
                kind = "instant" if single == "at" else "delay"
                hint = f"give one {kind}, or a recurrence"
                raise InvalidSchedule(field, f"cannot stand beside `{single}`", hint)
        if self.delay is not None and self.delay < timedelta(0):
            raise InvalidSchedule("delay", f"is {self.delay}, in the past", "give 0 for now, or more")

    def _check_following(self) -> None:
        """Refuse fields that cannot follow an owner from zone to zone."""
        if self.start_zone is not None:
            require_zone(self.start_zone)
            if not (self.follows_owner and self.has_elapsed_rules):
                hint = "leave it out; the scheduler sets it"
                raise InvalidSchedule(
                    "startZone",
                    "is only for rules of elapsed time that follow their owner",
                    hint,
                )

        if not self.follows_owner:
            return
        if self.delay is not None:
            hint = "leave it out, or give a time of day"
            raise InvalidSchedule("timezone", "is the owner's, and a delay is the same everywhere", hint)

        # Elapsed time keeps its instants wherever the owner goes, and so do exceptions to it.
        for field in ("rdates",) if self.has_elapsed_rules else ("rdates", "exdates"):
            for number, text in enumerate(getattr(self, field)):
                if parse_moment(text, f"{field}.{number}").offset is not None:
                    hint = "give a local time, without an offset"
                    raise InvalidSchedule(f"{field}.{number}", "is an instant, which follows nobody", hint)

        if not self.has_elapsed_rules:
            return
        if self.rdates or any(parse_rule(each).frequency <= Frequency.DAILY for each in self.rules):
            problem = "has elapsed time beside local times, and only these follow their owner"
            raise InvalidSchedule(
                "rrule",
                problem,
                'make two tasks, or count on the clock with subDaily "WALL"',
            )

    def _place(self) -> None:
        """Set the instant of a local time, in a schedule that is being made."""
        made = vars(self)
        made["at"] = self._find_local()
        self.__pydantic_fields_set__.add("at")
        if is_fixed(self.timezone) and not self.follows_owner:
            made["local"] = None

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:  # noqa: ANN401 - anything
        """Replace pydantic's error with one of our own, which says what to write instead.

        A schedule is immutable, so one that was checked already is taken as it is.
        """
        if type(data) is cls:
            return data
        if isinstance(data, dict) and data.get("timezone") == OWNER_ZONE:
            known = {name: value for name, value in data.items() if name != "follows_owner"}
            data = {**known, "timezone": "UTC", "followsOwner": True}
        if isinstance(data, dict) and data.get("rrule") == "" and data.keys().isdisjoint(_TIMES):
            data = {**{name: value for name, value in data.items() if name != "rrule"}, "delay": timedelta(0)}
        try:
            return handler(data)
        except ValidationError as error:
            is_wire = info.context is not None and "wire" in info.context
            found = [cls._describe(each, is_wire=is_wire) for each in list_errors(error, "extra_forbidden")]
        found[0].others = tuple({each.field: each for each in found if each.field != found[0].field}.values())
        raise found[0]

    @classmethod
    def _describe(cls, error: dict[str, Any], *, is_wire: bool) -> InvalidSchedule:
        parts = [str(part) for part in error["loc"] if not str(part).startswith("function-")]
        # Without which of its types it is.
        field = ".".join(parts[:1] if "rrule" in parts else parts) or "(schedule)"
        carried = error.get("ctx", {}).get("error")
        if isinstance(carried, _FieldFault):
            return carried.fault
        if error["type"] != "extra_forbidden" or "." in field:
            return InvalidSchedule(field, *describe_error(error, cls.patterns))
        fields = sorted(cls.model_fields.items(), key=lambda field: field[0] in cls.no_adjustments)
        names = [(each.alias or name) if is_wire else name for name, each in fields]
        near = get_close_matches(field, names, n=1)
        if near:
            hint = f"did you mean {near[0]}?"
        else:
            hint = f"there are: {', '.join(names)}"
        if field == "cron":
            hint = "give the cron expression itself as the schedule"
            if not is_wire:
                hint = f'write Schedule.parse("0 9 * * 1-5"), or {hint}'
        return InvalidSchedule(field, "is no field of a schedule", hint)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return list_given(self)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002 - pydantic's
        """Return a copy with these fields changed. Unlike pydantic's own, it is checked like a new schedule.

        Raises:
            InvalidSchedule: As for a new one.
        """
        return type(self).model_validate({**dict(self), **(update or {})})

    @property
    def rules(self) -> tuple[str, ...]:
        """The RRULE values, none for a single instant."""
        return list_rules(self.rrule)

    @property
    def is_one_time(self) -> bool:
        """Return whether it fires at most once: a single time, a DTSTART without rules, or a COUNT of 1."""
        if self.rrule:
            is_alone = isinstance(self.rrule, str) and not self.rdates
            return is_alone and re.search(r"\bCOUNT=0*1\b", str(self.rrule)) is not None
        return self.is_single_time or not (self.rdates or self.fold == "BOTH")

    @property
    def is_single_time(self) -> bool:
        """Return whether it is nothing but one instant, known yet or not, or one local time."""
        if self.at is not None or self.delay is not None:
            return True
        is_plain = not (self.rrule or self.rdates or self.exdates or self.is_adjusted)
        return is_plain and self.dtstart is not None and self.fold != "BOTH"

    @property
    def is_now(self) -> bool:
        """Return whether this is one run without a delay."""
        return self.delay == timedelta(0)

    @property
    def has_elapsed_rules(self) -> bool:
        """Return whether it has rules of elapsed time, which count from an instant instead of a local time."""
        return self.sub_daily == "ELAPSED" and any(parse_rule(each).frequency > Frequency.DAILY for each in self.rules)

    def follow_owner(self) -> Self:
        """Return the schedule with local times that follow their owner.

        They are read in its zone until it has an owner.
        """
        return type(self).model_validate(
            {**dict(self), **self._to_local_times(self.timezone), "follows_owner": True},
        )

    def as_fixed(self) -> Self:
        """Return the schedule fixed to the zone that it is planned in, if it follows its owner.

        A local time alone becomes its instant.
        """
        if self.is_single_time and self.dtstart is not None:
            once = {"at": self.first(), "dtstart": None}
        else:
            once = {}
        if not (once or self.follows_owner):
            return self
        return self.rebase().copy_unchecked(follows_owner=False, **once)

    def change_zone(self, zone: str) -> Self:
        """Return the schedule with its local times in another zone.

        One instant, or a delay, is the same everywhere.

        Excluded occurrences move along. A schedule that follows its owner is one of the zone from
        then on.
        """
        based = self.rebase()
        values = {**dict(based), "timezone": zone, "follows_owner": False}
        if self.exdates and self.dtstart is not None:
            there = based.copy_unchecked(timezone=zone, exdates=())
            start = parse_moment(based.dtstart or "", "dtstart").wall
            values["exdates"] = exdates.change_zone(based.exdates, based.recurrence, there.recurrence, start)
        if self.is_single_time and self.dtstart is not None:
            values.update(local=self.dtstart, dtstart=None)
        if values["local"] is not None:
            values["at"] = None
        return type(self).model_validate(values)

    def continue_from(self, occurrence: datetime) -> Self:
        """Return the schedule from one of its occurrences on, so that its words name that as the first.

        It is returned as it is if it would change: a COUNT counts from its start, and several rules with
        intervals count from the start of each.
        """
        rules = [parse_rule(rule) for rule in self.rules]
        has_phase = len(rules) > 1 and any(rule.interval > 1 for rule in rules)
        if not rules or self.dtstart is None or has_phase or any(rule.count is not None for rule in rules):
            return self
        is_open = all(rule.interval == 1 for rule in rules) and self.dtstart < _NAMED_FROM
        if is_open or self.first() == occurrence:
            return self
        zone = load_tzinfo(self.timezone)
        own = datetime.fromisoformat(self.dtstart)
        local = occurrence.astimezone(zone).replace(tzinfo=None)
        # In a gap the clock shows another time than the rule names: that day begins with the start's minute
        # and second.
        for begin in (local, local.replace(hour=0, minute=own.minute, second=own.second)):
            begun = self.copy_unchecked(dtstart=begin.isoformat(), start_zone=None)
            first = begun.first()
            # Of a time that clocks show twice, the first may be the other one.
            if first == occurrence or (first is not None and first.astimezone(zone).replace(tzinfo=None) == local):
                return begun
        return self

    def rebase(self) -> Self:
        """Return the schedule with its start as the clock of its zone shows it."""
        if self.start_zone is None:
            return self
        first = self.copy_unchecked(exdates=(), **self.no_adjustments).first()  # COUNT counts from there
        if first is None:
            return self
        local = first.astimezone(load_tzinfo(self.timezone)).replace(tzinfo=None)
        return self.copy_unchecked(dtstart=local.isoformat(), start_zone=None)

    def _to_local_times(self, zone: str) -> dict[str, Any]:
        if self.at is None:
            return {}
        at = self.at.astimezone(load_tzinfo(zone)).replace(tzinfo=None, microsecond=0)
        return {"at": None, "local": None, "dtstart": self.local or at.isoformat()}

    def with_owner_zone(self, zone: str) -> Self:
        """Return a schedule that follows its owner, with the local times it was given, in the owner's zone.

        One instant becomes the local time that the clock shows there then.
        """
        return self.copy_unchecked(**self._to_local_times(zone), timezone=zone, start_zone=None)

    def move_to(self, zone: str) -> Self:
        """Return a schedule that follows its owner to another zone.

        Rules of elapsed time keep their instants.
        """
        if not self.has_elapsed_rules:
            return self.copy_unchecked(timezone=zone, start_zone=None)
        begun = self.start_zone or self.timezone
        kept = exdates.keep_instants(self.exdates, self.recurrence.clock)
        return self.copy_unchecked(timezone=zone, start_zone=None if begun == zone else begun, exdates=kept)

    @property
    def is_anchored(self) -> bool:
        """Return whether the schedule has a start."""
        return self.at is not None or self.dtstart is not None

    def anchor(self, start: datetime) -> Self:
        """Return the schedule with DTSTART at the first full second from ``start`` on, if it has no DTSTART.

        A delay becomes the instant that much later than ``start``.

        A rule with BYHOUR and no finer part starts at the next full hour, one with BYMINUTE at the next full
        minute: ``FREQ=DAILY;BYHOUR=9`` means 9:00:00, whatever the minute and second of ``start``. A start
        never lies before ``start``: an occurrence between them would use up one of a COUNT, and never run. So
        a rule with COUNT that is given in the second of two repeated hours, whose times DTSTART cannot name,
        starts an hour later.

        Raises:
            InvalidSchedule: ``start`` has no time zone, or the schedule can never fire from there.
        """
        if self.is_anchored:
            return self
        if start.tzinfo is None:
            raise InvalidSchedule(
                "dtstart",
                "cannot begin at a time without a zone",
                "give an aware datetime",
            )
        if self.delay is not None:
            try:
                return type(self).once(start + self.delay, self.timezone)
            except OverflowError:
                problem = f"of {self.delay} ends beyond the calendar"
                raise InvalidSchedule("delay", problem, "give a shorter one") from None
        there = start.astimezone(load_tzinfo(self.timezone))
        local = there.replace(tzinfo=None)
        rules = [parse_rule(rule) for rule in self.rules]
        if there.fold and any(rule.count for rule in rules):
            local += start - there.replace(fold=0).astimezone(UTC)
        unit = timedelta(seconds=1)
        if any(rule.hours and not rule.minutes for rule in rules):
            unit = timedelta(hours=1)
        elif any((rule.hours or rule.minutes) and not rule.seconds for rule in rules):
            unit = timedelta(minutes=1)
        try:
            local += -(local - datetime.min) % unit  # noqa: DTZ901 - on the zone's clock
        except OverflowError:
            raise InvalidSchedule(
                "dtstart",
                "lies beyond the calendar",
                "begin before the year 10000",
            ) from None
        begun = self.copy_unchecked(dtstart=local.isoformat())
        if self.is_adjusted:
            begun = begun._begin_before_moves(start)  # noqa: SLF001 - its own class
        return type(self).model_validate(dict(begun))

    def _begin_before_moves(self, start: datetime) -> Self:
        """Return it with the occurrences before its DTSTART that are moved to ``start`` or later, if any.

        So a month whose day has passed is not lost if that is still to be moved. It begins with the first that
        changes no rule's rhythm. What that leaves out becomes RDATEs, if it is fewer than 50
        and no rule has a COUNT, which would not count them.
        """
        plain = self.without_count().copy_unchecked(**self.no_adjustments)
        zone = load_tzinfo(self.timezone)
        moved = self.iter_lost(start - _TICK)
        days = sorted((datetime.combine(day, at.astimezone(zone).time()).isoformat(), at) for at, day in moved)
        alone = [plain.copy_unchecked(rrule=rule) for rule in plain.rules]
        begun = self
        for begin, _ in days:
            if all(
                each.upcoming(start, _COMPARED) == each.copy_unchecked(dtstart=begin).upcoming(start, _COMPARED)
                for each in alone
            ):
                begun = self.copy_unchecked(dtstart=begin)
                break
        lost = tuple(begin for begin, at in days if not begun.occurs(at))
        if plain.rules != self.rules or len(lost) >= _MAX_LOST or (self.follows_owner and self.has_elapsed_rules):
            return begun
        return begun.copy_unchecked(rdates=self.rdates + lost)

    def iter_lost(self, after: datetime) -> Iterator[tuple[datetime, date]]:
        """Yield moved occurrences after an instant that its start leaves out, with the days of their rules.

        At most 50 of each rule, which is read as it would have been until its start, in its rhythm.
        """
        own = datetime.fromisoformat(self.dtstart or str(EPOCH))
        if not self.is_adjusted or own.replace(tzinfo=UTC) < after - _LOOKED_BACK:
            return
        for text in self.rules:
            rule = parse_rule(text)
            unit = _STEPS[rule.frequency]
            interval = min(rule.interval, max(20, _LOOKED_BACK // unit + 1))  # no other period is that near
            is_elapsed = rule.frequency > Frequency.DAILY and self.sub_daily == "ELAPSED"
            zone = load_tzinfo(self.timezone) if is_elapsed else UTC
            step = interval * unit
            begin = own.replace(tzinfo=zone).astimezone(UTC) - (_LOOKED_BACK // step + 1) * step
            endless = re.sub(r"INTERVAL=\d+", f"INTERVAL={interval}", _END.sub("", text))
            earlier = self.copy_unchecked(
                rrule=f"{endless};UNTIL={own - _SECOND:%Y%m%dT%H%M%S}",
                rdates=(),
                dtstart=begin.astimezone(zone).replace(tzinfo=None, fold=0).isoformat(),
            )
            try:
                for at in earlier.upcoming(after, _MAX_LOST):
                    day = earlier.find_moved_day(at)
                    if day is not None and not self.occurs(at):
                        yield at, day
            except InvalidSchedule:  # the days of its calendars are not known here, or the search is spent
                return

    def without_count(self) -> Self:
        """Return it without the ends of rules that count to a number."""
        return self.copy_unchecked(rrule=tuple(_COUNT.sub("", rule) for rule in self.rules) or None)

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first occurrence strictly later than ``instant``, in UTC, or None if there is none.

        Raises:
            InvalidSchedule: The schedule is not anchored, or its rule is so sparse that the search gave up.
            ValueError: ``instant`` has no time zone.

        >>> print(task.schedule.next_after(datetime(2027, 2, 1, tzinfo=UTC)))
        2027-02-01 09:00:00+00:00
        """
        if instant.tzinfo is None:
            raise ValueError("the instant has no time zone; give an aware datetime")
        if self.at is not None:
            return self.at if self.at > instant else None
        found = self.adjust(self.recurrence) if self.calendars else self.recurrence
        return _to_instant(found.first_from((instant - UTC_EPOCH) // _SECOND + 1))

    @property
    def interval(self) -> timedelta | None:
        """The time between any two consecutive occurrences, or None if it varies."""
        if self.at is not None or self.is_adjusted or self.recurrence.interval is None:
            return None
        return timedelta(seconds=self.recurrence.interval)

    def occurs(self, instant: datetime) -> bool:
        """Return whether ``instant`` is an occurrence."""
        return self.next_after(instant - _TICK) == instant

    def first(self) -> datetime | None:
        """Return the first occurrence, in UTC, or None if there is none."""
        if self.at is not None:
            return self.at
        found = self.adjust(self.recurrence) if self.calendars else self.recurrence
        return _to_instant(found.first)

    def upcoming(self, start: datetime, count: int) -> list[datetime]:
        """Return the next ``count`` occurrences after ``start``, in UTC, or as many as there are.

        >>> [each.day for each in task.schedule.upcoming(datetime(2027, 2, 1, tzinfo=UTC), 3)]
        [1, 2, 3]
        """
        return list(islice(self._iter_after(start), count))

    def find_shortest_interval(self, after: datetime) -> timedelta | None:
        """Return the shortest time between two occurrences after an instant, or None if there are no two.

        It looks at the first fifty of all, the first fifty of each rule alone, the first fifty of all from
        each rule's first on, and all dates: a rule repeats itself within a day, and another one may begin
        later.

        Raises:
            SearchLimitReached: The request has searched too much.
        """
        looks = [(self, after)]
        alone = {"rdates": (), "exdates": (), **self.no_adjustments}
        if self.rdates:
            looks.append((self.model_copy(update={**alone, "rrule": None, "rdates": self.rdates}), after))
        for rule in self.rules if len(self.rules) > 1 else ():
            part = self.model_copy(update={**alone, "rrule": rule})
            first = next(part._iter_until(after, 1), None)  # noqa: SLF001 - its own class
            if first is not None:
                looks += [(part, after), (self, first - _TICK)]
        count = 50 + len(self.rdates)
        times = ([*schedule._iter_until(start, count)] for schedule, start in looks)  # noqa: SLF001 - its own class
        return min((later - earlier for each in times for earlier, later in pairwise(each)), default=None)

    def _iter_until(self, after: datetime, count: int) -> Iterator[datetime]:
        """Yield the next occurrences within a year, at most `count`. A search that gives up found none near.

        Raises SearchLimitReached if the request has searched too much.
        """
        try:
            for occurrence in islice(self._iter_after(after), count):
                if occurrence - after > timedelta(days=366):
                    return
                yield occurrence
        except SearchLimitReached:
            raise
        except InvalidSchedule:
            return

    def between(self, start: datetime, end: datetime) -> list[datetime]:
        """Return the occurrences from ``start`` on and before ``end``, in UTC.

        Raises:
            InvalidSchedule: There are more than 100,000 of them.
            ValueError: ``start`` or ``end`` has no time zone.

        >>> january = datetime(2027, 1, 1, tzinfo=UTC)
        >>> len(task.schedule.between(january, january + timedelta(days=31)))
        31
        """
        if end.tzinfo is None:
            raise ValueError("the end has no time zone; give an aware datetime")
        within = takewhile(lambda at: at < end, self._iter_after(start - _TICK))
        occurrences = list(islice(within, MAX_LISTED + 1))
        if len(occurrences) > MAX_LISTED:
            raise InvalidSchedule(
                "rrule",
                f"more than {MAX_LISTED} occurrences in that range",
                "ask for less",
            )
        return occurrences

    @property
    def policies(self) -> dict[str, str]:
        """The policies for clock changes that are not the defaults, by field."""
        fields = type(self).model_fields
        values = {name: getattr(self, name) for name in ("gap", "fold", "sub_daily")}
        return {name: value for name, value in values.items() if value != fields[name].default}

    def describe(self, locale: str = "en") -> str:
        """Return the schedule in words, such as ``every weekday at 09:00, Europe/Paris``.

        Parts that words cannot express are named at the end as missing.

        Args:
            locale: The language, such as ``en`` or ``de-AT``. An unknown one is English.

        >>> Schedule.parse("0 9 * * MON", "Europe/Paris").describe()
        'every Monday at 09:00, Europe/Paris'
        """
        from cloudsched.domain.schedules.describe import describe  # noqa: PLC0415 -- imported only when used

        return describe(self.rebase(), locale).text

    def describe_next(self, occurrence: datetime | None, locale: str = "en") -> Description:
        """Return the schedule in words as it goes on from its next occurrence, None if it is over.

        "First" names no occurrence that is over. Where the schedule cannot be told from the next one on, it
        is said when it has begun.
        """
        from cloudsched.domain.schedules.describe import describe  # noqa: PLC0415 -- imported only when used

        based = self.rebase()
        if occurrence is None:
            told = based
        else:
            told = based.continue_from(occurrence)
        has_begun = not self.is_one_time and (occurrence is None or told.first() != occurrence)
        return describe(told, locale, has_begun=has_begun)

    def to_ical(self) -> str:
        """Return the schedule as iCalendar text (RFC 5545), which `parse` reads back exactly.

        It is a VCALENDAR with an event for each rule, or bare rules if the schedule is not anchored.
        """
        from cloudsched.domain.schedules.icalendar_output import to_ical  # noqa: PLC0415 -- imported only when used

        return to_ical(self, self.model_dump_json(by_alias=True, exclude_defaults=True))

    @property
    def recurrence(self) -> Recurrence:
        """The occurrences that its rules produce. Raises InvalidSchedule if it is not anchored."""
        if self.delay is not None:
            raise InvalidSchedule("delay", "counts from a time that is not known yet", "anchor it")
        if self.dtstart is None:
            raise InvalidSchedule(
                "dtstart",
                "is missing, so the rule has no start",
                "give dtstart, or anchor it",
            )
        return compile_recurrence(time_zones.in_use, *_get_parts(self))

    @property
    def depends_on_records(self) -> bool:
        """Return whether records supply a part of it: its owner's zone, or what adjusts it."""
        return self.follows_owner or bool(self.calendars)

    @property
    def follows_zone(self) -> bool:
        """Return whether new time zone data may move its occurrences."""
        return not self.is_instant and not is_fixed(self.timezone)

    @property
    def is_instant(self) -> bool:
        """Return whether it is one instant, whatever a clock shows then."""
        return self.delay is not None or (self.at is not None and self.local is None)

    def _find_local(self) -> datetime:
        """Return the instant of `local`, as the data in use say."""
        wall = parse_moment(str(self.local), "local").wall
        fold: Fold = "FIRST" if self.fold == "BOTH" else self.fold
        return UTC_EPOCH + timedelta(seconds=wall_clock(self.timezone, fold=fold).instants(wall)[0])

    def relocate(self) -> Self:
        """Return a schedule that fires once at a local time, with its instant in the data in use."""
        if self.local is None:
            return self
        return self.copy_unchecked(at=self._find_local())

    def read_clock(self, occurrence: datetime) -> tuple[int, bool] | None:
        """Return the wall-clock time that names an occurrence, and whether it is the second one of that time.

        The time is in seconds since 1970 as a clock shows them. None if the occurrence is known by its
        instant.
        """
        if self.at is None:
            return self.recurrence.read(utc_seconds(occurrence))
        if self.local is None:
            return None
        return (parse_moment(self.local, "local").wall, False)

    def name_occurrence(self, occurrence: datetime) -> str:
        """Return the EXDATE of one occurrence: its local time, or its instant if that time is ambiguous."""
        return exdates.name_occurrence(self.recurrence, utc_seconds(occurrence))

    def leave_out(self, occurrence: datetime) -> Self:
        """Return the schedule without one of its occurrences. All others stay.

        Raises:
            InvalidSchedule: It is the only one, or too many are left out.
        """
        near = [text for text in self.rdates if abs(_to_day(text) - occurrence.date()) <= _DAY]
        for text in near:  # it was added, so it is not added any more
            fewer = self.copy_unchecked(rdates=tuple(each for each in self.rdates if each != text))
            if not fewer.occurs(occurrence):
                return fewer.model_copy()
        name = self.name_occurrence(occurrence)
        if moved_from := self.find_moved_day(occurrence):  # a calendar has moved it, and rules know its own day
            name = moved_from.isoformat() + name[len("2027-01-01") :]
        if name in self.exdates:
            raise InvalidSchedule("occurrence", "cannot be left out alone", "change the schedule")
        rest = self.model_copy(update={"exdates": (*self.exdates, name)})
        return rest.leave_out(occurrence) if rest.occurs(occurrence) else rest  # a calendar may move two to one time

    def move_occurrence(self, occurrence: datetime, to: datetime) -> Self:
        """Return the schedule with one of its occurrences at another instant. All others stay.

        Raises:
            InvalidSchedule: It has an occurrence at that instant, leaves that out, or cannot have a time like it.
        """
        if self.occurs(to):
            raise InvalidSchedule("to", "is one of its occurrences already", "give another time, or skip this one")
        local = to.astimezone(load_tzinfo(self.timezone)).replace(tzinfo=None).isoformat()
        if self.is_one_time:
            alone = {"rrule": None, "rdates": (), "exdates": (), **self.no_adjustments}
            if self.is_instant:
                return self.model_copy(update={**alone, "at": to})
            named = "dtstart" if self.local is None and self.follows_owner else "local"
            return self.model_copy(update={**alone, "at": None, "local": None, "dtstart": None, named: local})

        rest = self.leave_out(occurrence)
        near = [text for text in rest.exdates if "T" in text and abs(_to_day(text) - to.date()) <= _DAY]
        for text in near:  # it was left out, so it is left out no more
            more = rest.copy_unchecked(exdates=tuple(each for each in rest.exdates if each != text))
            if more.occurs(to):
                return more.model_copy()
        name = exdates.name_instant(self.recurrence.clock, utc_seconds(to))
        moved = rest.model_copy(update={"rdates": (*rest.rdates, name)})
        if not moved.occurs(to):
            raise InvalidSchedule("to", f"is on a day that the schedule leaves out: {local}", "give another day")
        return moved

    def find_clock(self, wall: int, offset: int, near: datetime) -> datetime:
        """Return the instant of a wall-clock time in the data in use, also where a gap leaves it out.

        Of two, it is the one with an offset, or else the one nearer to an instant.
        """
        seconds = clock_of(find_zone(self.timezone), "SHIFT", self.fold).find(wall, offset, utc_seconds(near))
        return UTC_EPOCH + timedelta(seconds=seconds)

    @property
    def has_clock(self) -> bool:
        """Return whether some of its occurrences are named by the clock's time."""
        return self.local is not None or (self.at is None and self.recurrence.has_local)

    @property
    def is_mixed(self) -> bool:
        """Return whether local times name some of its occurrences, and instants name others."""
        if self.at is not None or (not self.rdates and isinstance(self.rrule, str)):
            return False
        base = self.recurrence
        return base.has_local and not base.is_local

    def find_next_of_kind(self, instant: datetime, *, is_local: bool) -> datetime | None:
        """Return the first occurrence after an instant: of those that local times name, or of the others."""
        local, others = self.recurrence.parts
        base = local if is_local else others
        found = self.adjust(base) if self.calendars else base
        return _to_instant(found.first_from(utc_seconds(instant) + 1))

    def _iter_after(self, instant: datetime) -> Iterator[datetime]:
        occurrence = self.next_after(instant)
        while occurrence is not None:
            yield occurrence
            occurrence = self.next_after(occurrence)


def _to_day(text: str) -> date:
    return date.fromisoformat(text[:10])


def _to_instant(seconds: int | None) -> datetime | None:
    if seconds is None:
        return None
    return UTC_EPOCH + timedelta(seconds=seconds)
