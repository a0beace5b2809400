"""Parse times of day, parts of the day, and windows from one time to another."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.language.grammar_numbers import list_numbers
from cloudsched.language.nodes import Clock, Grid, Part, Repeat, Times, Unit, Window
from cloudsched.language.result import Refused
from cloudsched.language.rows import RULES, Rule

if TYPE_CHECKING:
    from cloudsched.language.lexicon import Language

_NIGHT, _MIDDAY, _LAST_HOUR = 3, 4, 23
_MIDNIGHT = Clock(0, exact=True, named=True)
_MILITARY = r"/(?!19|20)([01]\d|2[0-3])[0-5]\d/"
"""A time of four digits that is no year."""
_COUNTS_NOTHING = "![![from weekday|weekdays] unit|times|month|weekday|weekdays|dayset|daysets|of|number|tens]"
_ENDS_OR = "![!each|the-hour|adverb|comma|on|daysets|from|between|except @more]"


def _make_clock(text: str, language: Language) -> Clock | None:
    if text[-3] not in ".:h":
        return None
    hour, minute, second = (*map(int, re.split(r"\D", text)), 0)[:3]
    exact = language.clock24 or hour > 12 or text[0] == "0" or "h" in text
    return Clock(hour, minute, second, exact=exact, oclock=language.clock24)


def _split(text: str) -> Clock:
    hour, minute = divmod(int(text), 100)
    return Clock(hour, minute, exact=hour > 12 or text[0] == "0")


Rule("written", ("&clock text=/.*/ language=@language", _make_clock))
Rule("pair_clock", ("&pair text=@decimal language=@language", _make_clock))
Rule("spelled", (r"&number|tens !/\d.*/ hour=@number [dash] minute=@number:10..59", Clock))  # nine thirty
Rule(
    "hour_number",
    "clock=@spelled",
    (r"&number text=/\d{3,4}/", _split),  # 930, 1700
    (r"&number &/0.*/ hour=number", partial(Clock, exact=True)),
    (r"&number|tens !/\d{3,}/ hour=@number", Clock),
)
Rule(
    "minutes_said",  # those of "8 Uhr 15", but not the number of "8 Uhr 2 Tabletten"
    r"&number &/\d\d/ minute=number:0..59 !unit|month|oclock|times",
    r"&number|tens !/\d.*/ minute=@number:10..59 !unit|month|oclock|times",
)


def _add_oclock(language: Language, clock: Clock, minute: int | None) -> Clock:
    minute = minute or clock.minute
    is_exact = language.clock24 and bool(minute or not language.either_half)
    return replace(clock, minute=minute, exact=clock.exact or is_exact, oclock=True)


Rule(
    "timed",
    "clock=@written [oclock]",
    ("&pair|number text=@decimal language=@language oclock", _make_clock),  # 8.15 Uhr, 8,15 Uhr
    (
        r"&number &/\d{3,}/ clock=@hour_number hours-said",
        "clock=@hour_number &@is_glued hour-mark",
        lambda clock: replace(clock, exact=True, oclock=True),
    ),
    ("clock=@hour_number oclock language=@language [&@clock24 minute=@minutes_said]", _add_oclock),
)
_TIMED = "clock=@timed|@pair_clock|@hour_number "


def _set_half(clock: Clock, half: int) -> Clock:
    return replace(clock, half=half)


def _set_part(clock: Clock, part: int) -> Clock:
    is_midnight = part == _NIGHT and clock.hour == 12 and not clock.minute
    return _MIDNIGHT if is_midnight else replace(clock, part=part)


def _set_noon(clock: Clock) -> Clock | None:
    return replace(clock, part=_MIDDAY, exact=False) if clock.hour <= 12 else None


Rule(
    "halved",
    ("!@clock24 " + _TIMED + "half=halfday", _set_half),
    (_TIMED + "half=halfday", lambda clock, half: _set_half(clock, half) if clock.hour != 12 else None),
    (_TIMED + "&@is_glued half=halfday-short", _set_half),
    (_TIMED + "part=parts", lambda clock, part: _set_part(clock, part) if clock.hour == 12 and clock.oclock else None),
    (_TIMED + "noon-mark", _set_noon),
    (_TIMED + "named-time:0", lambda clock: _MIDNIGHT if clock.hour in {0, 12} and not clock.minute else None),
    (_TIMED + "in|at|part-of [article] part=part", _set_part),
)
Rule(
    "marked_hour",
    "clock=@halved|@timed",
    "clock=@spelled !unit|times",
    "&number &" + _MILITARY + " clock=@hour_number !unit|times",
    "clock=@hour_number !unit|times &tonight|relday",
    "clock=@hour_number &[next part]",
)
Rule("plain_hour", r"!/\d{3}/ clock=@hour_number !unit|times")
Rule(
    "last_hour",  # it must not begin another clause, as in "9 times"
    ("clock=@plain_hour " + _COUNTS_NOTHING, lambda clock: clock if clock.hour <= 24 or clock.exact else None),
)
Rule("hour", "hour=@marked_hour|@pair_clock|@plain_hour")
Rule(
    "named_clock",
    ("end=day-end", lambda end: Clock(17, exact=True, named=True, day_end=end)),
    ("noon-mark at clock=@hour", _set_noon),  # midday at 12
    ("time=named-time", lambda time: Clock(time // 60, time % 60, exact=True, named=True)),
)

Rule("spoken_minute", "minute=@number:5|@number:10|@number:20|@number:25")  # "ten to nine"
Rule(
    "offset",  # minutes after an hour, or before it. "9 to 17" and "10 to 5" are windows
    "!half:15 half=half &number|tens",  # half nine, halb neun
    (
        "minute=half side=past",
        "minute=@number:0..59 clock-minute side=past",
        "minute=@number:0..59 side=past:1",
        "minute=@spoken_minute !to|until|dash side=past",
        r"!/\d.*/ minute=@spoken_minute side=past !/\d.*/",
        lambda minute, side: minute * side,
    ),
)
Rule("spoken_offset", ("minute=@spoken_minute side=past", lambda minute, side: minute * side))


def _go(minutes: int, hour: Clock) -> Clock | None:
    total = hour.hour * 60 + hour.minute + minutes
    if hour.hour == 12 and hour.half is not None and total < 720:
        return replace(hour, hour=11, minute=total % 60, half=1 - hour.half)
    if total < 0:
        return Clock(23, total % 60, exact=True)
    is_bare = not hour.exact and hour.half is None
    if is_bare and not hour.hour:
        return None
    number = total // 60 or (12 if is_bare else 0)  # "quarter to one" is after noon, unless the night is said
    return replace(hour, hour=number, minute=total % 60, named=False)


Rule("whole_hour", ("hour=@named_clock|@hour", lambda hour: None if hour.minute else hour))
Rule("half_hour", ("&half minutes=@offset hour=@whole_hour", _go))
Rule("around", ("minutes=@offset hour=@half_hour|@whole_hour", _go))  # half past three, fünf nach halb neun
Rule("spoken", ("minutes=@offset|@spoken_offset hour=@half_hour|@whole_hour", _go))  # "10 to 5", too


def _check(clock: Clock, about: int | None, ish: int | None) -> Clock:
    most = _LAST_HOUR if clock.half is None or clock.exact else 12
    if not 0 <= clock.hour <= most or max(clock.minute, clock.second) > 59:
        raise Refused("no-such-time")
    return replace(clock, about=bool(about or ish))


_CLOCK = "[about=about] clock=@named_clock|@around|"
_ISH = " [[dash] ish=ish]"
Rule("bare_clock", (_CLOCK + "@hour" + _ISH, _check))  # a plain number may be an hour
Rule("last_clock", (_CLOCK + "@marked_hour|@pair_clock|@last_hour" + _ISH, _check))
Rule("clock", "&about clock=@bare_clock", (_CLOCK + "@marked_hour" + _ISH, _check))
Rule(
    "adjacent",  # a time that stands right behind another: 8am 2pm and 8pm
    "&clock !<number clock=@clock !to|dash|until",
    (
        "!<number clock=@clock !to|dash|until",
        lambda clock: clock if not clock.named and (clock.half is not None or clock.oclock) else None,
    ),
)
_JOINT = "comma|and|also [comma|and|also] "
Rule("next_bare", _JOINT + "[at] clock=@last_clock", "clock=@adjacent")
Rule("next_clock", _JOINT + "at clock=@last_clock", _JOINT + "clock=@clock", "clock=@adjacent")
Rule("said_at", "at", "&about", "&number|tens|pair|clock &@is_bare")
Rule("to_hour", "until !@year [at]", r"!until to|dash [at] ![&number|tens &@is_glued !/\d.*/]")
_SPOKEN_TOO = "[ &spoken=@spoken ] "
Rule(
    "times",  # at 9:00, 12 and 17:30, 3pm, 9am to 5pm
    ("[at] &number:24.. clocks+=@spoken", Times),
    (
        "@said_at " + _SPOKEN_TOO + "first=@bare_clock @to_hour last=@last_clock",
        _SPOKEN_TOO + "first=@bare_clock @to_hour !clock last=@clock",
        _SPOKEN_TOO + r"&/\d.*/ first=@bare_clock @to_hour last=@clock",  # no "mine to 11:00" with a typo
        _SPOKEN_TOO + "first=@clock @to_hour last=@last_clock",
        Window,
    ),
    ("@said_at clocks+=@bare_clock {clocks+=@next_bare}", "clocks+=@clock {clocks+=@next_clock}", Times),
)
Rule(
    "window",  # from 9 to 17, between 9am and 5pm, after 2pm and before 4pm
    (
        "from|between first=@bare_clock @to_hour last=@last_clock",
        "between first=@bare_clock and [at] last=@last_clock",
        Window,
    ),
    ("after first=@bare_clock [and] before last=@bare_clock", partial(Window, open_first=True, open_last=True)),
)
Rule("sixtieth", "number=@number:0..59")
Rule("hour_of_day", "number=@number:0..23")
list_numbers("sixtieths", "sixtieth")
list_numbers("hours", "hour_of_day")
Rule(
    "grid",  # at minute 0, 15 and 30 in hour 9 to 17, the form that descriptions of schedules use
    (
        (
            "&at|in|minute-number|second-number [at &minute-number|in|second-number] "
            "[minute-number minutes=@sixtieths] [in hour-number hours=@hours] "
            "[second-number seconds=@sixtieths]"
        ),
        lambda minutes, hours, seconds: (
            Grid(minutes or (), hours or (), seconds or ()) if minutes or hours or seconds else None
        ),
    ),
)
Rule(
    "minute_past",
    "minute=hour-point [the-hour] !number|tens|named-time|clock|oclock",
    "[at] minute-number minute=@number:0..59 &[of|past each]",
    (
        "[at] !minute-number minute=@number:0..59 [clock-minute] side=past !number|tens|named-time|clock " + _ENDS_OR,
        lambda minute, side: side * minute % 60,
    ),
)


Rule(
    "hour_point",  # on the hour, at 15 past every hour, at half past
    (
        "[for|of] minute=hourly-point",
        "[for|of] minute=@minute_past [of|past] each unit:2",
        lambda minute: [Grid((minute,), ()), Repeat(1, Unit.HOUR)],
    ),
    ("[for|of] minute=@minute_past [the-hour]", lambda minute: [Grid((minute,), ())]),
)
Rule(
    "part",  # in the morning, this evening, tonight, mornings
    ("part=part-adverb", partial(Part, each=True)),
    ("part=tonight", "next:0 part=part", partial(Part, today=True)),
    (
        "!next [in|on|at|part-of] [article] language=@language part=parts",
        lambda language, part: Part(part, each=True, is_adverb=language.part_adverbs),
    ),
    ("!next [in|on|at|part-of] [article] part=part", Part),
)
RULES.update(
    clock24=lambda c: c.language.clock24 or None,
    is_bare=lambda c: c.bare or None,
    more=lambda c: not c.ended or None,
)
