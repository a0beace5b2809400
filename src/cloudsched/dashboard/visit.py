"""The visit: who looks at a page, when, in which time zone, and at what."""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from cloudsched.dashboard.times import ShownInstant, find_zone, parse_instant
from cloudsched.domain.in_words import say_clock
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from cloudsched.dashboard.api import Json

UTC_ZONE = zoneinfo.ZoneInfo("UTC")
_TIMES: Final[Mapping[str, tuple[str, Callable[[str], object], str]]] = {
    "tz": ("time zone", find_zone, "Europe/Paris"),
    "day": ("day", date.fromisoformat, "2027-03-24"),
    "week": ("day", date.fromisoformat, "2027-03-24"),
    "month": ("month", lambda text: date.fromisoformat(f"{text}-01"), "2027-03"),
}
"""What the parameters of addresses say about days and zones: what each is, how it is read, and an example."""
TOLD: Final = re.compile(r"(\b[A-Z][a-z]{2} \d\d? [A-Z][a-z]{2} \d{4} at \d\d:\d\d)(:\d\d)?(?: \(([\w/+-]+)\))?")
"""A time in a sentence of the API, with its zone. A page names its own once."""
OF_ANY: Final = ("tz", "done")
"""The parameters of the address of any view: the time zone, and the message after a form."""
_LONGEST: Final = 40
_NAMES_OF_UTC: Final = frozenset({"UTC", "UCT", "Universal", "Zulu"})


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit: one request for a page, by one viewer, at one time."""

    now: datetime
    """The time of the API's clock."""
    zone: zoneinfo.ZoneInfo
    query: Mapping[str, str]
    may_change: bool
    role: str
    owner: str | None
    """The caller as an owner of tasks. None for a server."""
    is_local: bool
    """True if this is the local stack, whose clock can be moved."""
    has_chosen_zone: bool = False
    """True if the viewer has chosen the zone, by this address or earlier in the visit."""
    own_zone: str = ""
    """The zone of the viewer's browser. Empty if it is not known."""

    @property
    def may_move_clock(self) -> bool:
        """Return whether the caller may move the local stack's clock, which is the same for everybody."""
        return self.is_local and self.may_change and self.role == "admin"

    @property
    def is_utc(self) -> bool:
        """Return whether the zone is UTC, by any of its names, so that a column in UTC would say the same again."""
        return self.zone.key.removeprefix("Etc/") in _NAMES_OF_UTC

    @property
    def soonest(self) -> str:
        """Return the first future instant. An earlier occurrence that has not started is overdue, and not due next."""
        return (self.now + timedelta(microseconds=1)).isoformat()

    def moment(self, at: str | datetime) -> ShownInstant:
        """Return an instant as it is shown."""
        if isinstance(at, str):
            at = parse_instant(at)
        return ShownInstant(at.astimezone(self.zone), self.now)

    def translate(self, found: Any) -> Any:  # noqa: ANN401 - any JSON
        """Return an answer of the API with the times in its sentences, which name their zones, in that of the page."""
        if isinstance(found, str):
            return TOLD.sub(self._move, found) if " at " in found else found
        if isinstance(found, dict):
            return {name: self.translate(each) for name, each in found.items()}
        return [self.translate(each) for each in found] if isinstance(found, list) else found

    def _move(self, told: re.Match[str]) -> str:
        zone = find_zone(told[3])
        if zone is None:
            return told[0]
        at = datetime.strptime(f"{told[1]}{told[2] or ':00'}", "%a %d %b %Y at %H:%M:%S").replace(tzinfo=zone)
        return say_clock(at.astimezone(self.zone))

    def in_zone_of(self, task: Json) -> Visit:
        """Return the same look in a task's own zone, if the viewer has chosen none."""
        zone = find_zone(task.get("timezone"))
        if zone is None or self.has_chosen_zone:
            return self
        return replace(self, zone=zone)

    def list_zones(self, *more: str) -> list[str]:
        """Return the zones to choose from: the present one, others that matter here, the viewer's own, and UTC."""
        return list(dict.fromkeys(filter(None, [self.zone.key, *more, self.own_zone, "UTC"])))

    def with_query(self, **changes: str | None) -> str:
        """Return this address's query with some parameters changed, or removed by None."""
        kept = {name: value for name, value in self.query.items() if name not in {"done", *changes}}
        changed = {name: value for name, value in changes.items() if value}
        return f"?{urlencode({**kept, **changed})}"


def require_known(query: Iterable[str], parameters: Collection[str]) -> None:
    """Raise InvalidInput if an address has a parameter that its view does not know, which would change nothing."""
    known = sorted({*parameters, *OF_ANY})
    if unknown := [name for name in query if name not in known]:
        said = f"{unknown[0][:_LONGEST]} is no parameter of this address."
        raise InvalidInput("", said, f"There are: {', '.join(known)}.")


def require_times(query: Mapping[str, str]) -> None:
    """Raise InvalidInput if a time in an address is none, rather than show another one than was asked for."""
    for name, (noun, read, example) in _TIMES.items():
        text = query.get(name, "")
        try:
            is_one = not text or read(text) is not None
        except ValueError:
            is_one = False
        if not is_one:
            raise InvalidInput(name, f"is no {noun}: “{text[:_LONGEST]}”", f"Write it as in {name}={example}.")
