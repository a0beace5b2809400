"""IANA time zones, always from the ``tzdata`` package.

``zoneinfo`` prefers the operating system's files, so that a laptop, a function and CI can disagree about the
same instant. Here only the package counts, and `version` returns its release.

A `Zone` is a table of clock changes in plain integers, because a search for the next occurrence needs offsets
far more often than a datetime. All seconds count from 1970-01-01, and offsets are seconds east of UTC.

Some names that people write for a zone are no IANA names, or mean another zone than they think. ``GMT+1``
looks like one and is none. ``Etc/GMT+1`` is one, and lies an hour *behind* UTC: POSIX counts west of
Greenwich. An abbreviation such as IST names several zones. Some are IANA names of a fixed offset as well (EST
is UTC-5 all year), which hardly anyone means. These are refused too, with a question, wherever a caller gives
a zone.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import cached_property, partial
from hashlib import blake2b
from importlib import import_module
from io import BytesIO
from pkgutil import get_data
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from cloudsched.domain.recurrence.allowance import spend_steps
from cloudsched.errors import InvalidSchedule, Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
SECONDS_A_DAY = 86_400

_NAME = r"(?:[A-Za-z]+|<[^>]+>)"
_OFFSET = r"[+-]?\d{1,3}(?::\d{2}){0,2}"
_FOOTER = re.compile(rf"{_NAME}({_OFFSET})(?:{_NAME}({_OFFSET})?,([^,]+),([^,]+))?\Z")


@dataclass(frozen=True, slots=True)
class ChangeDay:
    """One of the two days of a year on which the clocks change, and the local time at which they do.

    Attributes:
        form: ``M`` for the nth weekday of a month, ``J`` for a day of the year that never counts 29 February,
            an empty string for a zero-based day of the year that does.
        numbers: Month, week and weekday (Sunday is 0) for ``M``, one number for the others.
        time: Seconds after local midnight. It may be below 0 or above a day.
    """

    form: str
    numbers: tuple[int, ...]
    time: int

    def local_seconds(self, year: int) -> int:
        """Return the change's local time in ``year``: seconds since 1970 on the clock before the change."""
        if self.form == "M":
            month, week, weekday = self.numbers
            first = date(year, month, 1).toordinal()
            day = first + (weekday - first) % 7 + 7 * (week - 1)
            following = date(year + month // 12, month % 12 + 1, 1).toordinal()
            while day >= following:
                day -= 7
        elif self.form == "J":
            day = date(2001, 1, 1).toordinal() + self.numbers[0] - 1
            day = date.fromordinal(day).replace(year=year).toordinal()
        else:
            day = date(year, 1, 1).toordinal() + self.numbers[0]
        return (day - EPOCH_ORDINAL) * SECONDS_A_DAY + self.time


@dataclass(frozen=True, slots=True)
class Footer:
    """A parsed rule: the standard offset in seconds east of UTC, and the summer offset if there is one."""

    standard: int
    summer: int | None = None
    starts: ChangeDay | None = None
    ends: ChangeDay | None = None

    def changes(self, year: int) -> list[tuple[int, int]]:
        """Return the year's clock changes as (UTC seconds, offset from then on), in order."""
        if self.summer is None or self.starts is None or self.ends is None:
            return []
        starts = self.starts.local_seconds(year) - self.standard, self.summer
        ends = self.ends.local_seconds(year) - self.summer, self.standard
        return sorted((starts, ends))


def parse_footer(text: str) -> Footer:
    """Parse the footer of a TZif file."""
    result = _FOOTER.match(text)
    if not result:
        raise ValueError(f"{text!r} is not a POSIX TZ rule")
    standard, summer, starts, ends = result.groups()
    east = -_parse_seconds(standard)
    if starts is None:
        return Footer(east)
    offset = east + 3600  # by default an hour ahead of standard time
    if summer:
        offset = -_parse_seconds(summer)
    return Footer(east, offset, _parse_change_day(starts), _parse_change_day(ends))


def _parse_change_day(text: str) -> ChangeDay:
    day, _, time = text.partition("/")
    form = day[0] if day[0] in "MJ" else ""
    numbers = tuple(int(number) for number in day.removeprefix(form).split("."))
    return ChangeDay(form, numbers, _parse_seconds(time or "2"))  # by default at 2 o'clock


def _parse_seconds(text: str) -> int:
    hours, *rest = text.lstrip("+-").split(":")
    minutes, seconds = [*map(int, rest), 0, 0][:2]
    total = int(hours) * 3600 + minutes * 60 + seconds
    return -total if text.startswith("-") else total


EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 -- datetime.UTC is the same object
LAST_TABLE_YEAR = 9999
_TABLE_YEARS = 100  # the least number of years that one extension of a table covers
_FIRST_TABLE_ENDS = 2100
_FINGERPRINT_END = 4_070_908_800
"""The start of the year 2100. Later changes follow from the footer."""
_STEPS_A_YEAR = 2
"""The steps of a search that the changes of one year cost."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """A zone's offsets until ``end``.

    Attributes:
        offsets: One more than there are changes: ``offsets[i]`` holds until ``changes[i]``.
        end: The first instant that the table does not cover.
        next_year: The first year whose changes are not listed yet.
    """

    changes: tuple[int, ...]
    offsets: tuple[int, ...]
    end: float
    next_year: int


class Zone:
    """One time zone and its table of clock changes, extended into the future as needed."""

    __slots__ = ("_table", "footer", "largest", "name", "repeats_from", "smallest")

    def __init__(
        self, name: str, changes: list[int], offsets: list[int], footer: Footer | None, listed_until: int
    ) -> None:
        self.name: str = name
        self.footer: Footer | None = footer
        """The rule that the zone follows after the last clock change that is listed by date."""
        self.repeats_from: int = listed_until
        """The last clock change that is listed by date. From there on the zone follows a yearly rule, or
        none."""
        recurring = footer is not None and footer.summer is not None
        end = float("-inf") if recurring else float("inf")
        last_year = (EPOCH + timedelta(seconds=listed_until)).year
        self._table = Offsets(tuple(changes), tuple(offsets), end, last_year)
        if recurring:
            self._extend(_FIRST_TABLE_ENDS)
        self.smallest: int = min(self._table.offsets)
        self.largest: int = max(self._table.offsets)

    @property
    def skipped_days(self) -> list[tuple[int, int]]:
        """Whole days that its clock has skipped so far, the first and the last, counted from 1970-01-01."""
        table = self._table
        found = list[tuple[int, int]]()
        for change, before, after in zip(table.changes, table.offsets, table.offsets[1:], strict=False):
            first = -(-(change + before) // SECONDS_A_DAY)
            end = (change + after) // SECONDS_A_DAY
            if first < end:
                found.append((first, end - 1))
        return found

    def table_for(self, seconds: int) -> Offsets:
        """Return a table that covers an instant."""
        if self._table.end <= seconds:
            year = (EPOCH + timedelta(seconds=seconds)).year
            # Twice as far each time, since the table is copied.
            ahead = max(_TABLE_YEARS, year - _FIRST_TABLE_ENDS)
            self._extend(min(year + ahead, LAST_TABLE_YEAR))
        return self._table

    def offset_at(self, seconds: int) -> int:
        """Return the offset in force at a UTC instant."""
        table = self.table_for(seconds)
        return table.offsets[bisect_right(table.changes, seconds)]

    def changes_by(self, unit: int, since: int) -> bool:
        """Return whether its clock changes only by multiples of ``unit`` seconds after an instant."""
        table = self._table
        return len({each % unit for each in table.offsets[bisect_right(table.changes, since) :]}) == 1

    def fingerprint(self) -> str:
        """Return a short text that is the same for the same clock changes, however the file lists them."""
        table = self._table
        changes = [at for at in table.changes if at < _FINGERPRINT_END]
        footer = None
        if self.footer is None or self.footer.summer is not None:
            footer = self.footer
        text = f"{changes}{table.offsets[: len(changes) + 1]}{footer}"
        return blake2b(text.encode(), digest_size=5).hexdigest()

    def _extend(self, to_year: int) -> None:
        table = self._table
        footer = self.footer
        if footer is None:
            return
        spend_steps(_STEPS_A_YEAR * (to_year - table.next_year) + len(table.changes) // 100)
        changes = list(table.changes)
        offsets = list(table.offsets)
        for year in range(table.next_year, to_year):
            for at, offset in footer.changes(year):
                if at > self.repeats_from and offset != offsets[-1]:
                    changes.append(at)
                    offsets.append(offset)
        last = datetime(to_year - 1, 1, 1, tzinfo=EPOCH.tzinfo)
        if to_year < LAST_TABLE_YEAR:
            end = (last - EPOCH).total_seconds()
        else:
            end = float("inf")
        # One assignment, so that threads see the old table or the new one.
        self._table = Offsets(tuple(changes), tuple(offsets), end, to_year)


class ZoneData:
    """One release of the time zone data, with the zones that a process has read of it.

    `read` returns None for a file that the package lacks.
    """

    def __init__(self, release: str | None = None, read: Callable[[str], bytes | None] | None = None) -> None:
        self._release = release
        self._read = read or partial(get_data, "tzdata")
        self._zones: dict[str, Zone] = {}
        self._tzinfos: dict[str, ZoneInfo] = {}
        self._fingerprints: dict[str, str] = {}
        self._stand_ins: dict[str, Zone] = {}
        self._newer: Mapping[str, str] | None = None
        self.rolled_back: str = ""
        """A newer release that was in use before, and no longer is."""

    @property
    def release(self) -> str:
        """The IANA release, such as ``2026a``. A later one is greater."""
        if self._release is None:
            self._release = str(import_module("tzdata").IANA_VERSION)
        return self._release

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all zones, sorted."""
        return tuple(sorted(self._load("zones").decode().split()))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    def knows(self, name: str) -> bool:
        """Return whether there is a zone of that name."""
        return name in self._zones or name in self._known

    def zone(self, name: str) -> Zone:
        """Return a zone's table. Raises InvalidSchedule."""
        zone = self._zones.get(name)
        if zone is None:
            zone = self._zones[name] = _parse_tzif(name, self.load_file(name))
        return zone

    def tzinfo(self, name: str) -> ZoneInfo:
        """Return a zone as a tzinfo. Raises InvalidSchedule."""
        zone = self._tzinfos.get(name)
        if zone is None:
            zone = self._tzinfos[name] = ZoneInfo.from_file(BytesIO(self.load_file(name)), key=name)
        return zone

    def stand_in(self, name: str) -> Zone:
        """Return a clock at UTC that stands for a zone that these data do not know."""
        zone = self._stand_ins.get(name)
        if zone is None:
            if len(self._stand_ins) > _MAX_STAND_INS:
                self._stand_ins.clear()
            zone = self._stand_ins[name] = Zone(name, [], [0], None, 0)
        return zone

    def fingerprint(self, name: str) -> str:
        """Return a short text that identifies the zone's clock changes, or an empty one for an unknown zone.

        It covers all of them: those of the past decide how COUNT counts and where an interval of hours
        stands.
        """
        found = self._fingerprints.get(name)
        if found is None:
            found = self.zone(name).fingerprint() if self.knows(name) else ""
            self._fingerprints[name] = found
        return found

    def note_newer(self, release: str) -> None:
        """Note that a plan was made with a newer release, whose data are unknown here."""
        if self._newer is None and release != self.rolled_back:
            self._newer = {}

    def note_others(self, newer: Mapping[str, str] | None, rolled_back: str = "") -> None:
        """Note the fingerprints of newer data that other processes plan with, and a release that was rolled back."""
        self._newer = newer
        self.rolled_back = rolled_back

    def is_outdated(self, name: str) -> bool:
        """Return whether other processes plan with newer data that may have another clock for a zone."""
        return self._newer is not None and self._newer.get(name) != self.fingerprint(name)

    def load_file(self, name: str) -> bytes:
        """Return the TZif file of a zone. Raises InvalidSchedule."""
        if not self.knows(name):
            hint = explain_unknown(name, self.names)
            raise InvalidSchedule("timezone", f"there is no time zone {name[:64]!r}", hint)
        return self._load(f"zoneinfo/{name}")

    def _load(self, path: str) -> bytes:
        data = self._read(path)
        if data is None:
            raise Misconfigured(f"the tzdata package cannot be read: it has no {path}")
        return data


_MAX_STAND_INS = 100

in_use = ZoneData()
"""The data that all schedules are computed with: those of the installed ``tzdata`` package."""


@contextmanager
def use(data: ZoneData) -> Iterator[None]:
    """Compute with other data for a while, in the whole process: to compare releases."""
    global in_use  # noqa: PLW0603 -- what a process computes with is one thing
    before = in_use
    in_use = data
    try:
        yield
    finally:
        in_use = before


def load_tzinfo(name: str) -> ZoneInfo:
    """Return the zone as a tzinfo for display, from the same data as `load_zone`."""
    return in_use.tzinfo(name)


def load_shown(name: str) -> tzinfo:
    """Return the zone of a stored object, for display, or UTC if the data no longer know it."""
    if in_use.knows(name):
        return in_use.tzinfo(name)
    return timezone.utc  # noqa: UP017 -- as above


def load_zone(name: str) -> Zone:
    """Return the zone's table of clock changes. Raises InvalidSchedule if there is none."""
    return in_use.zone(name)


def find_zone(name: str, data: ZoneData | None = None) -> Zone:
    """Return the table of the zone of a stored object, or a clock at UTC if the data no longer know it."""
    data = data or in_use
    if data.knows(name):
        return data.zone(name)
    return data.stand_in(name)


def is_fixed(name: str) -> bool:
    """Return whether a zone is a fixed distance from UTC by its name, so that no government can move it."""
    return name == "UTC" or name.startswith("Etc/")


def require_zone(name: str) -> None:
    """Check the name of a zone that a caller gives. A stored one may be any that the data know."""
    in_use.zone(name)
    require_single(name)


def _parse_tzif(name: str, data: bytes) -> Zone:
    """Read a TZif file of version 2 or later (RFC 8536, section 3)."""
    start = 44 + _block_length(data, 0, width=4)
    _, _, _, times, types, _ = struct.unpack_from(">6l", data, start + 20)
    at = start + 44
    changes = list(struct.unpack_from(f">{times}q", data, at))
    kinds = struct.unpack_from(f">{times}B", data, at + 8 * times)
    base = at + 9 * times
    offset_of = [struct.unpack_from(">l", data, base + 6 * number)[0] for number in range(types)]
    end = start + 44 + _block_length(data, start, width=8)
    footer = data[end:].strip(b"\n").decode("ascii")
    offsets = [offset_of[0]]
    kept: list[int] = []
    for change, kind in zip(changes, kinds, strict=True):
        if offset_of[kind] != offsets[-1]:
            kept.append(change)
            offsets.append(offset_of[kind])
    listed_until = changes[-1] if changes else 0
    return Zone(name, kept, offsets, parse_footer(footer) if footer else None, listed_until)


def _block_length(data: bytes, start: int, *, width: int) -> int:
    utc, standard, leaps, times, types, characters = struct.unpack_from(">6l", data, start + 20)
    return int(times * (width + 1) + types * 6 + characters + leaps * (width + 4) + standard + utc)


SHARED: Final[dict[str, tuple[str, ...]]] = {
    "EST": ("America/New_York", "Australia/Sydney"),
    "CST": ("America/Chicago", "Asia/Shanghai", "America/Havana"),
    "MST": ("America/Denver", "America/Phoenix"),
    "AEST": ("Australia/Brisbane", "Australia/Sydney"),
    "IST": ("Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"),
    "BST": ("Europe/London", "Asia/Dhaka"),
}
"""The abbreviations that several zones share, each with the zones that it may mean."""

_CITIES: Final = {
    **dict.fromkeys(("CEST", "MEZ", "MESZ"), "Europe/Berlin"),
    **dict.fromkeys(("WEST",), "Europe/Lisbon"),
    **dict.fromkeys(("EEST",), "Europe/Athens"),
    **dict.fromkeys(("EDT", "ET"), "America/New_York"),
    **dict.fromkeys(("CDT", "CT"), "America/Chicago"),
    **dict.fromkeys(("MDT", "MT"), "America/Denver"),
    **dict.fromkeys(("PST", "PDT", "PT"), "America/Los_Angeles"),
    **dict.fromkeys(("JST",), "Asia/Tokyo"),
    **dict.fromkeys(("AEDT",), "Australia/Sydney"),
}
"""A city for abbreviations that are no IANA names: these name a season."""
_WRITTEN_OFFSET: Final = re.compile(
    r"(?:UTC|GMT)?\s*([+-])(\d{1,2})(?::?([0-5]\d))?\Z",
    re.IGNORECASE | re.ASCII,
)
_FURTHEST_WEST = -12
_FURTHEST_EAST = 14


def require_single(name: str) -> None:
    """Check that a zone's name is not one that several zones share."""
    zones = SHARED.get(name.upper())
    if zones is not None:
        *others, last = zones
        hint = f"did you mean {', '.join(others)} or {last}?"
        raise InvalidSchedule("timezone", f"{name} is the time of several zones", hint)


def explain_unknown(name: str, known: Sequence[str]) -> str:
    """Return the advice for a name that no zone has."""
    require_single(name)
    offset = _WRITTEN_OFFSET.match(name.strip())
    if offset is not None:
        return _explain_offset(*offset.groups())
    city = _CITIES.get(name.upper()) or next((each for each in known if each.endswith(f"/{name}")), None)
    from difflib import get_close_matches  # noqa: PLC0415 - needed only for errors

    if city:
        close = [city]
    else:
        close = get_close_matches(name[:64], known, n=1)
    if not close:
        return "use an IANA name such as Europe/Paris"
    return f"did you mean {close[0]}?"


def find_named_offset(name: str) -> timedelta | None:
    """Return how far a zone is ahead of UTC whose name counts the hours west of Greenwich. None for others."""
    offset = name.removeprefix("Etc/GMT")
    if offset == name:
        return None
    return timedelta(hours=-int(offset or 0))


def _count_hours(hours: int) -> str:
    unit = "hours" if abs(hours) > 1 else "hour"
    direction = "ahead of" if hours > 0 else "behind"
    return f"{abs(hours)} {unit} {direction}"


def _explain_offset(sign: str, digits: str, minutes: str | None) -> str:
    hours = int(f"{sign}{digits}")
    if minutes and int(minutes):
        return "use the zone of a city, such as Asia/Kolkata, whose clocks show that time"
    if not hours:
        return "did you mean UTC?"
    if not _FURTHEST_WEST <= hours <= _FURTHEST_EAST:
        return "use the zone of a city, such as Europe/Paris"
    there = f"Etc/GMT{-hours:+}, {_count_hours(hours)} UTC all year"
    return f"did you mean {there} (these names count west), or a city such as Europe/Paris?"
