"""Parse times of day, parts of the day, and windows from one time to another."""

from __future__ import annotations

from dataclasses import replace

from cloudsched.language.grammar_numbers import MOST_ITEMS, parse_number
from cloudsched.language.lexicon import CLOCK, NUMBER, PAIR, WORD, Cursor
from cloudsched.language.nodes import Clause, Clock, Grid, Part, Repeat, Times, Unit, Window
from cloudsched.language.result import Refused
from cloudsched.language.rows import RULES

_NIGHT, _LAST_HOUR = 3, 23
_MIDNIGHT = Clock(0, exact=True, named=True)
_SPOKEN = frozenset({5, 10, 20, 25})
"""The minutes that people say before or after an hour: "ten to nine"."""
_NOT_AFTER_AN_HOUR = ("unit", "times", "month", "weekday", "weekdays", "dayset", "daysets", "of", "number", "tens")


def parse_times(c: Cursor) -> Times | Window | None:
    """Parse ``at 9:00, 12 and 17:30``, ``3pm``, ``9am to 5pm``."""
    start = c.at
    said_at = c.take("at") is not None or c.bare or c.sees("about")
    before = c.at
    spoken = c.attempt(lambda c: _parse_around(c, digits=True))
    number = c.matches[before].get("number") if spoken is not None else None
    if spoken is not None and number is not None and number.value > _LAST_HOUR:
        return Times((spoken,), c.span(start))
    c.at = before
    window = c.attempt(lambda c: _parse_span(c, bare=said_at))
    if window is not None:
        return replace(window, spoken=spoken, span=c.span(start))
    first = parse_clock(c, bare=said_at)
    if first is None:
        c.at = start
        return None
    clocks = [first]
    while len(clocks) < MOST_ITEMS:
        before = c.at
        joined = c.skip("comma", "and", "also")
        at = c.take("at") is not None
        another = parse_clock(c, bare=True, last=True) if joined else None
        if not joined and not at:
            another = _parse_next_to(c, clocks[-1])
        if another is None or (not at and not said_at and _is_bare(another) and not _is_bare(first)):
            c.at = before
            break
        clocks.append(another)
    return Times(tuple(clocks), c.span(start))


def _parse_next_to(c: Cursor, before: Clock) -> Clock | None:
    """Parse a time that stands right behind another, such as those of ``8am 2pm and 8pm``."""
    is_written = c.tokens[c.at - 1].kind == CLOCK
    is_next = c.token is not None and c.token.kind == CLOCK
    one = parse_clock(c, bare=False, last=True)
    if one is None or one.named or c.sees("to", "dash", "until"):
        return None
    are_said = (is_written or not _is_bare(before)) and (is_next or one.half is not None or one.oclock)
    return one if are_said else None


def _is_bare(one: Clock) -> bool:
    return one.half is None and not one.exact and one.part is None and not one.minute


def parse_window(c: Cursor) -> Window | None:
    """Parse ``from 9 to 17``, ``between 9am and 5pm``, ``after 2pm and before 4pm``."""
    start = c.at
    if c.take("from") is not None:
        result = c.attempt(lambda c: _parse_span(c, bare=True))
    elif c.take("between") is not None:
        result = c.attempt(lambda c: _parse_span(c, bare=True, joined="and"))
    elif c.take("after") is not None:
        result = c.attempt(_parse_after_before)
    else:
        return None
    return replace(result, span=c.span(start)) if result is not None else None


def _parse_span(c: Cursor, *, bare: bool, joined: str = "to") -> Window | None:
    first = parse_clock(c, bare=True)
    if first is None:
        return None
    is_end, until = c.sees("until"), not c.sees(joined, "to", "dash")
    if c.take(joined, "to", "until", "dash") is None:
        return None
    digits = c.token.text if c.token is not None and c.token.kind == NUMBER else ""
    is_year = len(digits) == 4 and digits.startswith("20") and not c.sees("hours-said", ahead=1)
    if (until and len(digits) > 2) or (is_end and is_year and not first.minute):
        return None  # in "at 9 until 2028" the number is a year
    c.take("at")
    last = parse_clock(c, bare=True, last=True)
    if last is None or (not bare and _is_bare(first) and _is_bare(last)):
        return None
    return Window(first, last)


def _parse_after_before(c: Cursor) -> Window | None:
    first = parse_clock(c, bare=True)
    c.take("and")
    if first is None or c.take("before") is None:
        return None
    last = parse_clock(c, bare=True)
    return None if last is None else Window(first, last, open_first=True, open_last=True)


