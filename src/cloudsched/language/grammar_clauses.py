"""Parse clauses other than days and times: interval, start, end, count, exceptions and time zone."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.language.grammar_numbers import MONTHS, WEEKDAYS, list_around
from cloudsched.language.nodes import (
    DAY,
    FOLLOWING,
    REGULARLY,
    REPEATS,
    Added,
    Clause,
    Clock,
    Date,
    Days,
    End,
    Except,
    Length,
    Mark,
    Months,
    NamedCalendars,
    OnlyIf,
    Part,
    Period,
    Pick,
    Place,
    Point,
    Relative,
    Repeat,
    Start,
    Stretch,
    Unit,
)
from cloudsched.language.places import COUNTRIES, NO_CITIES, REGIONS, WORDS_TOO, find_place
from cloudsched.language.result import Refused
from cloudsched.language.rows import RULES, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.language.lexicon import Cursor


def _repeat_length(length: Length) -> Repeat | None:
    units = [unit for unit, _ in length.amounts]
    if max(units) > Unit.HOUR or not length.seconds:
        return None
    if len(units) == 1:
        return Repeat(length.amounts[0][1], units[0])
    minutes, seconds = divmod(length.seconds, 60)
    return Repeat(length.seconds, Unit.SECOND) if seconds else Repeat(minutes, Unit.MINUTE)


def _repeat_days(interval: int, days: Days) -> list[Clause] | None:
    if days.is_counted:
        return None
    on = replace(days, dates=(), marked=True, on=True, loose=False, plural=False, either="")
    return [Repeat(interval, Unit.WEEK), on]


Rule("every", "[on|for] [repeat] each")
Rule(
    "few",  # the interval, as a number
    ("@every count=@number", lambda count: count or Refused("no-interval")),
    (
        "[on|for] [repeat] each:1|each:3 other",
        "[on|for] [repeat] each:3 !unit:0..2",  # "om de dag" is every other day
        lambda: 2,
    ),
)
_NO_LIST = " ![![in hour-number|month] of] ![and|comma !start ordinal|ordinal-end|article]"
Rule("nth", "@every nth=@ordinal:2..")
Rule(
    "each",  # an interval, days, a part of the day, or months with days in them
    ("@every &/!/", lambda: Refused("completion")),
    ("@every edge=@edge_noun", lambda edge: replace(edge, marked=True)),
    ("@every interval=fraction unit:2", "@every interval=minute-unit", partial(Repeat, unit=Unit.MINUTE)),
    ("@every unit=unit:1..2 half=and-half", lambda unit, half: Repeat(60 + half, Unit(unit - 1))),
    ("@every length=@length", _repeat_length),
    ("@few|@nth|@every too-short", lambda: Refused("too-short")),
    ("interval=@few unit=@unit", Repeat),
    ("interval=@few &weekday|weekdays|dayset:1|daysets:1 days=@each_days", _repeat_days),
    ("@few dayset|daysets", lambda: Refused("inexpressible")),
    ("interval=@nth ![unit:3 of|in] unit=@unit", Repeat),
    ("@every months=@months !number|ordinal|tens", lambda months: [Repeat(1, Unit.YEAR), Months(months)]),
    ("@every part=part|parts", partial(Part, each=True)),
    ("@every &weekday|dayset days=@each_days part=part|parts", lambda days, part: [days, Part(part)]),
    (
        "@every date=@weekday_date",  # Friday the 13th
        lambda date: [Days((Pick(date.day, DAY),), marked=True, on=True), OnlyIf((date.weekday,))],
    ),
    ("@every holiday", lambda: Refused("holidays")),
    "@every &dayset:0..2|daysets days=@each_days",
    (
        "@every !unit:0 unit=@unit",
        "@every !ordinal unit=@unit !dayset|daysets|weekday",
        # "every second" alone is a unit, with days behind it an ordinal
        "@every &ordinal !ordinal-end unit=@unit !@unit !month|to-last|dayset|daysets|weekday|weekdays" + _NO_LIST,
        partial(Repeat, 1),
    ),
    "@every days=@each_days",
)


def _repeat(unit: int, interval: int | None = None, rate: int = 1, *, loose: bool = False) -> Repeat:
    return Repeat(interval or 1, Unit(unit), rate, loose=loose, adverb=True)


Rule("rate", "rate=twice", "rate=@number times")
Rule(
    "adverb",  # daily, biweekly, once a week, 3 times a day
    ("[repeat] adverb:9", partial(_repeat, Unit.MONTH, 6)),
    (
        "[repeat] unit=adverb",
        "[repeat] rate=@rate unit=adverb",
        "[repeat] rate=@rate per [interval=@number] unit=unit",
        _repeat,
    ),
    ("[repeat] interval=minute-adverb", partial(_repeat, Unit.MINUTE)),
    ("[repeat] unit=bi", partial(_repeat, rate=2, loose=True)),
    ("[repeat] unit=tri", partial(_repeat, rate=3, loose=True)),
)
parse_lead = Rule(  # the frequency at the head of a phrase, before the title: nightly, weekly, recurring
    "lead", "&recurring found+=@mark", "&part-adverb found+=@part", "&adverb|bi|tri found+=@adverb"
)


_THROUGH = 2
"""The value of words such as "through", which include the last month."""


def _make_day_range(first: int | None, last: int, period: Period) -> Days | None:
    is_repeated = period.each or (first is not None and not period.months)
    if not is_repeated or not (period.months or period.unit == Unit.MONTH) or period.ahead is not None:
        return None
    picks = tuple(Pick(day, DAY) for day in range(first or 1, last + 1))
    return Days(picks, period, marked=True, on=True, plural=True) if len(picks) > 1 else None


def _make_date_range(dates: list[Date], first: int | None = None) -> list[Clause] | None:
    """Return the start and the end that dates in a row name, or a day of a month and a date in it."""
    days = [date.day or 0 for date in dates] if first is None else [first, dates[0].day or 0]
    is_run = days == list(range(days[0], days[-1] + 1)) if first is None else len(dates) == 1
    if not dates[0].month or not is_run or days[0] >= days[-1]:
        return None
    return [Start(replace(dates[0], day=days[0], weekday=None)), End(dates[-1])]


def _is_period(point: Point | None) -> bool:
    return isinstance(point, Months | Period) or (isinstance(point, Date) and point.day is None)


def _make_end(joint: int, point: Point, inclusive: int | None, clock: Clock | None = None) -> End:
    return End(point, clock=clock, before=joint < 0, through=bool(inclusive) or joint == _THROUGH)


Rule("day_of_range", "[on|for] [article] nth=@ordinal:1..31")
Rule("single_nth", ("nth=@day_of_range", lambda nth: Days((Pick(nth, DAY),))))
Rule(
    "day_range",  # from the 1st to the 5th of every month, until the 15th of each month: days that repeat
    (
        "[from|between|start first=@day_of_range] to|until|and|dash last=@day_of_range period=@period",
        _make_day_range,
    ),
)
Rule("any_clock", "at clock=@bare_clock", "clock=@clock")
Rule(
    "begin",
    (
        "start [on|in|at] point=@point [&at|clock clock=@any_clock]",
        "start [on|in] clock=@any_clock [&relday|on|next point=@point]",
        Start,
    ),
)
Rule("range_end", ("joint=until|to|dash point=@point [inclusive=inclusive]", _make_end))
Rule(
    "start",  # starting next Monday, from 1 May on, from November until June, from Monday to Friday
    (
        "from|between first=weekday|weekdays to|dash|and last=weekday|weekdays",
        lambda first, last: Days(
            tuple(Pick(0, day) for day in list_around(first, last, WEEKDAYS)), on=True, marked=True, plural=True
        ),
    ),
    (
        "from|between first=month to|dash|and last=month !number|ordinal|tens",
        lambda first, last: Months(tuple(list_around(first, last, MONTHS)), doubtful=True),
    ),
    "days=@day_range",
    (
        "from|between|start first=@single_nth to|until|and|dash !@dates last=@single_nth !of|month|weekday|dayset|unit",
        lambda first, last: [Start(first), End(last)] if first.picks[0].nth < last.picks[0].nth else None,
    ),
    (
        "from|between|start first=@day_of_range to|until|and|dash dates=@dates",
        "from|between|start !@day_of_range [on|for] [article] dates=@dates",
        _make_date_range,
    ),
    (
        "begin=@begin &to|dash end=@range_end",
        lambda begin, end: (
            [begin, replace(end, through=True)] if _is_period(begin.point) and _is_period(end.point) else None
        ),
    ),
    ("begin=@begin end=@range_end", lambda begin, end: [begin, end] if begin.point else None),
    "begin=@begin [onward]",
)
Rule(
    "end",  # until June 30, before Christmas, for 3 weeks, 10 times
    "&until days=@day_range",
    ("until ordinal-end:-1 weekday !of|in|before|month", lambda: Refused("past")),
    (
        "joint=until [on] point=@day_point [inclusive=inclusive] [clock=@any_clock]",
        "joint=until|before [on] point=@point [inclusive=inclusive]",
        _make_end,
    ),
    (
        "[in-total] [for] [up] count=twice:2.. !adverb ![per unit|number|tens]",
        lambda count: End(count=count, before=True),
    ),
    (
        "[in-total] [for] [up] count=@number [more] times !adverb ![per unit|number|tens] [in-total]",
        lambda count: End(count=count) if count else Refused("never"),
    ),
    ("for [the-next] length=@length", "for length=@next_unit", "length=@length for-after", End),
)
Rule("next_unit", ("the-next unit=@unit", lambda unit: Length(((unit, 1),))))
Rule(
    "rest",  # on all other days: those of the week that the rest of the phrase does not name
    ("rest", partial(Days, marked=True, on=True, others=True)),
)


def _make_series(count: int, weekday: int | None = None) -> list[Clause]:
    if weekday is None:
        return [End(length=Length(((Unit.DAY, count),)))]
    days = Days((Pick(0, weekday),), marked=True, on=True, plural=True)
    return [days, End(length=Length(((Unit.WEEK, count),)))]


_COUNTED = " weekday=weekdays|counted-weekday "
Rule(
    "counted_days",  # the next 5 Fridays, 6 Mondays in a row, on 3 consecutive days
    (
        "[on|for] the-next count=@number:1.. [consecutive]" + _COUNTED + "[consecutive]",
        "[on|for] count=@number:1.. consecutive" + _COUNTED,
        "[on|for] count=@number:1.." + _COUNTED + "consecutive",
        "[on|for] the-next count=@number:1.. [consecutive] unit:3 [consecutive]",
        "[on|for] count=@number:1.. consecutive unit:3",
        "[on|for] count=@number:1.. unit:3 consecutive",
        _make_series,
    ),
)


_LONGEST_COUNTRY = 4
"""The most words of the name of a country, marks included."""


def _take_country(c: Cursor) -> str | None:
    text = " ".join(token.text for token in c.tokens[c.at : c.at + _LONGEST_COUNTRY])
    for code, words in COUNTRIES.items():
        found = re.match(rf"({words})(?!\S)", text)
        if found is not None:
            c.at += len(found[0].split())
            return code
    return None


def leave_out(found: tuple[Sequence[Point | NamedCalendars], ...]) -> list[Clause]:
    """Return the clauses that leave out days, and the days of calendars."""
    points = [each for some in found for each in some if not isinstance(each, NamedCalendars)]
    return [Except(tuple(points)), *(each for some in found for each in some if isinstance(each, NamedCalendars))]


def _leave_out_day(point: Date | Relative) -> list[Point] | None:
    is_any = isinstance(point, Relative) and point.kind == "weekday" and point.ahead is None
    return None if is_any else [point]


Rule(
    "stretch",  # from April 1 to April 10, between Christmas and New Year, next week
    "within=@within",
    ("from|between|start first=@stretch_end to|until|and|dash last=@stretch_end", Stretch),
)
Rule(
    "stretch_end",
    ("dates=@dates", lambda dates: dates[0] if len(dates) == 1 else None),
    "!@dates point=@single_day",
)
Rule("dated", ("date=@point", lambda date: date if isinstance(date, Date) and date.year is not None else None))
Rule("occurrence", ("date=@dated at clock=@clock", lambda date, clock: replace(date, clock=clock)))
Rule("ids", "&quote ids+=/.*/ {{and|comma} &quote ids+=/.*/}")
Rule("countries", "names+=@country {and|or|comma {and|or|comma} [in] [article] names+=@country}")
Rule(
    "left_out",
    "points+=@day_range|@stretch",
    ("[on|for|in|start] days-of ids=@ids", lambda ids: [NamedCalendars(ids)]),
    (
        (
            "[on|for|in|start] [article] [named=@countries] [dash] holiday:1 "
            "[in|of [article] behind=@countries !zone-time] [&/.*s/ whose=@countries]"
        ),
        lambda named, behind, whose: [NamedCalendars(named or behind or whose or ("",))],
    ),
    (
        "[on|for|in|start] [article] [@countries] [dash] holiday:2",
        partial(Refused, "holidays", None, "give its date, for example: except 2026-11-26"),
    ),
    "[on|for|in|start] points=@points",
)
Rule(
    "points",
    ("[article] @ordinal that-one", lambda: Refused("inexpressible")),
    ("[article] months=@months !number|ordinal|tens|day-number", lambda months: [Months(months)]),
    "dates+=@occurrence",
    ("point=@single_day", _leave_out_day),
    ("days=@repeated_days|@days", lambda days: [*days.dates] or [days]),
)
Rule("repeated_days", "each days=@each_days")
_JOINT = " comma|and|or {comma|and|or} "
Rule("exceptions", "found+=@left_out {" + _JOINT + "[except] found+=@left_out}")
Rule(
    "except",  # except Fridays, but not in July and August, except on 6 March and Christmas
    ("[comma|open] [comma|open] except found=@exceptions [close]", leave_out),
)
Rule(
    "added",  # extra on 2027-03-01 at 09:00 and 2027-04-01 at 10:00: single dates, with their year and time
    ("added dates+=@occurrence {{comma|and} [added] dates+=@occurrence}", Added),
)
Rule(
    "only_if",  # if it is a Monday or a Friday
    ("if-day [article] weekdays+=weekday {comma|or {comma|or} [article] weekdays+=weekday} [if-day-end]", OnlyIf),
)


def _take_zone(c: Cursor, *, is_loose: bool) -> tuple[str, ...] | None:
    """Take the name of a time zone. A loose one, such as a city, is also that of a place."""
    if c.ended or c.sees("feast", "holiday") or c.tokens[c.at].text in c.language.innocent:
        return None
    found = find_place(c.tokens, c.at)
    if found is None or found[2] != is_loose:
        return None
    c.at = found[1]
    return found[0]


_BEHIND_TIME = "<number|clock|halfday|halfday-short|named-time|oclock "
Rule(
    "place",  # New York time, Ortszeit in Tokio, in Tokyo, UTC, Europe/Paris
    (
        "[open] [in|at|on] zone-of [article] names=@zone|@city [zone-time] [close]",
        "[open] [in|at|on] [article] names=@zone|@city zone-time [close]",
        "<clock|halfday|halfday-short|named-time &/" + REGIONS + "/ names=@city",  # 9am Pacific
        "[open] [article] !/" + WORDS_TOO + "/ names=@zone [close]",
        _BEHIND_TIME + "!@is_glued names=@zone",
        Place,
    ),
    (
        "[open] [in|at|on] zone-of [article] /.*/",
        lambda: Refused("not-understood", hint="name a time zone by its city, or write it as Europe/London"),
    ),
    ("[open] in|at|on [article] names=@zone [close]", lambda names: Place(names) if len(names) == 1 else None),
    (
        "[open] in|at|on [article] names=@city [close]",
        _BEHIND_TIME + "!@is_glued !/" + NO_CITIES + "/ names=@city",  # 9am London
        "<comma names=@city !@more",
        partial(Place, is_loose=True),
    ),
)
Rule(
    "mark",  # words that apply to the whole phrase
    *(
        (f"[open] {kind} [close]", partial(Mark, kind))
        for kind in ("synchronised", "skip-back", "skip-forward", "skip-omit", FOLLOWING)
    ),
    ("completion", lambda: Refused("completion")),
    ("always:1", partial(Mark, REPEATS)),
    ("always|recurring", partial(Mark, REGULARLY)),
    ("forever", partial(Mark, "forever")),
    ("twice:1 !per", partial(Mark, "once")),
)
RULES.update(
    country=_take_country,
    zone=partial(_take_zone, is_loose=False),
    city=partial(_take_zone, is_loose=True),
)
