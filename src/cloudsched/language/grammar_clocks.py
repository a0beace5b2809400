"""Parse times of day, parts of the day, and windows from one time to another."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.language.grammar_numbers import List
from cloudsched.language.lexicon import NUMBER
from cloudsched.language.nodes import NOWHERE, Clause, Clock, Grid, Part, Repeat, Times, Unit, Window
from cloudsched.language.result import Refused
from cloudsched.language.rows import RULES, Rule

if TYPE_CHECKING:
    from cloudsched.language.lexicon import Language, Token

_NIGHT, _MIDDAY, _LAST_HOUR = 3, 4, 23
_MIDNIGHT = Clock(0, exact=True, named=True)
_SPOKEN = frozenset({5, 10, 20, 25})
"""The minutes that people say before or after an hour: "ten to nine"."""
_MILITARY = re.compile(r"(?!19|20)([01]\d|2[0-3])[0-5]\d")
"""A time of four digits that is no year."""
_COUNTS_NOTHING = "![![from weekday|weekdays] unit|times|month|weekday|weekdays|dayset|daysets|of|number|tens]"
_ENDS_OR = "![!each|the-hour|adverb|comma|on|daysets|from|between|except @more]"


def _make_clock(text: str, language: Language) -> Clock | None:
    if text[-3] not in ".:h":
        return None
    hour, minute, second = (*map(int, re.split(r"\D", text)), 0)[:3]
    exact = language.clock24 or hour > 12 or text[0] == "0" or "h" in text
    return Clock(hour, minute, second, exact=exact, oclock=language.clock24)


def _split(token: Token) -> Clock | None:
    hour, minute = divmod(token.value[0], 100)
    return Clock(hour, minute, exact=hour > 12 or token.text[0] == "0") if len(token.text) < 5 else None


Rule(
    "written",
    ("&clock token=@token language=@language clock", lambda token, language: _make_clock(token.text, language)),
)
Rule("pair_clock", ("&pair text=@decimal language=@language", _make_clock))
Rule(
    "spelled",  # nine thirty
    (
        "&number|tens !@is_digits hour=@number [dash] minute=@number",
        lambda hour, minute: Clock(hour, minute) if 10 <= minute < 60 else None,
    ),
)
Rule(
    "hour_number",
    "clock=@spelled",
    ("&number &@is_long token=@token number", _split),  # 930, 1700
    ("&number|tens !@is_long token=@token hour=@number", lambda token, hour: Clock(hour, exact=token.text[0] == "0")),
)
Rule(
    "minutes_said",  # those of "8 Uhr 15", but not the number of "8 Uhr 2 Tabletten"
    ("&number minute=@two_digits !unit|month|oclock|times", lambda minute: minute if minute < 60 else None),
    (
        "&number|tens !@is_digits minute=@number !unit|month|oclock|times",
        lambda minute: minute if 10 <= minute < 60 else None,
    ),
)


def _add_oclock(language: Language, clock: Clock, minute: int | None) -> Clock:
    minute = minute or clock.minute
    is_exact = language.clock24 and bool(minute or not language.either_half)
    return replace(clock, minute=minute, exact=clock.exact or is_exact, oclock=True)


Rule(
    "timed",
    "clock=@written [oclock]",
    ("&pair|number text=@decimal language=@language oclock", _make_clock),  # 8.15 Uhr, 8,15 Uhr
    ("&number &@is_long clock=@hour_number hours-said", lambda clock: replace(clock, exact=True)),
    ("clock=@hour_number &@is_glued hour-mark", lambda clock: replace(clock, exact=True, oclock=True)),
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
    "&number &@is_military clock=@hour_number !unit|times",
    "clock=@hour_number !unit|times &tonight|relday",
    "clock=@hour_number &[next part]",
)
Rule("plain_hour", "!@is_three clock=@hour_number !unit|times")
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


def _count(minute: int, side: int) -> int | None:
    return minute * side if minute < 60 else None


Rule("spoken_minute", ("minute=@number", lambda minute: minute if minute in _SPOKEN else None))
Rule("spoken_offset", ("minute=@spoken_minute side=past", _count))
Rule(
    "offset",  # minutes after an hour, or before it. "9 to 17" and "10 to 5" are windows
    ("minute=half side=past", _count),
    "!half:15 half=half &number|tens",  # half nine, halb neun
    ("minute=@number clock-minute side=past", _count),
    ("minute=@number side=past:1", _count),
    ("minute=@spoken_minute !to|until|dash side=past", _count),
    ("!@is_digits minute=@spoken_minute side=past !@is_digits", _count),
)


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
    return replace(clock, about=bool(about or ish), span=NOWHERE)


_CLOCK = "[about=about] clock=@named_clock|@around|"
_ISH = " [[dash] ish=ish]"
Rule("bare_clock", (_CLOCK + "@hour" + _ISH, _check))  # a plain number may be an hour
Rule("last_clock", (_CLOCK + "@marked_hour|@pair_clock|@last_hour" + _ISH, _check))
Rule(
    "clock",
    ("&about clock=@bare_clock", lambda clock: replace(clock, span=NOWHERE)),
    (_CLOCK + "@marked_hour" + _ISH, _check),
)


Rule(
    "adjacent",  # a time that stands right behind another: 8am 2pm and 8pm
    "&clock !@is_behind_number clock=@clock !to|dash|until",
    (
        "!@is_behind_number clock=@clock !to|dash|until",
        lambda clock: clock if not clock.named and (clock.half is not None or clock.oclock) else None,
    ),
)
_JOINT = "comma|and|also [comma|and|also] "
Rule(
    "next_bare",
    _JOINT + "[at] clock=@last_clock",
    "clock=@adjacent",
)
Rule(
    "next_clock",
    _JOINT + "at clock=@last_clock",
    _JOINT + "clock=@clock",
    "clock=@adjacent",
)
Rule(
    "said_at",
    "at",
    "&about",
    "&number|tens|pair|clock &@is_bare",
)
Rule("to_hour", "until !@year [at]", "!until to|dash [at]")
_SPOKEN_TOO = "[ &spoken=@spoken ] "


def _list_times(first: Clock, more: tuple[Clock, ...] | None) -> Times:
    return Times((first, *(more or ())))


parse_times = Rule(
    "times",  # at 9:00, 12 and 17:30, 3pm, 9am to 5pm
    ("[at] &number &@is_late clock=@spoken", lambda clock: Times((clock,))),
    ("@said_at " + _SPOKEN_TOO + "first=@bare_clock @to_hour last=@last_clock", Window),
    (_SPOKEN_TOO + "first=@bare_clock @to_hour !clock last=@clock", Window),
    (_SPOKEN_TOO + "&@is_digits first=@bare_clock @to_hour last=@clock", Window),  # no "mine to 11:00" with a typo
    (_SPOKEN_TOO + "first=@clock @to_hour last=@last_clock", Window),
    ("@said_at first=@bare_clock [more=@more_bare]", _list_times),
    ("first=@clock [more=@more_clocks]", _list_times),
)
parse_window = Rule(
    "window",  # from 9 to 17, between 9am and 5pm, after 2pm and before 4pm
    ("from|between first=@bare_clock @to_hour last=@last_clock", Window),
    ("between first=@bare_clock and [at] last=@last_clock", Window),
    ("after first=@bare_clock [and] before last=@bare_clock", partial(Window, open_first=True, open_last=True)),
)
Rule("sixtieths", ("numbers=@numbers", lambda numbers: numbers if max(numbers) < 60 else None))
Rule("hours", ("numbers=@numbers", lambda numbers: numbers if max(numbers) <= _LAST_HOUR else None))
parse_grid = Rule(
    "grid",  # at minute 0, 15 and 30 in hour 9 to 17, the form that descriptions of schedules use
    (
        (
            "&at|in|minute-number|second-number [at &minute-number|in|second-number] "
            "[minute-number minutes=@sixtieths] [in hour-number hours=@hours] [second-number seconds=@sixtieths]"
        ),
        lambda minutes, hours, seconds: (
            Grid(minutes or (), hours or (), seconds or ()) if minutes or hours or seconds else None
        ),
    ),
)
Rule(
    "minute_past",
    "minute=hour-point [the-hour] !number|tens|named-time|clock|oclock",
    ("[at] minute-number minute=@number &[of|past each]", lambda minute: minute if minute < 60 else None),
    (
        "[at] !minute-number minute=@number [clock-minute] side=past !number|tens|named-time|clock " + _ENDS_OR,
        lambda minute, side: _count(minute, side) and side * minute % 60,
    ),
)


def _repeat_hour(minute: int) -> list[Clause]:
    return [Grid((minute,), ()), Repeat(1, Unit.HOUR)]


parse_hour_point = Rule(
    "hour_point",  # on the hour, at 15 past every hour, at half past
    ("[for|of] minute=hourly-point", _repeat_hour),
    ("[for|of] minute=@minute_past [of|past] each unit:2", _repeat_hour),
    ("[for|of] minute=@minute_past [the-hour]", lambda minute: [Grid((minute,), ())]),
)
parse_part = Rule(
    "part",  # in the morning, this evening, tonight, mornings
    ("part=part-adverb", partial(Part, each=True)),
    ("part=tonight", partial(Part, today=True)),
    ("next:0 part=part", partial(Part, today=True)),
    (
        "!next [in|on|at|part-of] [article] language=@language part=parts",
        lambda language, part: Part(part, each=True, is_adverb=language.part_adverbs),
    ),
    ("!next [in|on|at|part-of] [article] part=part", Part),
)
RULES.update(
    clock24=lambda c: c.language.clock24 or None,
    is_behind_number=lambda c: c.tokens[c.at - 1].kind == NUMBER or None,
    is_bare=lambda c: c.bare or None,
    is_late=lambda c: c.matches[c.at]["number"].value > _LAST_HOUR or None,
    is_military=lambda c: c.token and _MILITARY.fullmatch(c.token.text),
    is_three=lambda c: c.token and re.fullmatch(r"\d{3}", c.token.text),
    more=lambda c: not c.ended or None,
    more_bare=List("next_bare"),
    more_clocks=List("next_clock"),
)