def parse_grid(c: Cursor) -> Grid | None:
    """Parse ``at minute 0, 15 and 30 in hour 9 to 17``, the form that descriptions of schedules use."""
    start = c.at
    if not c.sees("minute-number", "second-number"):
        c.take("at")
    minutes: tuple[int, ...] = ()
    if c.take("minute-number") is not None:
        minutes = tuple(RULES["numbers"](c) or ())
        if not minutes:
            return None
    elif not c.sees("in", "second-number"):
        return None
    hours: tuple[int, ...] = ()
    before = c.at
    if c.take("in") is not None and c.take("hour-number") is not None:
        hours = tuple(RULES["numbers"](c) or ())
    if not hours:
        c.at = before
    seconds = tuple(RULES["numbers"](c) or ()) if c.take("second-number") is not None else ()
    if not (minutes or hours or seconds) or max((*minutes, *seconds), default=0) > 59 or max(hours, default=0) > 23:
        c.at = start
        return None
    return Grid(minutes, hours, seconds, c.span(start))


def parse_hour_point(c: Cursor) -> list[Clause] | None:
    """Parse a minute of the hour: ``on the hour``, ``at 15 past every hour``, ``at half past``."""
    start = c.at
    c.take("for", "of")
    hourly = c.take("hourly-point")
    if hourly is not None:
        span = c.span(start)
        return [Grid((hourly.value,), (), span=span), Repeat(1, Unit.HOUR, span=span)]
    minute = c.attempt(_parse_minute)
    if minute is None:
        return None
    has_hour = c.take("the-hour") is not None
    grid = Grid((minute,), (), span=c.span(start))
    middle = c.at
    c.take("of", "past")
    repeated = c.take("each") is not None
    unit = c.take("unit") if repeated else None
    if unit is not None and unit.value == Unit.HOUR and not has_hour:
        return [grid, Repeat(1, Unit.HOUR, span=c.span(start))]
    c.at = middle
    return [grid]


def _parse_minute(c: Cursor) -> int | None:
    point = c.take("hour-point")
    if point is not None:
        c.take("the-hour")
        following = ("number", "tens", "named-time", "clock", "oclock")
        return None if c.sees(*following) else point.value
    c.take("at")
    numbered = c.take("minute-number") is not None
    value = parse_number(c)
    if value is None or not 0 <= value <= 59:
        return None
    if numbered:
        return value if c.sees("of", "past") and c.sees("each", ahead=1) else None
    c.take("clock-minute")
    side = c.take("past")
    if side is None or c.sees("number", "tens", "named-time", "clock"):
        return None
    if not (c.ended or c.sees("each", "the-hour", "adverb", "comma", "on", "daysets", "from", "between", "except")):
        return None
    return value if side.value > 0 else 60 - value


def parse_part(c: Cursor) -> Part | None:
    """Parse a part of the day: ``in the morning``, ``this evening``, ``tonight``, ``mornings``."""
    start = c.at
    adverb = c.take("part-adverb")
    if adverb is not None:
        return Part(adverb.value, each=True, span=c.span(start))
    today = c.take("tonight")
    if today is not None:
        return Part(today.value, today=True, span=c.span(start))
    this = c.take("next")
    if this is not None:
        named = c.take("part") if this.value == 0 else None
        return Part(named.value, today=True, span=c.span(start)) if named is not None else None
    c.take("in", "on", "at", "part-of")
    c.take("article")
    plural = c.take("parts")
    if plural is not None:
        return Part(plural.value, each=True, is_adverb=c.language.part_adverbs, span=c.span(start))
    named = c.take("part")
    return Part(named.value, span=c.span(start)) if named is not None else None


def parse_clock(c: Cursor, *, bare: bool, last: bool = False) -> Clock | None:
    """Parse one time of day.

    With `bare`, a plain number may be an hour. With `last`, it must not begin another clause, as in "9 times".
    """
    start = c.at
    about = c.take("about") is not None
    result = (
        _parse_named(c)
        or c.attempt(_parse_around)
        or c.attempt(lambda c: _parse_hour(c, bare=bare or about, last=last))
    )
    if c.sees("dash") and c.sees("ish", ahead=1):
        c.take("dash")
    about = c.take("ish") is not None or about
    if result is None:
        c.at = start
        return None
    if not (0 <= result.hour <= 23 and result.minute <= 59 and result.second <= 59):
        raise Refused("no-such-time", c.span(start))
    if result.half is not None and not 0 <= result.hour <= (12 if not result.exact else 23):
        raise Refused("no-such-time", c.span(start))
    return replace(result, about=about, span=c.span(start))


