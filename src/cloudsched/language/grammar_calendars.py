"""Parse what a phrase says of calendars: ``except on days of "closed"``, ``the last business day before the 25th``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.language.grammar_numbers import MOST_ITEMS, parse_number, parse_ordinal
from cloudsched.language.grammar_periods import parse_period
from cloudsched.language.nodes import DAY, Days, NamedCalendars, Pick, Unit
from cloudsched.language.refusals import Refused
from cloudsched.language.tokens import QUOTE

if TYPE_CHECKING:
    from cloudsched.language.cursor import Cursor

_SURE_DAYS = 28
"""Every month has these."""


def parse_named_calendars(c: Cursor) -> NamedCalendars | None:
    """Parse calendars by their ids, in quotes: left out, moved before or after, or counted."""
    return c.attempt(_parse_left_out) or c.attempt(_parse_moved) or c.attempt(_parse_counted)


def _parse_left_out(c: Cursor) -> NamedCalendars | None:
    start = c.at
    if c.take("except") is None:
        return None
    c.take("on", "in")
    ids = _parse_ids(c) if c.take("days-of") is not None else ()
    return NamedCalendars(ids, span=c.span(start)) if ids else None


def _parse_moved(c: Cursor) -> NamedCalendars | None:
    start = c.at
    moved = c.take("moved")
    ids = _parse_ids(c) if moved is not None and c.take("days-of") is not None else ()
    if moved is None or not ids:
        return None
    return NamedCalendars(ids, "before" if moved.value < 0 else "after", span=c.span(start))


def _parse_counted(c: Cursor) -> NamedCalendars | None:
    """Parse ``moved to the 3rd day of the month that is not on "weekends" and "fr-holidays"``."""
    start = c.at
    if c.take("moved-to") is None:
        return None
    c.take("article")
    number = parse_ordinal(c)
    if number is None or c.take("day-word") is None or c.take("of") is None:
        return None
    c.take("article")
    unit = c.take("unit")
    if unit is None or unit.value != Unit.MONTH or c.take("not-on") is None:
        return None
    ids = _parse_ids(c)
    return NamedCalendars(ids, business_day=number, span=c.span(start)) if ids else None


def _parse_ids(c: Cursor) -> tuple[str, ...]:
    ids: list[str] = []
    while len(ids) < MOST_ITEMS:
        before = c.at
        if ids:
            c.take("and", "comma")
        if c.token is None or c.token.kind != QUOTE:
            c.at = before
            break
        ids.append(c.token.text)
        c.at += 1
    return tuple(ids)


def parse_moved_days(c: Cursor) -> Days | None:
    """Parse ``the last business day before the 25th``, ``the first working day on or after the 10th of each month``."""
    return c.attempt(_parse_moved_days)


def _parse_moved_days(c: Cursor) -> Days | None:
    start = c.at
    c.take("each")
    c.take("on", "for")
    c.take("article")
    edge = parse_ordinal(c)
    if edge not in {1, -1} or c.take("business") is None:
        return None
    included = c.take("on-or")
    if included is not None:
        direction = included.value
    else:
        direction = -1 if c.take("before") is not None else 1 if c.take("after") is not None else 0
    if direction != edge:
        return None
    c.take("article")
    numbered = c.take("day-number") is not None
    day = parse_number(c) if numbered else parse_ordinal(c)
    if day is None or not 1 <= day <= 31 or c.sees("business", "dayset", "weekday", "day-word", "unit"):
        return None
    period = parse_period(c, nth=True, each=False)
    if period is not None and not period.months and (period.unit != Unit.MONTH or period.ahead is not None):
        raise Refused("inexpressible", c.span(start))
    target = day if included is not None else day + direction
    if (target == 0 and period is not None and period.months) or (direction > 0 and target > _SURE_DAYS):
        raise Refused("inexpressible", c.span(start), "name a day that every month has")
    return Days(
        (Pick(target or -1, DAY),),
        period,
        marked=True,
        on=True,
        business=True,
        moved="before" if direction < 0 else "after",
        span=c.span(start),
    )
