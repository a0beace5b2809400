"""Schedules from iCalendar: DTSTART, RRULE, RDATE and EXDATE (RFC 5545, section 3.8), and its lines (3.1).

A block may be bare properties or a whole VEVENT. TZID is an IANA name, whose prefix, as some programs write
it, is dropped, or a name of Windows. The policies for clock changes, which iCalendar cannot express, are
``X-CLOUDSCHED-`` properties.

The text that `icalendar_output` writes has the schedule itself, too, beside a digest of the properties. As
long as no program has changed these, the schedule is read back exactly, even if it took several events to
write.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.iso8601 import Moment, parse_moment
from cloudsched.domain.recurrence.vtimezone import (
    Observance,
    build_zone,
    find_equal_zone,
    find_windows_zone,
    find_zone,
)
from cloudsched.domain.recurrence.wall_clock import wall_clock
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PIECE = re.compile(rb"(?s)(?:\A.{1,75}|.{1,74})(?![\x80-\xbf])")
"""A line has 75 octets at most, without its end. A longer one continues on the next, after a space."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BREAKS = re.compile(r"\r\n|[\r\n\u2028\u2029\x85]")
_COUNTS = (
    r"(?:BEGIN|END|VERSION|METHOD|STATUS|SEQUENCE|UID|TZ\w+|DT\w+|DURATION|RECURRENCE-ID|(?:R|EX)(?:RULE|DATE)"
    r"|X-WR-TIMEZONE|X-CLOUDSCHED[\w-]+)\b"
)
"""The properties that say when events are."""
_BROKEN = re.compile(
    rf"(?aim)^(?!{_COUNTS})[A-Z0-9-]+[ \t]*[;:].*"
    rf"(?:\n(?!(?-i:{_COUNTS})|[A-Z0-9-]+(?:[ \t]*[;:]|\n[ \t][A-Z0-9;:-])).*)+"
)
"""Lines of another property, with what continues it, folded or not. A fold may split the name of the next one."""


def join_lines(lines: Iterable[str]) -> str:
    """Return lines as text: folded at 75 octets, each ended by CRLF."""
    return "".join(f"{fold_line(line)}\r\n" for line in lines)


def fold_line(line: str) -> str:
    """Return a line in pieces of at most 75 octets in UTF-8, none of which splits a character."""
    return b"\r\n ".join(_PIECE.findall(line.encode())).decode()


def mend_lines(text: str) -> str:
    """Return a text whose lines end with a line feed each, without two mistakes of programs that export.

    A line break that is not escaped splits a text: what is no property then continues the line before, unless
    that one, or the first word, says when events are. ``TZID=Berlin`` means ``TZID:Berlin``. An empty line
    continues the one before.
    """
    text = re.sub(r"\n(?=\n)", "\n ", re.sub(r"\r\n?", "\n", text))
    text = re.sub(r"(?m)^TZID=", "TZID:", text)
    return _BROKEN.sub(lambda found: re.sub(r"\n(?=\S)", "\n  ", found[0]), text)


