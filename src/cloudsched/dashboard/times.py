"""Times in words: absolute with their offsets, and relative in two units that are cut and not rounded."""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

from cloudsched.dashboard.words import only_if
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.in_words import say_duration
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from zoneinfo import ZoneInfo

_LONGEST_NAME: Final = 64
BLANK: Final = "\N{NO-BREAK SPACE}"
NONE: Final = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class ShownInstant:
    """An instant as it is shown in one zone. Each of its texts is written when it is asked for."""

    local: datetime
    now: datetime

    @property
    def iso(self) -> str:
        """Return it as ISO 8601, with the zone's offset."""
        return self.local.isoformat()

    @property
    def text(self) -> str:
        """Return the full text, such as ``Thu 25 Mar 2027 09:00 +0100``, with seconds if it has any."""
        return write_time(self.local)

    @property
    def short(self) -> str:
        """Return the same without the year if it is this year's."""
        return write_time(self.local, with_year=self.local.year != self.now.astimezone(self.local.tzinfo).year)

    @property
    def clock(self) -> str:
        """Return the time of its day, such as ``09:00 +0100``, for where the day is told beside it."""
        return _write_clock(self.local)

    @property
    def relative(self) -> str:
        """Return the distance from now: ``in 17 h 17 min`` or ``2 min 53 s ago``."""
        return write_relative(self.local.astimezone(UTC) - self.now)

    @property
    def both(self) -> str:
        """Return the instant in its zone, with the zone's name, and in UTC."""
        zone = self.local.tzinfo
        name = zone.key if isinstance(zone, zoneinfo.ZoneInfo) else str(zone)
        return f"{write_time(self.local)} {name} = {self.local.astimezone(UTC):%H:%M:%S} UTC"


def parse_instant(text: str) -> datetime:
    """Return an instant of the API's, in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)


def find_instant(record: Mapping[str, Any], *names: str) -> datetime | None:
    """Return the instant in the first of these fields that a record has. None if it has none of them."""
    text = next((record[name] for name in names if record.get(name)), None)
    if text is None:
        return None
    return parse_instant(text)


def find_zone(name: str | None) -> zoneinfo.ZoneInfo | None:
    """Return a zone by its name. None if there is no such zone."""
    if not name or len(name) > _LONGEST_NAME:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def write_time(local: datetime, *, with_year: bool = True) -> str:
    """Return a wall-clock time with its day and offset."""
    year = only_if(with_year, f"{BLANK}{local.year:04}")
    return f"{local:%a}{BLANK}{local:%d}{BLANK}{local:%b}{year} {_write_clock(local)}"


def write_relative(distance: timedelta) -> str:
    """Return the distance of an instant, such as ``in 2 min 53 s``."""
    if not distance:
        return "now"
    if distance > timedelta(0):
        return f"in {write_duration(distance)}"
    return f"{write_duration(-distance)} ago"


def write_duration(duration: timedelta) -> str:
    """Return a duration in at most two units, which no line break parts."""
    return say_duration(duration).replace(" ", BLANK)


def find_took(record: Mapping[str, Any], now: datetime) -> timedelta | None:
    """Return what a run, an attempt or a step took: of a run the time of its attempts. None if it never started."""
    if "scheduledFor" in record:
        return Execution.model_validate(record, extra="ignore").took(now)
    started = find_instant(record, "startedAt")
    return None if started is None else max((find_instant(record, "finishedAt") or now) - started, timedelta(0))


def write_took(record: Mapping[str, Any], now: datetime) -> str:
    """Return that in words. A dash if it never started."""
    took = find_took(record, now)
    return NONE if took is None else write_duration(took)


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """A change of a zone's offset."""

    at: datetime
    """The instant, to the second."""
    shift: timedelta
    """The time by which clocks go forward. Negative if they go back."""

    def describe(self, zone: zoneinfo.ZoneInfo) -> str:
        """Return it in words, such as ``clocks go forward on 28 Mar``."""
        local = self.at.astimezone(zone)
        return f"clocks go {self.direction} on {local.day} {local:%b}"

    @property
    def direction(self) -> str:
        """Return whether clocks go forward or back."""
        return "forward" if self.shift > timedelta(0) else "back"

    def write_clocks(self, zone: zoneinfo.ZoneInfo) -> str:
        """Return the clock's time without the change and with it, such as ``02:00 +0100 becomes 03:00 +0200``."""
        before = self.at.astimezone(timezone(_offset(self.at - timedelta(seconds=1), zone)))
        after = self.at.astimezone(zone)
        return f"{_write_clock(before)} becomes {_write_clock(after)}"


def _write_clock(local: datetime) -> str:
    seconds = only_if(local.second, f":{local:%S}")
    return f"{local:%H:%M}{seconds}{BLANK}{local:%z}"


def find_clock_changes(start: datetime, end: datetime, zone: zoneinfo.ZoneInfo) -> list[OffsetChange]:
    """Return the clock changes after `start` and up to `end`, found day by day and then by halving."""
    found = []
    earlier = start
    while earlier < end:
        later = min(earlier + timedelta(days=1), end)
        shift = _offset(later, zone) - _offset(earlier, zone)
        if shift:
            found.append(OffsetChange(_find_change(earlier, later, zone), shift))
        earlier = later
    return found


def _find_change(low: datetime, high: datetime, zone: zoneinfo.ZoneInfo) -> datetime:
    """Return the first second after `low` that has the offset of `high`."""
    before = _offset(low, zone)
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        if _offset(middle, zone) == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)


def _offset(at: datetime, zone: zoneinfo.ZoneInfo) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta(0)


DAY: Final = timedelta(days=1)


def find_start(day: date, zone: zoneinfo.ZoneInfo) -> datetime:
    """Return a day's first instant, in UTC. If midnight is skipped, it is the instant of the change."""
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)


_FORMAT = "%Y-%m-%dT%H:%M"


@dataclass(frozen=True, slots=True)
class EnteredInstant:
    """An instant of an address, and how its field shows it."""

    iso: str = ""
    """The instant for the API. Empty if none was given."""
    value: str = ""
    """The wall-clock time, as the field has it."""
    note: str = ""
    """What there is to say: the clock skips or repeats that time."""


def read_instant(text: str, zone: ZoneInfo, name: str) -> EnteredInstant:
    """Return an instant that is written with an offset, or as a wall-clock time in a zone.

    A time that the clock skips means the one after the gap, and of one that comes twice the first is meant.
    Raises InvalidInput, which names the field, for a text that is no time.
    """
    if not text:
        return EnteredInstant()
    try:
        entered = datetime.fromisoformat(text)
        if entered.tzinfo is not None:
            return EnteredInstant(entered.astimezone(UTC).isoformat(), f"{entered.astimezone(zone):{_FORMAT}}")
        first = entered.replace(tzinfo=zone).astimezone(UTC)
        second = entered.replace(tzinfo=zone, fold=1).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(name, f"is no time: “{text[:40]}”", "Write it as in 2027-03-27T09:00.") from None
    meant = first.astimezone(zone)
    note = ""
    if meant.replace(tzinfo=None, fold=0) != entered:
        note = f"The clock skips {entered:%H:%M} on that day in {zone.key}: {write_time(meant)} is meant."
    elif first != second:
        note = f"The clock shows {entered:%H:%M} twice on that day in {zone.key}: {write_time(meant)} is meant."
    return EnteredInstant(first.isoformat(), f"{entered:{_FORMAT}}", note)
