"""Who looks, when, and in which zone: what every view needs beside the API's answers."""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from cloudsched.dashboard.times import Moment, find_zone, make_moment, parse_instant

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from cloudsched.dashboard.api import Json

UTC_ZONE = zoneinfo.ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class Visit:
    """One look at one page."""

    now: datetime
    """The API's clock."""
    zone: zoneinfo.ZoneInfo
    query: Mapping[str, str]
    may_change: bool
    role: str
    owner: str | None
    """The caller as an owner of tasks; None for a server."""
    is_local: bool
    """Whether this is the local stack, whose clock can be moved."""
    has_chosen_zone: bool = False
    """Whether the address names the zone."""
    own_zone: str = ""
    """The zone of whoever looks, as their browser has said; nothing if it has not."""

    @property
    def may_move_clock(self) -> bool:
        """Return whether the caller may move the local stack's clock, which is the same for everybody."""
        return self.is_local and self.may_change and self.role == "admin"

    @property
    def soonest(self) -> str:
        """The first instant to come. What was due before and has not started is overdue, and not due next."""
        return (self.now + timedelta(microseconds=1)).isoformat()

    def moment(self, at: str | datetime | None) -> Moment | None:
        """Return an instant as it is shown; None if there is none."""
        if not at:
            return None
        return make_moment(parse_instant(at) if isinstance(at, str) else at, self.now, self.zone)

    def sure(self, at: str | datetime) -> Moment:
        """Return an instant that there is, as it is shown."""
        return make_moment(parse_instant(at) if isinstance(at, str) else at, self.now, self.zone)

    def in_zone_of(self, task: Json) -> Visit:
        """Return the same look in a task's own zone, if the address names none."""
        zone = find_zone(task.get("timezone"))
        return self if zone is None or self.has_chosen_zone else replace(self, zone=zone)

    def with_query(self, **changes: str | None) -> str:
        """Return this address's query with some parameters changed, or removed by None."""
        kept = {name: value for name, value in self.query.items() if name not in {"done", *changes}}
        text = urlencode({**kept, **{name: value for name, value in changes.items() if value}})
        return f"?{text}" if text else "?"


@dataclass(frozen=True, slots=True)
class ZoneChoice:
    """The switch between zones."""

    name: str
    href: str
    is_chosen: bool


def zone_choices(visit: Visit, *more: str) -> list[ZoneChoice]:
    """Return the zones to choose from: the present one, others that matter here, the viewer's own, and UTC."""
    own = [visit.own_zone] if visit.own_zone else []
    names = list(dict.fromkeys([visit.zone.key, *more, *own, "UTC"]))
    return [ZoneChoice(name, visit.with_query(tz=name), name == visit.zone.key) for name in names]
