"""The components of an iCalendar text, as the package `icalendar` reads them, with the line of each.

The package unfolds lines, splits them into names, parameters and values, and reads values. It is made strict
where it would lose something in silence: each END must end what began last, and each component must be where
it belongs. Zones stay with their file, while the package would remember them for the next one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from icalendar.parser.ical import ComponentIcalParser
from icalendar.prop import vDDDTypes, vDuration, vUTCOffset

from cloudsched.domain.recurrence.icalendar import mend_lines
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPONENTS: Final = "components"
_EVENTS: Final = "events and rules"
_DATES: Final = "dates in RDATE and EXDATE"
_MAX_PARAMETERS: Final = 100
"""The most parameters of a line. RFC 5545 names two for a date."""
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
_OFFSET: Final = re.compile(r"[+-](?:[01][0-9]|2[0-3])[0-5][0-9](?:[0-5][0-9])?")
_LINE: Final = re.compile(r"([A-Za-z0-9-]+)[ \t]*[:;]")
_USUAL: Final = re.compile(r"([A-Za-z-]+)((?:;[A-Za-z-]+=[A-Za-z0-9_./+-]+)*):([^\\]*)", re.DOTALL)
_PARAMETER: Final = re.compile(r";([^=]+)=([^;]+)")
_MOMENT: Final = re.compile(r"[0-9]{8}(?:T[0-9]{6}Z?)?")
_LEAP_SECOND: Final = re.compile(r"(?<=T[0-9]{4})60")
_A_LINE: Final = "Write NAME:value."
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
"""Lines that the package would take for something else."""


class Length(NamedTuple):
    """A duration: days on the clock, and then seconds."""

    days: int = 0
    seconds: int = 0


class Property(NamedTuple):
    """A line of a component."""

    value: str
    parameters: dict[str, Any]
    line: int


@dataclass
class Component:
    """A component: what its lines say, and the components in it."""

    name: str = ""
    line: int = 0
    properties: dict[str, list[Property]] = field(default_factory=lambda: defaultdict(list))
    parts: list[Component] = field(default_factory=list)

    def add_component(self, part: Component) -> None:
        """Add a component that is in it. The package calls this at its end."""
        self.parts.append(part)

    def text(self, name: str) -> str:
        """Return the first value of a property, or an empty text if there is none."""
        found = self.properties.get(name)
        return found[0].value.strip() if found else ""

    def error(self, problem: str, hint: str, line: int = 0) -> InvalidInput:
        """Return an error that names the component and the line."""
        name = self.text("SUMMARY") or self.text("UID") or self.text("TZID") or self.name
        return _error(line or self.line, f"{name[:_MAX_SHOWN]!r} {problem}", hint)

    def moments(self, name: str) -> Iterator[tuple[date, date | Length | None, str | None]]:
        """Yield a property's dates and times with their TZID, and the ends or lengths of periods."""
        for found in self.properties.get(name, ()):
            tzid = found.parameters.get("TZID")
            text = found.value.upper()
            values = text.split(",") if name in _REPEATED else [text]
            for value in map(str.strip, values):
                if not value and name in _REPEATED:
                    continue
                begin, _, end = value.partition("/")
                until: date | Length | None = None
                if end.startswith(("P", "+", "-")):
                    until = self._parse_duration(end, found.line)
                elif end:
                    until = self._parse(end, found.line)
                yield (
                    self._parse(begin, found.line),
                    until,
                    ",".join(tzid) if isinstance(tzid, list) else tzid,
                )

    def duration(self) -> Length | None:
        """Return its DURATION: `PT24H` is 24 hours, and `P1D` a day of the clock, which may have 23 or 25."""
        found = self.properties.get("DURATION")
        if not found:
            return None
        return self._parse_duration(found[0].value.strip().upper(), found[0].line)

    def offset(self, name: str) -> int:
        """Return an offset from UTC, in seconds."""
        value = self.text(name)
        if not _OFFSET.fullmatch(value):
            raise self.error(f"has the offset {value[:20]!r}", "Write +0200.")
        return int(vUTCOffset.from_ical(value).total_seconds())  # type: ignore[no-untyped-call]  # as all of it

    def _parse(self, value: str, line: int) -> date:
        if _MOMENT.fullmatch(value) and int(value[:4]) <= _LAST_YEAR:
            with suppress(ValueError):
                return vDDDTypes.from_ical(_LEAP_SECOND.sub("59", value))  # type: ignore[no-any-return, no-untyped-call]
        problem = f"has the date {value[:20]!r}" if value.strip(",") else "has an empty date"
        raise self.error(problem, "Write 20270714, or 20270714T090000Z.", line)

    def _parse_duration(self, value: str, line: int) -> Length:
        try:
            whole = vDuration.from_ical(value)  # type: ignore[no-untyped-call]  # as all of it
            _, _, time = value.partition("T")
            rest = vDuration.from_ical(f"PT{time}") if time else timedelta(0)  # type: ignore[no-untyped-call]
        except (OverflowError, ValueError):
            raise self.error(f"has the duration {value[:20]!r}", "Write P3D or PT8H.", line) from None
        if whole <= timedelta(0):
            return Length()
        return Length((whole - rest).days, int(rest.total_seconds()))


def _error(line: int, problem: str, hint: str) -> InvalidInput:
    return InvalidInput("ics", f"line {line}: {problem}", hint)


