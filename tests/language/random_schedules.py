"""Tell random schedules in words, and read the words back: is it the same schedule?

A description must never say what is false. Each is read back by the reader of its language and must mean the same
instants, or it is a summary, which says that it leaves something out. The schedules are of every kind that RFC 5545
allows, and the same for the same seed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from cloudsched.domain.schedules.describe import describe
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule, SearchLimitReached
from cloudsched.language import read

NOW: Final = datetime(2026, 4, 1, 12, 0, 30, tzinfo=UTC)
"""Half a minute past noon, so that what counts from now differs from what is on the clock."""
COMPARED: Final = 25
"""How many instants are compared."""
LANGUAGES: Final = ("en", "de")
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_ZONES = (
    *("UTC", "UTC", "Europe/Berlin", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"),
    *("Japan", "Etc/GMT+2", "CET", "America/Argentina/Buenos_Aires", "Africa/Casablanca", "America/Sao_Paulo"),
)
_STEP_LISTS = ("0,15,30,45", "0,5,10,15,20,25,30,35,40,45,50,55", "0,30", "0,10,20,30,40,50")
_HOUR_LISTS = ("0,6,12,18", "9,10,11,12,13,14,15,16,17", "8,20", "0,12")


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one description: ``exact``, ``summary``, or why it is wrong."""

    outcome: str
    text: str
    detail: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether the description says what is false, or is not understood."""
        return self.outcome not in {"exact", "summary"}


def make_schedule(random: Random) -> Schedule:
    """Return a random schedule that has an occurrence after `NOW`."""
    while True:
        try:
            schedule = _make(random)
            if schedule.next_after(NOW) is not None:
                return schedule
        except InvalidSchedule:
            continue


def check(schedule: Schedule, locale: str) -> Result:
    """Return whether a schedule's description means the same instants."""
    description = describe(schedule, locale)
    if not description.is_exact:
        return Result("summary", description.text)
    reading = read(description.text, now=NOW, timezone="Pacific/Apia", locale=locale)
    if reading.schedule is None:
        return Result("not understood", description.text, "; ".join(problem.code for problem in reading.problems))
    if reading.title is not None:
        return Result("not understood", description.text, f"title {reading.title!r}")
    wanted, found = (each.upcoming(NOW, COMPARED) for each in (schedule, reading.schedule))
    if wanted != found:
        return Result("false", description.text, f"{reading.schedule!r}")
    if _list_calendars(schedule) != _list_calendars(reading.schedule):
        return Result("false", description.text, "other calendars")
    return Result("exact", description.text)


def _list_calendars(schedule: Schedule) -> tuple[object, ...]:
    return schedule.business_day, *((rule.id, rule.on) for rule in schedule.calendars)


def _make(random: Random) -> Schedule:
    zone = random.choice(_ZONES)
    if random.random() < 0.05:
        return Schedule.once(NOW.replace(microsecond=0) + timedelta(seconds=random.randrange(1, 10**8)), timezone=zone)
    start = _make_start(random)
    count = random.choice((1, 1, 1, 1, 1, 1, 2, 3))
    end = random.choice(("", "", "", "", f";COUNT={random.randrange(1, 60)}", f";UNTIL={_make_until(random)}"))
    rules = [_make_rule(random) + (end if random.random() < 0.95 else "") for _ in range(count)]
    fields: dict[str, object] = {"rrule": rules, "dtstart": start.isoformat(), "timezone": zone}
    if random.random() < 0.06:
        fields["rdates"] = [_make_date(random, timed=random.random() < 0.7) for _ in range(random.choice((1, 2, 12)))]
        if random.random() < 0.2:
            del fields["rrule"]
    if random.random() < 0.1:
        fields["exdates"] = [
            _make_date(random, timed=random.random() < 0.4) for _ in range(random.choice((1, 2, 3, 12)))
        ]
    if random.random() < 0.05:
        fields |= random.choice(({"gap": "skip"}, {"fold": "last"}, {"fold": "both"}, {"subDaily": "wall"}))
    return Schedule.model_validate(fields)


def _make_start(random: Random) -> datetime:
    if random.random() < 0.25:
        return datetime(1970, 1, 1)  # noqa: DTZ001 -- on the zone's clock
    day = datetime(2024, 1, 1) + timedelta(days=random.randrange(1500))  # noqa: DTZ001 -- as above
    seconds = random.choice((0, 0, 0, 0, 30, 59)) if random.random() < 0.2 else 0
    return day + timedelta(hours=random.randrange(24), minutes=random.choice((0, 0, 30, 45, 7)), seconds=seconds)


def _make_until(random: Random) -> str:
    end = datetime(2026, 4, 2) + timedelta(days=random.randrange(2500))  # noqa: DTZ001 -- as above
    form = random.choice(("%Y%m%dT235959", "%Y%m%d", "%Y%m%dT120000", "%Y%m%dT233000Z"))
    return end.strftime(form)


def _make_date(random: Random, *, timed: bool) -> str:
    moment = datetime(2026, 4, 2, 9) + timedelta(days=random.randrange(300), hours=random.randrange(-9, 10))  # noqa: DTZ001 -- as above
    suffix = random.choice(("", "", "Z"))
    return moment.isoformat() + suffix if timed else moment.date().isoformat()


