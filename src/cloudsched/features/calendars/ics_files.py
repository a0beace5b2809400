"""The components of an iCalendar file, read strictly: nothing is lost in silence.

Each END must end what began last, each component must be where it belongs, and a property of an event that counts is
there once. Errors name the line.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from typing_extensions import override

from cloudsched.domain.recurrence.icalendar import Component, ComponentReader, Property, mend_lines
from cloudsched.domain.recurrence.iso8601 import Moment, parse_moment
from cloudsched.errors import InvalidInput, InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPONENTS: Final = "components"
_EVENTS: Final = "events and rules"
_DATES: Final = "dates in RDATE and EXDATE"
_MAX_SHOWN: Final = 60
_LAST_YEAR: Final = 9900
_OF_EVENTS: Final = frozenset(
    {"DTSTART", "DTEND", "DURATION", "RECURRENCE-ID", "RRULE", "EXRULE", "RDATE", "EXDATE"},
)
_REPEATED: Final = frozenset({"RRULE", "EXRULE", "RDATE", "EXDATE"})
_FIRST_COUNTS: Final = frozenset({"DTSTAMP", "SUMMARY", "TZID", "X-WR-TIMEZONE"})
"""Properties that may be there again, such as in another language."""
_OBSERVANCE: Final = frozenset({"DTSTART", "RRULE", "RDATE", "TZOFFSETFROM", "TZOFFSETTO"})
_READ: Final = {
    "VCALENDAR": frozenset({"VERSION", "METHOD", "X-WR-TIMEZONE"}),
    "VEVENT": _OF_EVENTS | {"DTSTAMP", "UID", "SEQUENCE", "STATUS", "SUMMARY"},
    "VTIMEZONE": frozenset({"TZID"}),
    "STANDARD": _OBSERVANCE,
    "DAYLIGHT": _OBSERVANCE,
}
"""The properties that count, by their component."""
_PARENTS: Final = {
    "VCALENDAR": ("",),
    **dict.fromkeys(("VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY", "VTIMEZONE"), ("VCALENDAR",)),
    **dict.fromkeys(("STANDARD", "DAYLIGHT"), ("VTIMEZONE",)),
    "VALARM": ("VEVENT", "VTODO"),
}
"""Where a component may be. One of another name may be in any other."""
_NAME: Final = re.compile(r"[A-Z0-9-]+")
_MOMENT: Final = re.compile(r"[0-9]{8}(?:T[0-9]{6}Z?)?")
_LEAP_SECOND: Final = re.compile(r"(?<=T[0-9]{4})60")
_DURATION: Final = re.compile(r"([+-]?)P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_ESCAPED: Final = re.compile(r"\\([\\,;:])")
_BALANCE: Final = "Check that each BEGIN has its END."
_OLD: Final = "Export it as iCalendar, which has the line VERSION:2.0."
_MISREAD: Final = (
    (
        re.compile(r"^[ \t]+(BEGIN|END|DTSTART|DTEND|RRULE|RDATE|EXDATE|RECURRENCE-ID)[:;]", re.MULTILINE),
        "is indented, and so continues the line before",
        "Remove the blanks.",
    ),
    (
        re.compile(r"^([\w-]+);(?:[^:\n]*;)?ENCODING=QUOTED-PRINTABLE", re.MULTILINE | re.IGNORECASE),
        "is quoted-printable, as in vCalendar 1.0",
        _OLD,
    ),
)
"""Lines that would be taken for something else."""


class Length(NamedTuple):
    """A duration: days on the clock, and then seconds."""

    days: int = 0
    seconds: int = 0


def text_of(component: Component, name: str) -> str:
    """Return the first value of a property, or an empty text if there is none."""
    return next((_ESCAPED.sub(r"\1", each.value.strip()) for each in component.find(name)), "")


def refuse(component: Component, problem: str, hint: str, line: int = 0) -> InvalidInput:
    """Return an error that names the component and the line."""
    name = next(filter(None, (text_of(component, each) for each in ("SUMMARY", "UID", "TZID"))), component.name)
    return _error(line or component.line, f"{name[:_MAX_SHOWN]!r} {problem}", hint)


def iter_moments(component: Component, name: str) -> Iterator[tuple[Moment, Moment | Length | None, str | None]]:
    """Yield a property's dates and times with their TZID, and the ends or lengths of periods."""
    for found in component.find(name):
        text = found.value.upper()
        for value in map(str.strip, text.split(",") if name in _REPEATED else [text]):
            if not value and name in _REPEATED:
                continue
            begin, _, end = value.partition("/")
            until: Moment | Length | None = None
            if end.startswith(("P", "+", "-")):
                until = parse_duration(component, end, found.line)
            elif end:
                until = _parse(component, end, found.line)
            yield _parse(component, begin, found.line), until, found.parameter("TZID")


