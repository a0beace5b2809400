"""Parse clauses other than days and times: interval, start, end, count, exceptions and time zone."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.language.grammar_days import SETS, parse_dates, parse_days
from cloudsched.language.grammar_numbers import (
    MONTHS,
    WEEKDAYS,
    List,
    list_around,
)
from cloudsched.language.lexicon import CLOCK, NUMBER
from cloudsched.language.nodes import (
    DAY,
    FOLLOWING,
    NOWHERE,
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
    Year,
)
from cloudsched.language.places import COUNTRIES, NO_CITIES, REGIONS, WORDS_TOO, find_place
from cloudsched.language.result import Refused
from cloudsched.language.rows import RULES, Rule

if TYPE_CHECKING:
    from cloudsched.language.lexicon import Cursor


def _repeat_length(length: Length) -> Repeat | Refused | None:
    if length.finest > Unit.HOUR:
        return None
    if any(unit > Unit.HOUR for unit, _ in length.amounts):
        return Refused("inexpressible", length.span)
    if not length.seconds:
        return None
    if len(length.amounts) == 1:
        return Repeat(length.amounts[0][1], length.amounts[0][0])
    minutes, seconds = divmod(length.seconds, 60)
    return Repeat(length.seconds, Unit.SECOND) if seconds else Repeat(minutes, Unit.MINUTE)


def _repeat_days(interval: int, days: Days) -> list[Clause] | None:
    if any(pick.nth for pick in days.picks):
        return None
    on = replace(days, dates=(), marked=True, on=True, loose=False, plural=False)
    return [Repeat(interval, Unit.WEEK), on]


Rule("every", "[on|for] [repeat] each")
Rule(
    "few",  # the interval, as a number
    ("@every count=@number", lambda count: count or Refused("no-interval")),
    ("[on|for] [repeat] each:1|each:3 other", lambda: 2),
    ("[on|for] [repeat] each:3 !unit:0|unit:1|unit:2", lambda: 2),  # "om de dag" is every other day
)
Rule("nth", ("@every nth=@ordinal", lambda nth: nth if nth > 1 else None))
Rule("days_named", ("weekday=weekday", lambda weekday: (weekday,)), ("dayset=dayset", lambda dayset: SETS[dayset]))
Rule("is_business", "&business")
parse_each = Rule(
    "each",  # an interval, days, a part of the day, or months with days in them
    ("@every &@is_exclaimed", lambda: Refused("completion")),
    ("@every edge=@edge_noun", lambda edge: replace(edge, marked=True, span=NOWHERE)),
    ("@every interval=fraction unit:2", partial(Repeat, unit=Unit.MINUTE)),
    ("@every interval=minute-unit", partial(Repeat, unit=Unit.MINUTE)),
    ("@every unit=unit:1|unit:2 half=and-half", lambda unit, half: Repeat(60 + half, Unit(unit - 1))),
    ("@every length=@length", _repeat_length),
    ("@few|@nth|@every too-short", lambda: Refused("too-short")),
    ("interval=@few unit=@unit", Repeat),
    ("interval=@few dayset:1|daysets:1", partial(_repeat_days, days=Days((Pick(0, 5), Pick(0, 6))))),
    ("@few dayset|daysets", lambda: Refused("inexpressible")),
    ("interval=@few &weekday|weekdays days=@each_days", _repeat_days),
    ("interval=@nth ![unit:3 of|in] unit=@unit", Repeat),
    ("@every months=@months !number|ordinal|tens", lambda months: [Repeat(1, Unit.YEAR), Months(months)]),
    ("@every part=part|parts", partial(Part, each=True)),
    (
        "@every [business=@is_business] days=@days_named part=part|parts",
        lambda business, days, part: [
            Days(tuple(Pick(0, day) for day in days), marked=True, business=bool(business)),
            Part(part),
        ],
    ),
    (
        "@every date=@weekday_date",  # Friday the 13th
        lambda date: [Days((Pick(date.day, DAY),), marked=True, on=True), OnlyIf((date.weekday,))],
    ),
    ("@every holiday", lambda: Refused("holidays")),
    "@every &dayset:0|dayset:1|dayset:2|daysets days=@each_days",
    ("@every !unit:0 unit=@unit", partial(Repeat, 1)),
    ("@every !ordinal unit=@unit !dayset|daysets|weekday", partial(Repeat, 1)),
    (  # "every second" alone is a unit, with days behind it an ordinal
        (
            "@every &ordinal !ordinal-end unit=@unit !@unit !weekday|weekdays|dayset|daysets|month|to-last "
            "![![in hour-number|month] of] ![and|comma !start ordinal|ordinal-end|article]"
        ),
        partial(Repeat, 1),
    ),
    "@every days=@each_days",
)


def _repeat(unit: int, interval: int | None = None, rate: int = 1, loose: str = "") -> Repeat:
    return Repeat(interval or 1, Unit(unit), rate, loose, adverb=True)


Rule("rate", "rate=twice", "rate=@number times")
parse_adverb = Rule(
    "adverb",  # daily, biweekly, once a week, 3 times a day
    ("[repeat] adverb:9", partial(_repeat, Unit.MONTH, 6)),
    ("[repeat] unit=adverb", _repeat),
    ("[repeat] interval=minute-adverb", partial(_repeat, Unit.MINUTE)),
    ("[repeat] unit=bi", partial(_repeat, interval=2, loose="bi")),
    ("[repeat] unit=tri", partial(_repeat, interval=3, loose="bi")),
    ("[repeat] rate=@rate unit=adverb", _repeat),
    ("[repeat] rate=@rate per [interval=@number] unit=unit", _repeat),
)
parse_lead = Rule(
    "lead",  # the frequency at the head of a phrase, before the title: nightly, weekly, recurring
    ("recurring", lambda: [Mark(REGULARLY)]),
    ("part=part-adverb", lambda part: [Part(part, each=True)]),
    ("&adverb|bi|tri adverb=@adverb", lambda adverb: [adverb]),
)


_THROUGH = 2
"""The value of words such as "through", which include the last month."""


def _make_day_range(first: int | None, last: int, period: Period) -> Days | None:
    is_repeated = period.each or (first is not None and not period.months)
    is_in_months = (period.months or period.unit == Unit.MONTH) and period.ahead is None
    first = 1 if first is None else first
    if not (is_repeated and is_in_months and 1 <= first < last <= 31):
        return None
    picks = tuple(Pick(day, DAY) for day in range(first, last + 1))
    return Days(picks, period, marked=True, on=True, plural=True)


def _make_date_range(dates: list[Date], first: int | None = None) -> list[Clause] | None:
    begin = dates[0].day
    if not dates[0].month or begin is None:
        return None
    days = [date.day for date in dates]
    if first is None:  # they are all days from the first to the last
        is_run = len(days) > 1 and days == list(range(begin, begin + len(days)))
    else:
        is_run = len(days) == 1 and 1 <= first < begin
    return [Start(replace(dates[0], day=first or begin, weekday=None)), End(dates[-1])] if is_run else None


def _is_period(point: Point | None) -> bool:
    return isinstance(point, Months | Year) or (isinstance(point, Date) and point.day is None)


def _make_end(joint: int, point: Point, inclusive: int | None, clock: Clock | None = None) -> End:
    return End(point, clock=clock, before=joint < 0, through=bool(inclusive) or joint == _THROUGH)


Rule("day_of_range", "[on|for] [article] nth=@ordinal")
Rule("single_nth", ("[on|for] [article] nth=@ordinal", lambda nth: Days((Pick(nth, DAY),))))
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
    ("start [on|in|at] point=@point [&at|clock clock=@any_clock]", Start),
    ("start [on|in] clock=@any_clock [&relday|on|next point=@point]", Start),
)
Rule("range_end", ("joint=until|to|dash point=@point [inclusive=inclusive]", _make_end))
parse_start = Rule(
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
        lambda first, last: [Start(first), End(last)] if 1 <= first.picks[0].nth < last.picks[0].nth else None,
    ),
    ("from|between|start first=@day_of_range to|until|and|dash dates=@dates", _make_date_range),
    ("from|between|start !@day_of_range [on|for] [article] dates=@dates", _make_date_range),
    (
        "begin=@begin &to|dash end=@range_end",
        lambda begin, end: (
            [begin, replace(end, through=True)] if _is_period(begin.point) and _is_period(end.point) else None
        ),
    ),
    ("begin=@begin end=@range_end", lambda begin, end: [begin, end] if begin.point else None),
    "begin=@begin [onward]",
)
parse_end = Rule(
    "end",  # until June 30, before Christmas, for 3 weeks, 10 times
    "&until days=@day_range",
    ("joint=until [on] point=@day_point [inclusive=inclusive] [clock=@any_clock]", _make_end),
    ("joint=until|before [on] point=@point [inclusive=inclusive]", _make_end),
    (
        "[in-total] [for] [up] count=twice !adverb ![per unit|number|tens]",
        lambda count: End(count=count, before=True) if count > 1 else None,
    ),
    (
        "[in-total] [for] [up] count=@number [more] times !adverb ![per unit|number|tens] [in-total]",
        lambda count: End(count=count) if count else Refused("never"),
    ),
    ("for [the-next] length=@length", End),
    ("for length=@next_unit", End),
    ("length=@length for-after", End),
)
Rule("next_unit", ("the-next unit=@unit", lambda unit: Length(((unit, 1),))))


parse_rest = Rule(
    "rest",  # on all other days: those of the week that the rest of the phrase does not name
    ("rest", partial(Days, marked=True, on=True, others=True)),
)


def _make_series(
    length: Length, said: int | None, before: int | None, behind: int | None, weekday: int | None = None
) -> list[Clause] | None:
    if not (said or before or behind):
        return None
    end = End(length=length)
    return [end] if weekday is None else [Days((Pick(0, weekday),), marked=True, on=True, plural=True), end]


Rule("weeks_said", ("count=@number", lambda count: Length(((Unit.WEEK, count),)) if count else None))
Rule("days_said", ("count=@number", lambda count: Length(((Unit.DAY, count),)) if count else None))
parse_counted_days = Rule(
    "counted_days",  # the next 5 Fridays, 6 Mondays in a row, on 3 consecutive days
    (
        (
            "[on|for] [said=the-next] length=@weeks_said [before=consecutive] "
            "weekday=weekdays|counted-weekday [behind=consecutive]"
        ),
        _make_series,
    ),
    ("[on|for] [said=the-next] length=@days_said [before=consecutive] unit:3 [behind=consecutive]", _make_series),
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


def leave_out(found: list[list[Point] | tuple[str, ...]]) -> list[Clause]:
    """Return the clauses of days, which are lists, and of names of calendars, which are tuples."""
    names = tuple(name for each in found if isinstance(each, tuple) for name in each)
    points = tuple(point for each in found if isinstance(each, list) for point in each)
    return [Except(points), *([NamedCalendars(names)] if names else [])]


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
Rule(
    "left_out",
    ("point=@day_range|@stretch", lambda point: [point]),
    "[on|for|in|start] days-of ids=@ids",
    (
        (
            "[on|for|in|start] [article] [named=@countries] [dash] holiday:1 "
            "[in|of [article] behind=@countries !zone-time] [&@is_genitive whose=@countries]"
        ),
        lambda named, behind, whose: named or behind or whose or ("",),
    ),
    "[on|for|in|start] points=@points",
)
Rule(
    "points",
    ("[article] @ordinal that-one", lambda: Refused("inexpressible")),
    ("[article] months=@months !number|ordinal|tens|day-number", lambda months: [Months(months)]),
    ("date=@occurrence", lambda date: [date]),
    ("point=@single_day", _leave_out_day),
    ("days=@repeated_days|@days", lambda days: [*days.dates] or [days]),
)
Rule("repeated_days", "each days=@each_days")
parse_except = Rule(
    "except",  # except Fridays, but not in July and August, except on 6 March and Christmas
    (
        (
            "[comma|open] [comma|open] except [@exceptions comma|and|or] [and] [on|for|in|start] [article] "
            "[@countries] [dash] holiday:2"
        ),
        partial(Refused, "holidays", None, "give its date, for example: except 2026-11-26"),
    ),
    (
        "[comma|open] [comma|open] except found=@exceptions [close]",
        leave_out,
    ),
)
parse_added = Rule(
    "added",  # extra on 2027-03-01 at 09:00 and 2027-04-01 at 10:00: single dates, with their year and time
    ("added dates=@occurrences", Added),
)
parse_only_if = Rule(
    "only_if",  # if it is a Monday or a Friday
    ("if-day [article] days=@any_weekdays [if-day-end]", lambda days: OnlyIf(tuple(dict.fromkeys(days)))),
)


def parse_place(c: Cursor) -> list[Clause] | None:
    """Parse a time zone: ``New York time``, ``Ortszeit in Tokio``, ``in Tokyo``, ``UTC``, ``Europe/Paris``."""
    start = c.at
    c.take("open")
    first, previous = c.tokens[start], c.tokens[max(start - 1, 0)]
    before = c.matches[start - 1].keys()  # none at the start, as there are none at the end
    has_preposition = c.take("in", "at", "on") is not None
    time = c.take("zone-of") is not None
    c.take("article")
    if c.ended:
        return None
    is_word = c.sees("feast", "holiday") or c.tokens[c.at].text in c.language.innocent  # "wet" is Dutch for a law
    result = None if is_word else find_place(c.tokens, c.at)
    if result is None:
        if time:
            c.at += 1
            raise Refused("not-understood", c.span(start), "name a time zone by its city, or write it as Europe/London")
        return None
    names, c.at, needs_time = result
    time = c.take("zone-time") is not None or time
    c.take("close")
    is_last = previous.text == "," and c.ended
    is_number = previous.kind in {NUMBER, CLOCK} and not first.glued
    is_hour = not before.isdisjoint({"halfday", "halfday-short", "named-time"})
    follows = (is_hour or "clock" in before) and first.text in REGIONS  # "9am Pacific"
    is_behind_time = (is_hour or is_number or "oclock" in before) and first.text not in NO_CITIES  # "9am London"
    if needs_time and not (time or has_preposition or follows or is_behind_time or is_last):
        return None
    if not time and has_preposition and not needs_time and len(names) > 1:
        return None
    if first.text in WORDS_TOO and not (time or is_behind_time):
        return None
    return [Place(names, c.span(start), is_loose=needs_time and not (time or follows))]


parse_mark = Rule(
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
Rule("weekday", "weekday=weekday")
RULES.update(
    is_exclaimed=lambda c: (c.token is not None and c.token.text == "!") or None,
    dates=parse_dates,
    each_days=lambda c: parse_days(c, each=True),
    is_genitive=lambda c: (c.token is not None and c.token.text.endswith("s")) or None,
    country=_take_country,
    quote=lambda c: c.tokens[c.at - 1].text if c.take("quote") else None,
    countries=List("country", "and or comma", "in article"),
    ids=List("quote", "and comma"),
    exceptions=List("left_out", "comma and or", "except", is_joined=True),
    occurrences=List("occurrence", "comma and", "added"),
    any_weekdays=List("weekday", "comma or", "article"),
)