def _make_rule(random: Random) -> str:
    frequency = random.choice(
        ("YEARLY",) * 2 + ("MONTHLY", "WEEKLY") * 3 + ("DAILY",) * 2 + ("HOURLY", "MINUTELY", "SECONDLY")
    )
    interval = random.choice((1, 1, 1, 1, 2, 3, 4, 6, 15, 90)) if random.random() < 0.6 else 1
    rule = f"FREQ={frequency}" + (f";INTERVAL={interval}" if interval > 1 else "")
    odd = random.random() < 0.15
    rule += _make_days(random, frequency, odd=odd)
    if frequency in {"HOURLY", "MINUTELY", "SECONDLY"}:
        return rule + _make_fine_limits(random)
    rule += _make_times(random)
    if random.random() < 0.1 and "BY" in rule:
        rule += f";BYSETPOS={random.choice(('1', '-1', '2', '-2', '1,-1', '3'))}"
    if random.random() < 0.06 and "BYMONTHDAY" in rule:
        rule += random.choice((";SKIP=BACKWARD", ";SKIP=FORWARD"))
    if random.random() < 0.1:
        rule += f";WKST={random.choice(_DAYS)}"
    return rule


def _make_days(random: Random, frequency: str, *, odd: bool) -> str:
    weekdays = f";BYDAY={_choose_weekdays(random)}"
    nth = f";BYDAY={','.join(sorted({_choose_nth(random) for _ in range(random.choice((1, 1, 2)))}))}"
    month_days = f";BYMONTHDAY={_choose(random, [*range(1, 32), -1, -1, -2, -3, -31])}"
    months = f";BYMONTH={_choose(random, range(1, 13))}" if random.random() < 0.25 else ""
    if odd:
        parts = [weekdays, nth, month_days, f";BYYEARDAY={_choose(random, (1, 100, 366, -1, -366))}"]
        parts.append(f";BYWEEKNO={_choose(random, (1, 20, 53, -1))}")
        chosen = random.sample(parts, 2)
        return months + "".join({part.split("=")[0]: part for part in chosen}.values())
    match frequency:
        case "YEARLY":
            week = f";BYWEEKNO={_choose(random, range(1, 54))}"
            year_day = f";BYYEARDAY={_choose(random, (1, 60, 100, 365, 366, -1, -2, -366))}"
            which = random.choice((month_days + months, nth + months, week + weekdays, year_day, "", week, months))
        case "MONTHLY":
            which = (
                random.choice(
                    (month_days, nth, weekdays, "", month_days + weekdays, ";BYMONTHDAY=13;BYDAY=FR", f"{nth},WE")
                )
                + months
            )
        case "WEEKLY":
            which = random.choice((weekdays, weekdays, "")) + months
        case _:
            which = random.choice(("", "", weekdays, month_days)) + months
    return which


def _make_times(random: Random) -> str:
    if random.random() < 0.3:
        return ""
    hours = random.choice((_choose(random, range(24)), *_HOUR_LISTS)) if random.random() < 0.95 else ""
    minutes = random.choice(("0", "0", "30", _choose(random, range(60)), random.choice(_STEP_LISTS)))
    text = f";BYHOUR={hours}" if hours else ""
    text += f";BYMINUTE={minutes}" if random.random() < 0.8 else ""
    return text + (random.choice((";BYSECOND=0", ";BYSECOND=15", ";BYSECOND=0,30")) if random.random() < 0.1 else "")


def _make_fine_limits(random: Random) -> str:
    text = ""
    if random.random() < 0.35:
        text += f";BYHOUR={random.choice((_choose(random, range(24)), *_HOUR_LISTS))}"
    if random.random() < 0.4:
        text += f";BYMINUTE={random.choice((_choose(random, range(60)), '0', *_STEP_LISTS))}"
    if random.random() < 0.4:
        text += f";BYSECOND={random.choice(('0', '0', '0', '15', '0,30'))}"
    if random.random() < 0.04:
        text += ";BYSETPOS=1"
    return text


def _choose(random: Random, numbers: range | list[int] | tuple[int, ...]) -> str:
    return ",".join(map(str, sorted(set(random.choices(numbers, k=random.choice((1, 1, 1, 2, 3)))))))


def _choose_weekdays(random: Random) -> str:
    if random.random() < 0.2:
        return random.choice(("MO,TU,WE,TH,FR", "SA,SU", ",".join(_DAYS)))
    chosen = random.sample(_DAYS, random.choice((1, 1, 1, 2, 3, 6)))
    return ",".join(day for day in _DAYS if day in chosen)


def _choose_nth(random: Random) -> str:
    return f"{random.choice((1, 2, 3, 4, 5, -1, -1, -2, -5, 20))}{random.choice(_DAYS)}"


def check_many(
    total: int, seed: int, locales: tuple[str, ...] = LANGUAGES
) -> tuple[Counter[str], list[tuple[Schedule, Result]]]:
    """Check random schedules in some languages; return the counts of outcomes, and what is wrong.

    A schedule whose search is given up is counted as ``sparse``: nothing can be compared.
    """
    random = Random(seed)  # noqa: S311 -- repeatable
    counts: Counter[str] = Counter()
    wrong: list[tuple[Schedule, Result]] = []
    for _ in range(total):
        schedule = make_schedule(random)
        for locale in locales:
            try:
                result = check(schedule, locale)
            except (SearchLimitReached, InvalidSchedule):
                counts[f"{locale} sparse"] += 1
                continue
            counts[f"{locale} {result.outcome}"] += 1
            if result.is_wrong:
                wrong.append((schedule, result))
    return counts, wrong
