"""Schedules as iCalendar properties: DTSTART, RRULE, RDATE and EXDATE (RFC 5545, section 3.8).

A block may be bare properties or a whole VEVENT. TZID is an IANA name; a prefix before it, as some programs write, is
dropped. The policies for clock changes, which iCalendar cannot express, are ``X-CLOUDSCHED-`` properties.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudsched.domain.recurrence.iso8601 import EPOCH, Moment, parse_moment
from cloudsched.domain.recurrence.time_zones import load_zone, zone_names
from cloudsched.domain.recurrence.wall_clock import wall_clock
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.domain.recurrence.schedule_fields import ScheduleFields

_COMPONENTS = {"VEVENT", "VTODO", "VJOURNAL"}
_POLICIES = {"X-CLOUDSCHED-GAP": "gap", "X-CLOUDSCHED-FOLD": "fold", "X-CLOUDSCHED-SUB-DAILY": "sub_daily"}
_LINE = re.compile(r"([A-Za-z0-9-]+)((?:;[^:;\"]*(?:\"[^\"]*\")?)*):(.*)\Z", re.DOTALL)
_LINE_LENGTH = 75


class _Property(NamedTuple):
    name: str
    timezone: str | None
    value: str


def from_ical(text: str, timezone: str) -> dict[str, Any]:
    """Return the fields of the schedule that a block of properties describes.

    Args:
        text: The block, its lines possibly folded.
        timezone: The zone of local times without a TZID.

    Raises:
        InvalidSchedule: The block is not valid, describes several events, or uses EXRULE.
    """
    properties = list(_iter_properties(text))
    starts = [each for each in properties if each.name == "DTSTART"]
    if len(starts) > 1:
        raise InvalidSchedule("dtstart", "is given more than once", "give one event")
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
        elif each.name in _POLICIES:
            fields[_POLICIES[each.name]] = each.value.strip().lower()
        elif each.name == "EXRULE":
            raise InvalidSchedule("exdates", "EXRULE is not supported", "RFC 5545 dropped it; list EXDATEs instead")
    return fields


def to_ical(schedule: ScheduleFields) -> str:
    """Return a schedule as properties, one a line, folded at 75 characters."""
    if schedule.at is not None:
        return f"DTSTART:{schedule.at:%Y%m%dT%H%M%SZ}\n"
    lines = []
    if schedule.dtstart is not None:
        lines.append("DTSTART" + _format_moment(parse_moment(schedule.dtstart, "dtstart"), schedule.timezone))
    lines += [f"RRULE:{rule}" for rule in schedule.rules]
    for name, field, dates in (("RDATE", "rdates", schedule.rdates), ("EXDATE", "exdates", schedule.exdates)):
        lines += [name + _format_moment(parse_moment(date, field), schedule.timezone) for date in dates]
    lines += [f"{name}:{schedule.policies[field]}" for name, field in _POLICIES.items() if field in schedule.policies]
    return "".join(f"{_fold_line(line)}\n" for line in lines)


def _iter_properties(text: str) -> Iterator[_Property]:
    """Yield the properties of the one event in a block; other components, such as VTIMEZONE, are ignored."""
    inside: list[str] = []
    events = 0
    for line in re.sub(r"\r?\n[ \t]", "", text).splitlines():
        if not line.strip():
            continue
        result = _LINE.match(line.strip())
        if not result:
            raise InvalidSchedule("text", f"{line[:40]!r} is not an iCalendar property", "write NAME:value, one a line")
        name, parameters, value = result.group(1).upper(), result.group(2), result.group(3)
        if name == "BEGIN":
            inside.append(value.strip().upper())
            events += inside[-1] in _COMPONENTS
            if events > 1:
                raise InvalidSchedule("text", "holds more than one event", "give one")
        elif name == "END":
            if inside:
                inside.pop()
        elif not inside or inside[-1] in _COMPONENTS:
            yield _Property(name, _parse_timezone(parameters), value)


def _parse_timezone(parameters: str) -> str | None:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().upper() == "TZID":
            return _find_zone(value.strip().strip('"'))
    return None


def _find_zone(tzid: str) -> str:
    """Return the IANA name in a TZID such as ``/example.org/Europe/Berlin``."""
    parts = tzid.strip("/").split("/")
    for start in range(len(parts)):
        name = "/".join(parts[start:])
        if name in zone_names():
            return name
    return load_zone(tzid).name  # raises InvalidSchedule with a hint


def _parse_date(value: str, tzid: str | None, field: str, timezone: str) -> str:
    """Return one date of a list as ISO text; a local time in another zone than the schedule's becomes an instant."""
    moment = parse_moment(value.partition("/")[0], field)  # only the start of a period counts
    if moment.offset is None and not moment.is_date and tzid not in {None, timezone}:
        instant = wall_clock(str(tzid)).instants(moment.wall)[0]
        moment = Moment(instant, 0, is_date=False)
    return moment.isoformat()


def _format_moment(moment: Moment, timezone: str) -> str:
    if moment.is_date:
        return f";VALUE=DATE:{EPOCH + timedelta(seconds=moment.wall):%Y%m%d}"
    when = EPOCH + timedelta(seconds=moment.wall - (moment.offset or 0))
    if moment.offset is not None or timezone == "UTC":
        return f":{when:%Y%m%dT%H%M%SZ}"
    return f";TZID={timezone}:{when:%Y%m%dT%H%M%S}"


def _fold_line(line: str) -> str:
    pieces = [line[:_LINE_LENGTH]]
    pieces += [line[at : at + _LINE_LENGTH - 1] for at in range(_LINE_LENGTH, len(line), _LINE_LENGTH - 1)]
    return "\n ".join(pieces)