def read_calendars(text: str, max_events: int, max_dates: int) -> list[Component]:
    """Return the calendars of a text: each VCALENDAR with its components.

    Events and rules, and dates that are added or left out, may be so many. Raises InvalidInput, with the
    line.
    """
    text = mend_lines(text)
    for pattern, problem, hint in _MISREAD:
        if found := pattern.search(text):
            raise _error(text.count("\n", 0, found.start()) + 1, f"{found[1][:_MAX_SHOWN]} {problem}", hint)
    return _StrictParser(text, max_events, max_dates).parse()


class Parts(NamedTuple):
    """A line, split as the package splits it."""

    name: str
    parameters: dict[str, Any]
    value: str

    def parts(self) -> Parts:
        """Return itself. The package asks its own lines so."""
        return self


def split_usual(line: str) -> Parts | None:
    """Return the parts of a line in which nothing is quoted or escaped.

    The package takes fifty calls for them.
    """
    found = _USUAL.fullmatch(line)
    if found is None:
        return None
    if found[2]:
        parameters = {name.upper(): value for name, value in _PARAMETER.findall(found[2])}
    else:
        parameters = {}
    return Parts(found[1], parameters, found[3])


class _StrictParser(ComponentIcalParser):
    """Has the package read lines and components, and refuses whatever it would lose."""

    _stack: list[Component]  # type: ignore[assignment]  # as the factory makes them

    def __init__(self, text: str, max_events: int, max_dates: int) -> None:
        factory: Any = SimpleNamespace(get_component_class=lambda _: Component)
        super().__init__(text, factory, types_factory=factory)  # it makes no values
        lines = enumerate(text.split("\n"), 1)
        self._starts = [number for number, line in lines if line and (number == 1 or line[0] not in " \t")]
        self._line = 0
        self._room = {_COMPONENTS: 5 * max_events, _EVENTS: max_events, _DATES: max_dates}
        self._most = dict(self._room)

    def parse(self) -> list[Any]:
        calendars = super().parse()
        if self._stack:
            raise _error(
                self._stack[-1].line,
                f"{self._stack[-1].name} is cut off: it has no END",
                "Give the whole file.",
            )
        return calendars

    def initialize_parsing(self) -> None:
        super().initialize_parsing()  # type: ignore[no-untyped-call]  # as some of it
        self._content_lines_iterator = self._iter_read()

    def _iter_read(self) -> Iterator[Any]:
        """Yield the lines that count. The others are only seen to be lines."""
        for number, line in zip(self._starts, self._content_lines, strict=False):
            self._line = number
            found = _LINE.match(line)
            name = found[1].upper() if found else ""
            within = self._stack[-1].name if self._stack else ""
            if name in _FIRST_COUNTS and self._stack and name in self._stack[-1].properties:
                continue
            if name in {"BEGIN", "END"} or name in _READ.get(within, ()):
                if line.count(";") > _MAX_PARAMETERS and line.count("=") > _MAX_PARAMETERS:
                    raise _error(number, f"has more than {_MAX_PARAMETERS} parameters", "Give fewer.")
                yield split_usual(line) or line
            elif within == "VCALENDAR" and name in _OF_EVENTS:
                raise _error(number, f"{name} is in no event", _BALANCE)
            elif not found or not (within or name.startswith("X-")):
                self.handle_line_parse_error(ValueError(line))

    def handle_line_parse_error(self, exception: Exception) -> NoReturn:
        raise InvalidInput(
            "ics", f"line {self._line}: cannot be read, or no line BEGIN:VCALENDAR is before it", _A_LINE
        ) from exception

    def handle_begin_component(self, vals: str) -> None:
        name = vals.strip().upper()
        parent = self._stack[-1] if self._stack else Component()
        if not _NAME.fullmatch(name) or not (parent.name in _PARENTS[name] if name in _PARENTS else parent.name):
            place = f"in {parent.name} of line {parent.line}" if parent.name else "in no VCALENDAR"
            raise _error(self._line, f"BEGIN:{name[:_MAX_SHOWN]} is {place}", _BALANCE)
        super().handle_begin_component(name)
        self._stack[-1].line = self._line
        self._count(_COMPONENTS)
        if "DTSTART" in _READ.get(name, ()):
            self._count(_EVENTS)

    def handle_end_component(self, vals: str) -> None:
        name = vals.strip().upper()
        current = self._stack[-1] if self._stack else Component()
        if current.name != name:
            begun = f"{current.name} of line {current.line} has no END" if self._stack else "nothing has begun"
            raise _error(self._line, f"END:{name[:_MAX_SHOWN]}, but {begun}", _BALANCE)
        super().handle_end_component("")  # without its name, so that the package does not remember a zone

    def handle_property(self, name: str, params: Any, vals: str, line: Any) -> None:  # noqa: ANN401, ARG002 - its types
        component = self._stack[-1]
        if name in {"RDATE", "EXDATE"}:
            self._count(_DATES, vals.count(",") + 1)
        elif name in _REPEATED:
            self._count(_EVENTS)
        elif name in component.properties and component.properties[name][0][:2] != (vals, params):
            raise component.error(f"has more than one {name}", "Give one.", self._line)
        if name == "VERSION" and vals.strip() == "1.0":
            raise _error(self._line, "the file is vCalendar 1.0", _OLD)
        if name not in _REPEATED or vals.strip():
            component.properties[name].append(Property(vals, params, self._line))

    def _count(self, what: str, number: int = 1) -> None:
        self._room[what] -= number
        if self._room[what] < 0:
            raise InvalidInput("ics", f"has more than {self._most[what]} {what}", "Give fewer.")