def unfold(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with their numbers, those that were folded in one piece, and no empty ones."""
    number = 1
    for piece in re.split(r"\n(?![ \t])", text):
        if line := re.sub(r"\n[ \t]", "", piece).strip():
            yield number, line
        number += piece.count("\n") + 1


def escape_text(value: str) -> str:
    """Return a value of type TEXT (section 3.3.11), escaped so that it ends neither its line nor its property."""
    value = _CONTROLS.sub("", value)
    value = value.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    return _BREAKS.sub(r"\\n", value)


def unescape_text(value: str) -> str:
    """Return the input of `escape_text`, but for control characters and kinds of line breaks."""
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), value)


_ESCAPES = {"n": "\n", "N": "\n"}


_NAMES = {"", "VEVENT", "VTODO", "VJOURNAL"}
"""The components whose properties count, and those outside of any."""
POLICIES = {"X-CLOUDSCHED-GAP": "gap", "X-CLOUDSCHED-FOLD": "fold", "X-CLOUDSCHED-SUB-DAILY": "sub_daily"}
_NAME = re.compile(r"([A-Za-z0-9-]+)[ \t]*[:;]")
_LINE = re.compile(r'([A-Za-z0-9-]+)[ \t]*((?:;(?:[^:;"]|"[^"]*")*)*):(.*)\Z', re.DOTALL)
_PARAMETER = re.compile(r';([^=;"]+)=((?:"[^"]*"|[^";])*)')
EXACT_PROPERTY = "X-CLOUDSCHED-SCHEDULE"
"""The property that holds a schedule's JSON form."""
_TIMES = {"DTSTART", "RRULE", "RDATE", "EXDATE", *POLICIES}


class Property(NamedTuple):
    """A line of a component."""

    name: str
    parameters: str
    value: str
    text: str
    line: int

    def parameter(self, name: str) -> str | None:
        """Return the value of a parameter, or None."""
        return {key.upper(): value.strip('" ') for key, value in _PARAMETER.findall(self.parameters)}.get(name)


@dataclass
class Component:
    """A component: what its lines say, and the components in it."""

    name: str = ""
    line: int = 0
    properties: list[Property] = field(default_factory=list)
    parts: list[Component] = field(default_factory=list)

    def find(self, *names: str) -> list[Property]:
        """Return its properties of these names, in their order."""
        return [each for each in self.properties if each.name in names]

    def iter_all(self) -> Iterator[Component]:
        """Yield it and all that is in it."""
        yield self
        for part in self.parts:
            yield from part.iter_all()


class ComponentReader:
    """Reads the components of a text. Whoever takes only some of them says so in a class of its own."""

    def read(self, text: str) -> Component:
        """Return what is outside of components, with these in it."""
        within = [Component()]
        for number, line in unfold(mend_lines(text)):
            head = _NAME.match(line)
            name = head[1].upper() if head else ""
            if name not in {"BEGIN", "END"} and not self.counts(within[-1], name, number):
                continue
            found = _LINE.match(line)
            if found is None:
                raise self.refuse(number, f"{line[:40]!r} is not an iCalendar property", "write NAME:value, one a line")
            value = found[3].strip().upper()
            if name == "BEGIN":
                part = Component(value, number)
                self.begin(part, within[-1])
                within[-1].parts.append(part)
                within.append(part)
            elif name == "END":
                if within.pop().name != value or not within:
                    raise self.refuse(number, f"{line[:40]!r} is where something else ends", "give it whole")
            else:
                self.add(Property(name, found[2], found[3], line, number), within[-1])
        if len(within) > 1:
            raise self.refuse(within[-1].line, f"{within[-1].name[:40]} is cut off: it has no END", "give it whole")
        return within[0]

    def refuse(self, line: int, problem: str, hint: str) -> Exception:
        """Return the error of a line."""
        return InvalidSchedule("text", f"line {line}: {problem}", hint)

    def counts(self, within: Component, name: str, line: int) -> bool:  # noqa: ARG002 - of those that leave some out
        """Return whether a property is read. Others are only seen to be lines."""
        return True

    def begin(self, component: Component, parent: Component) -> None:
        """Check where a component begins."""

    def add(self, found: Property, component: Component) -> None:
        """Add a property to its component."""
        component.properties.append(found)


def from_ical(text: str, timezone: str) -> dict[str, Any]:
    """Return the fields of the schedule that a block of properties describes.

    Times without TZID are in `timezone`.
    """
    components = [*ComponentReader().read(text).iter_all()]
    event = Component(properties=[each for one in components if one.name in _NAMES for each in one.properties])
    if (exact := _read_exact(event)) is not None:
        return exact
    _check_event(components, event)
    find_timezone = cache(partial(_find_timezone, components, timezone))
    fields: dict[str, Any] = {"rrule": [], "rdates": [], "exdates": [], "timezone": timezone}
    for each in event.find("DTSTART"):
        moment = parse_moment(each.value, "dtstart")
        zone = find_timezone(each) or timezone
        fields["timezone"] = zone if moment.offset is None else "UTC"
        fields["dtstart"] = moment._replace(offset=None, is_date=False).isoformat()
    for each in event.properties:
        if each.name == "RRULE":
            fields["rrule"].append(each.value)
        elif each.name in {"RDATE", "EXDATE"}:
            field = f"{each.name.lower()}s"
            tzid = find_timezone(each)
            fields[field] += [_parse_date(value, tzid, field, fields["timezone"]) for value in each.value.split(",")]
        elif each.name in POLICIES:
            fields[POLICIES[each.name]] = each.value.strip().lower()
        elif each.name == "EXRULE":
            raise InvalidSchedule(
                "exdates",
                "EXRULE is not supported",
                "RFC 5545 dropped it; list EXDATEs instead",
            )
    return fields


def _check_event(components: list[Component], event: Component) -> None:
    status = {each.value.strip().upper() for one in components for each in one.find("STATUS", "METHOD")}
    if sum(each.name in _NAMES for each in components[1:]) > 1:
        raise InvalidSchedule("text", "holds more than one event", "give one")
    if status & {"CANCELLED", "CANCEL"}:
        raise InvalidSchedule("text", "is an event that was cancelled", "leave that out if it is to run")
    if len(event.find("DTSTART")) > 1:
        raise InvalidSchedule("dtstart", "is given more than once", "give one event")


def digest_lines(lines: Iterable[str]) -> str:
    """Return a digest of the properties that say when events are, regardless of their order."""
    return sha256("\n".join(sorted(lines)).encode()).hexdigest()[:32]


def _read_exact(event: Component) -> dict[str, Any] | None:
    """Return the fields of the schedule that was written.

    None if there are none, or if an event was changed since.
    """
    found = next(iter(event.find(EXACT_PROPERTY)), None)
    digest = digest_lines(each.text for each in event.find(*_TIMES))
    if found is None or f";DIGEST={digest}:" not in found.text:
        return None
    try:
        content = json.loads(unescape_text(found.value))
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _find_timezone(components: list[Component], timezone: str, named_by: Property) -> str | None:
    """Return the IANA name of the zone that is among a property's parameters, None if there is none."""
    tzid = named_by.parameter("TZID")
    if not tzid:
        return None

    known = find_zone(tzid) or find_windows_zone(tzid)
    for one in components:
        if known is None and tzid in {each.value.strip() for each in one.find("TZID")}:
            since = min(
                parse_moment(re.split("[,/]", each.value)[0], each.name.lower()).wall
                for component in components
                for each in component.find("DTSTART", "RDATE", "EXDATE")
                if each.parameters == named_by.parameters
            )
            with suppress(ValueError):  # a definition that is not whole is none
                known = find_equal_zone(
                    build_zone(tzid, list(map(read_observance, one.parts))),
                    since,
                    timezone,
                )

    return known or time_zones.load_zone(tzid).name  # raises InvalidSchedule with a hint


def read_observance(part: Component) -> Observance:
    """Return a part of a VTIMEZONE. Raises InvalidSchedule, or ValueError if something of it is missing."""
    before, after = (
        parse_moment(f"19700101T000000{each.value.strip()}", "timezone").offset or 0
        for each in (*part.find("TZOFFSETFROM")[:1], *part.find("TZOFFSETTO")[:1])
    )
    start, *dates = (
        parse_moment(value, "timezone").wall
        for each in (*part.find("DTSTART"), *part.find("RDATE"))
        for value in each.value.split(",")
    )
    return Observance(start, before, after, dates, [each.value for each in part.find("RRULE")])


def _parse_date(value: str, tzid: str | None, field: str, timezone: str) -> str:
    """Return one date of a list as ISO text.

    A local time in another zone than the schedule's becomes an instant.
    """
    moment = parse_moment(value.partition("/")[0], field)  # only the start of a period counts
    if moment.offset is None and not moment.is_date and tzid not in {None, timezone}:
        instant = wall_clock(str(tzid)).instants(moment.wall)[0]
        moment = Moment(instant, 0, is_date=False)
    return moment.isoformat()
