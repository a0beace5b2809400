"""Schedules from iCalendar text: DTSTART, RRULE, RDATE and EXDATE (RFC 5545, section 3.8), and its lines (section 3.1).

A block may be bare properties or a whole VEVENT. TZID is an IANA name, whose prefix, as some programs write it, is
dropped, or a name of Windows. The policies for clock changes, which iCalendar cannot express, are ``X-CLOUDSCHED-``
properties.

The text that `icalendar_output` writes has the schedule itself, too, beside a digest of the properties. As long as no
program has changed these, the schedule is read back exactly, even if it took several events to write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, NamedTuple

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.iso8601 import Moment, parse_moment
from cloudsched.domain.recurrence.wall_clock import wall_clock
from cloudsched.errors import InvalidSchedule

LINE_OCTETS = 75
"""The longest line, without its end. A longer one continues on the next, after a space."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BREAKS = re.compile(r"\r\n|[\r\n\u2028\u2029\x85]")


def join_lines(lines: Iterable[str]) -> str:
    """Return lines as text: folded at 75 octets, each ended by CRLF."""
    return "".join(f"{fold_line(line)}\r\n" for line in lines)


def fold_line(line: str) -> str:
    """Return a line in pieces of at most 75 octets in UTF-8, none of which splits a character."""
    octets = line.encode()
    if len(octets) <= LINE_OCTETS:
        return line
    pieces, begin, length = [], 0, LINE_OCTETS
    while begin < len(octets):
        end = begin + length
        while end < len(octets) and octets[end] & 0xC0 == 0x80:  # noqa: PLR2004 - within a character (RFC 3629, 3)
            end -= 1
        pieces.append(octets[begin:end])
        begin, length = end, LINE_OCTETS - 1
    return b"\r\n ".join(pieces).decode()


def unfold(text: str) -> list[str]:
    """Return the lines of a text, with those that were folded in one piece, and without empty ones."""
    return [line for line in re.sub(r"\r?\n[ \t]", "", text).splitlines() if line.strip()]


def escape_text(value: str) -> str:
    """Return a value of type TEXT (section 3.3.11): escaped, so that it can end neither its line nor its property."""
    value = _CONTROLS.sub("", value)
    value = value.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    return _BREAKS.sub(r"\\n", value)


def unescape_text(value: str) -> str:
    """Return the input of `escape_text`, but for control characters and kinds of line breaks."""
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] in "nN" else found[1], value)


_COMPONENTS = {"VEVENT", "VTODO", "VJOURNAL"}
POLICIES = {"X-CLOUDSCHED-GAP": "gap", "X-CLOUDSCHED-FOLD": "fold", "X-CLOUDSCHED-SUB-DAILY": "sub_daily"}
_LINE = re.compile(r"([A-Za-z0-9-]+)((?:;[^:;\"]*(?:\"[^\"]*\")?)*):(.*)\Z", re.DOTALL)
EXACT_PROPERTY = "X-CLOUDSCHED-SCHEDULE"
"""The property that holds a schedule's JSON form."""
_MOST_PARTS = 3
"""The most parts of an IANA name."""
_TIMES = {"DTSTART", "RRULE", "RDATE", "EXDATE", *POLICIES}


class _Property(NamedTuple):
    name: str
    timezone: str | None
    value: str
    line: str


def from_ical(text: str, timezone: str) -> dict[str, Any]:
    """Return the fields of the schedule that a block of properties describes. Times without TZID are in `timezone`."""
    properties, events = _read_properties(text)
    exact = _read_exact(properties)
    if exact is not None:
        return exact
    starts = _find_starts(properties, events)
    fields: dict[str, Any] = {"rrule": [], "rdates": [], "exdates": [], "timezone": timezone}
    for each in starts:
        moment = parse_moment(each.value, "dtstart")
        fields["timezone"] = "UTC" if moment.offset is not None else each.timezone or timezone
        fields["dtstart"] = moment._replace(offset=None, is_date=False).isoformat()
    for each in properties:
        if each.name == "RRULE":
            fields["rrule"].append(each.value)
        elif each.name in {"RDATE", "EXDATE"}:
            field = "rdates" if each.name == "RDATE" else "exdates"
            fields[field] += [
                _parse_date(value, each.timezone, field, fields["timezone"]) for value in each.value.split(",")
            ]
        elif each.name in POLICIES:
            fields[POLICIES[each.name]] = each.value.strip().lower()
        elif each.name == "EXRULE":
            raise InvalidSchedule("exdates", "EXRULE is not supported", "RFC 5545 dropped it; list EXDATEs instead")
    return fields