def _parse_named(c: Cursor) -> Clock | None:
    start = c.at
    if (end := c.take("day-end")) is not None:
        return Clock(17, exact=True, named=True, day_end=end.value)
    if c.take("noon-mark") is not None:  # "midday at 12"
        if c.take("at") is not None:
            hour = c.attempt(lambda c: _parse_hour(c, bare=True, last=False))
            if hour is not None and hour.hour <= 12:
                return replace(hour, part=4, exact=False)
        c.at = start
    named = c.take("named-time")
    return None if named is None else Clock(named.value // 60, named.value % 60, exact=True, named=True)


def _parse_around(c: Cursor, *, digits: bool = False) -> Clock | None:
    """Parse ``half past three``, ``a quarter to noon``, ``20 minutes past 8pm``.

    With `digits`, also ``10 to 5``, which may be a window as well.
    """
    half = c.take("half")
    begins = c.at
    count = parse_number(c) if half is None else half.value
    if count is None or count > 59:
        return None
    minutes = c.take("clock-minute") is not None
    is_window = c.sees("to", "until", "dash")
    side = c.take("past")
    around = (*c.tokens[begins : begins + 1], *c.tokens[c.at : c.at + 1])
    is_window = is_window and any(token.kind == NUMBER for token in around)
    is_spoken = count in _SPOKEN and (digits or not is_window)
    if side is not None and side.value < 0 and half is None and not minutes and not is_spoken:
        return None  # "9 to 17" is a window
    if side is None:
        if half is None or half.value == 15 or not c.sees("number", "tens"):
            return None
        direction = 1  # in a language where half nine means 8:30, "half" has a negative value
    else:
        direction = side.value
    inner = c.attempt(_parse_around) if half is None and c.sees("half") else None  # "fünf nach halb neun"
    hour = inner or _parse_named(c) or _parse_hour(c, bare=True, last=False)
    if hour is None or (hour.minute and inner is None):
        return None
    total = hour.hour * 60 + hour.minute + direction * count
    if hour.hour == 12 and hour.half is not None and total < 720:
        return replace(hour, hour=11, minute=total % 60, half=1 - hour.half)
    if total < 0:
        return Clock(23, total % 60, exact=True)
    if not hour.hour and hour.half is None and not hour.exact:
        return None
    is_bare = not hour.exact and hour.half is None
    number = total // 60 or (12 if is_bare else 0)  # "quarter to one" is after noon, unless the night is said
    return replace(hour, hour=number, minute=total % 60, named=False)


def _parse_hour(c: Cursor, *, bare: bool, last: bool) -> Clock | None:
    token = c.token
    if token is None:
        return None
    if token.kind == CLOCK:
        c.at += 1
        hour, minute, *second = token.value
        is_24 = c.language.clock24
        exact = is_24 or hour > 12 or hour == 0 or token.text.startswith("0") or "h" in token.text
        c.take("oclock")
        return _parse_half(c, Clock(hour, minute, second[0] if second else 0, exact=exact, oclock=is_24))
    if token.kind == PAIR:
        if "." not in token.text or len(token.value) != 2 or token.text[-3] != ".":
            return None
        c.at += 1
        if not bare and not c.sees("halfday", "oclock"):
            return None
        hour, minute = token.value
        c.take("oclock")
        exact = c.language.clock24 or hour > 12 or token.text.startswith("0")
        return _parse_half(c, Clock(hour, minute, exact=exact, oclock=c.language.clock24))
    if (spelled := _parse_comma(c)) is not None:
        return spelled
    digits = token.text if token.kind == NUMBER else ""
    hour_said = parse_number(c)
    if hour_said is None:
        return None
    result = Clock(hour_said)
    spoken = False
    if len(digits) in {3, 4}:
        result = Clock(hour_said // 100, hour_said % 100, exact=hour_said >= 1300 or digits[0] == "0")
        hours = c.take("hours-said") is not None
        is_military = hours or (len(digits) == 4 and not 1900 <= hour_said < 2100 and _is_time(result))
        bare = (bare and (len(digits) == 4 or c.sees("in", "halfday"))) or is_military
        if hours:
            return replace(result, exact=True) if _is_time(result) else None
    elif len(digits) > 4:
        return None
    elif not digits and (c.sees("tens", "number", "dash")):
        before = c.at
        c.take("dash")
        minute_said = parse_number(c)
        if minute_said is not None and 10 <= minute_said <= 59:
            result, spoken = Clock(hour_said, minute_said), True
        else:
            c.at = before
    elif digits.startswith("0"):
        result = Clock(hour_said, exact=True)
    return _parse_hour_number(c, result, bare=bare or spoken, last=last)


def _parse_comma(c: Cursor) -> Clock | None:
    """Parse ``8,15 Uhr``, a quarter past eight where people write ``8 Uhr 15``."""
    hour, comma, minute = (c.tokens[c.at + ahead] if c.at + ahead < len(c.tokens) else None for ahead in range(3))
    if hour is None or comma is None or minute is None or not c.language.clock24 or not c.sees("oclock", ahead=3):
        return None
    is_one = comma.text == "," and comma.glued and minute.glued and len(minute.text) == 2
    if not is_one or hour.kind != NUMBER or minute.kind != NUMBER:
        return None
    c.at += 3
    c.take("oclock")
    return Clock(hour.value[0], minute.value[0], exact=True, oclock=True)


def _parse_minutes_said(c: Cursor) -> int | None:
    """Parse the minutes of ``8 Uhr 15`` and ``acht Uhr fünfzehn``, but not the number of ``8 Uhr 2 Tabletten``."""
    token = c.token
    minute = parse_number(c)
    if token is None or minute is None or (token.kind == NUMBER and len(token.text) != 2):
        return None
    is_minute = (10 if token.kind == WORD else 0) <= minute <= 59
    return minute if is_minute and not c.sees("unit", "month", "oclock", "times") else None


def _is_counted(c: Cursor) -> bool:
    """Return whether a number counts the words after it, and is no hour. "17 von Montag bis Freitag" is one."""
    return c.sees(*_NOT_AFTER_AN_HOUR) and not (c.sees("from") and c.sees("weekday", "weekdays", ahead=1))


def _is_time(clock: Clock) -> bool:
    return clock.hour <= 23 and clock.minute <= 59


def _parse_hour_number(c: Cursor, result: Clock, *, bare: bool, last: bool) -> Clock | None:
    """Return an hour given as a number. None if nothing shows that the number is an hour."""
    token = c.token
    glued = token is not None and token.glued and c.take("hour-mark") is not None
    oclock = glued or c.take("oclock") is not None
    if glued:
        result = replace(result, exact=True, oclock=True)
    elif oclock:
        minute = c.attempt(_parse_minutes_said) if c.language.clock24 else None
        if minute is not None:
            result = replace(result, minute=minute)
        is_exact = c.language.clock24 and bool(result.minute or not c.language.either_half)
        result = replace(result, exact=result.exact or is_exact, oclock=True)
    with_half = _parse_half(c, result)
    if with_half.half is not None or with_half.part is not None or oclock:
        return with_half
    soon = c.sees("tonight", "relday") or (c.sees("next") and c.sees("part", ahead=1))
    counts = c.sees("unit", "times") or (last and _is_counted(c))
    if counts or not (bare or soon):
        return None
    return with_half if result.hour <= 24 or result.exact or not last else None


def _parse_half(c: Cursor, result: Clock) -> Clock:
    token = c.token
    half = c.take("halfday") if not (c.language.clock24 and result.hour == 12) else None
    if half is None and token is not None and token.glued:
        half = c.take("halfday-short")
    if half is not None:
        return replace(result, half=half.value)
    before = c.at
    named = c.take("parts") if c.language.clock24 and result.hour == 12 and result.oclock else None
    if named is not None:
        return _MIDNIGHT if named.value == _NIGHT and not result.minute else replace(result, part=named.value)
    noon = c.take("noon-mark")
    if noon is not None and result.hour <= 12:
        return replace(result, part=4, exact=False)
    c.at = before
    midnight = c.take("named-time") if result.hour in {0, 12} and not result.minute else None
    if midnight is not None and not midnight.value:
        return _MIDNIGHT
    c.at = before
    if c.take("in", "at", "part-of") is not None:
        c.take("article")
        named = c.take("part")
        if named is not None and named.value == _NIGHT and result.hour == 12 and not result.minute:
            return _MIDNIGHT
        if named is not None:
            return replace(result, part=named.value)
    c.at = before
    return result