def parse_duration(component: Component, value: str, line: int) -> Length:
    """Return a duration: `PT24H` is 24 hours, and `P1D` a day of the clock, which may have 23 or 25."""
    found = _DURATION.fullmatch(value)
    if found is None:
        raise refuse(component, f"has the duration {value[:20]!r}", "Write P3D or PT8H.", line)
    weeks, days, hours, minutes, seconds = (int(number or 0) for number in found.groups()[1:])
    if found[1] == "-":
        return Length()
    return Length(7 * weeks + days, 3600 * hours + 60 * minutes + seconds)


def _parse(component: Component, value: str, line: int) -> Moment:
    if _MOMENT.fullmatch(value) and int(value[:4]) <= _LAST_YEAR:
        with suppress(InvalidSchedule):
            return parse_moment(_LEAP_SECOND.sub("59", value), "ics")
    problem = f"has the date {value[:20]!r}" if value.strip(",") else "has an empty date"
    raise refuse(component, problem, "Write 20270714, or 20270714T090000Z.", line)


def _error(line: int, problem: str, hint: str) -> InvalidInput:
    return InvalidInput("ics", f"line {line}: {problem}", hint)


def read_calendars(text: str, max_events: int, max_dates: int) -> list[Component]:
    """Return the calendars of a text: each VCALENDAR with its components.

    Events and rules, and dates that are added or left out, may be so many. Raises InvalidInput, with the
    line.
    """
    mended = mend_lines(text)
    for pattern, problem, hint in _MISREAD:
        if found := pattern.search(mended):
            raise _error(mended.count("\n", 0, found.start()) + 1, f"{found[1][:_MAX_SHOWN]} {problem}", hint)
    return _StrictReader(max_events, max_dates).read(text).parts


class _StrictReader(ComponentReader):
    """Reads the properties that say when events are, and refuses whatever would be lost."""

    def __init__(self, max_events: int, max_dates: int) -> None:
        self._most = {_COMPONENTS: 5 * max_events, _EVENTS: max_events, _DATES: max_dates}
        self._room = {**self._most}

    @override
    def refuse(self, line: int, problem: str, hint: str) -> Exception:
        return _error(line, problem, hint)

    @override
    def counts(self, within: Component, name: str, line: int) -> bool:
        if within.name == "VCALENDAR" and name in _OF_EVENTS:
            raise _error(line, f"{name} is in no event", _BALANCE)
        if not name or not (within.name or name.startswith("X-")):
            raise _error(line, "cannot be read, or no line BEGIN:VCALENDAR is before it", "Write NAME:value.")
        return name in _READ.get(within.name, ()) and not (name in _FIRST_COUNTS and within.find(name))

    @override
    def begin(self, component: Component, parent: Component) -> None:
        name = component.name
        if not _NAME.fullmatch(name) or not (parent.name in _PARENTS[name] if name in _PARENTS else parent.name):
            place = f"in {parent.name} of line {parent.line}" if parent.name else "in no VCALENDAR"
            raise _error(component.line, f"BEGIN:{name[:_MAX_SHOWN]} is {place}", _BALANCE)
        self._count(_COMPONENTS)
        if "DTSTART" in _READ.get(name, ()):
            self._count(_EVENTS)

    @override
    def add(self, found: Property, component: Component) -> None:
        name, value = found.name, found.value.strip()
        if name in {"RDATE", "EXDATE"}:
            self._count(_DATES, value.count(",") + 1)
        elif name in _REPEATED:
            self._count(_EVENTS)
        elif (known := component.find(name)) and known[0][:3] != found[:3]:
            raise refuse(component, f"has more than one {name}", "Give one.", found.line)
        if name == "VERSION" and value == "1.0":
            raise _error(found.line, "the file is vCalendar 1.0", _OLD)
        if name not in _REPEATED or value:
            super().add(found, component)

    def _count(self, what: str, number: int = 1) -> None:
        self._room[what] -= number
        if self._room[what] < 0:
            raise InvalidInput("ics", f"has more than {self._most[what]} {what}", "Give fewer.")