def _find_starts(properties: list[_Property], events: int) -> list[_Property]:
    if events > 1:
        raise InvalidSchedule("text", "holds more than one event", "give one")
    if any(each.name == "STATUS" and each.value.strip().upper() == "CANCELLED" for each in properties):
        raise InvalidSchedule("text", "is an event that was cancelled", "leave out its STATUS if it is to run")
    starts = [each for each in properties if each.name == "DTSTART"]
    if len(starts) > 1:
        raise InvalidSchedule("dtstart", "is given more than once", "give one event")
    return starts


def digest_lines(lines: Iterable[str]) -> str:
    """Return a digest of the properties that say when events are, regardless of their order."""
    return sha256("\n".join(sorted(lines)).encode()).hexdigest()[:32]


def _read_exact(properties: list[_Property]) -> dict[str, Any] | None:
    """Return the fields of the schedule that was written. None if there are none, or if an event was changed since."""
    found = next((each for each in properties if each.name == EXACT_PROPERTY), None)
    digest = digest_lines(each.line for each in properties if each.name in _TIMES)
    if found is None or f";DIGEST={digest}:" not in found.line:
        return None
    try:
        content = json.loads(unescape_text(found.value))
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _read_properties(text: str) -> tuple[list[_Property], int]:
    """Return the properties of the events in a block, and how many events. The parts of VTIMEZONEs are ignored."""
    inside: list[str] = []
    properties: list[_Property] = []
    events = 0
    for line in unfold(text):
        result = _LINE.match(line.strip())
        if not result:
            raise InvalidSchedule("text", f"{line[:40]!r} is not an iCalendar property", "write NAME:value, one a line")
        name, parameters, value = result.group(1).upper(), result.group(2), result.group(3)
        if name == "BEGIN":
            inside.append(value.strip().upper())
            events += inside[-1] in _COMPONENTS
        elif name == "END":
            if inside:
                inside.pop()
        elif not inside or inside[-1] in _COMPONENTS:
            properties.append(_Property(name, _parse_timezone(parameters), value, line.strip()))
    return properties, events


def _parse_timezone(parameters: str) -> str | None:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().upper() == "TZID":
            tzid = value.strip().strip('"')
            known = find_zone(tzid) or find_windows_zone(tzid)
            return known or time_zones.load_zone(tzid).name  # raises InvalidSchedule with a hint
    return None


def find_zone(tzid: str) -> str | None:
    """Return the IANA name in a TZID such as ``/example.org/Europe/Berlin``, or None if there is none."""
    parts = tzid.strip("/").split("/")[-_MOST_PARTS:]
    names = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((name for name in names if time_zones.in_use.knows(name)), None)


def find_windows_zone(tzid: str) -> str | None:
    """Return the IANA name for one of Windows, such as ``W. Europe Standard Time``, or None if it is none."""
    from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON  # noqa: PLC0415 - slow to import

    return WINDOWS_TO_OLSON.get(tzid)


def _parse_date(value: str, tzid: str | None, field: str, timezone: str) -> str:
    """Return one date of a list as ISO text. A local time in another zone than the schedule's becomes an instant."""
    moment = parse_moment(value.partition("/")[0], field)  # only the start of a period counts
    if moment.offset is None and not moment.is_date and tzid not in {None, timezone}:
        instant = wall_clock(str(tzid)).instants(moment.wall)[0]
        moment = Moment(instant, 0, is_date=False)
    return moment.isoformat()
