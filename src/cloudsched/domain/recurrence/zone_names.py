"""Names that people write for a time zone, but that are no IANA names or mean another zone than they think.

``GMT+1`` looks like an IANA name and is none. ``Etc/GMT+1`` is one, and lies an hour *behind* UTC: POSIX counts west of
Greenwich. An abbreviation such as IST names several zones. Some are IANA names of a fixed offset as well (EST is UTC-5
all year), which hardly anybody means. They are refused, too, with a question, wherever somebody gives a zone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from cloudsched.errors import InvalidSchedule

SHARED: Final = {
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
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?\s*([+-])(\d{1,2})(?::?([0-5]\d))?\Z", re.IGNORECASE | re.ASCII)
_FURTHEST_WEST, _FURTHEST_EAST = -12, 14


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
    offset = _OFFSET.match(name.strip())
    if offset is not None:
        return _explain_offset(*offset.groups())
    city = _CITIES.get(name.upper()) or next((each for each in known if each.endswith(f"/{name}")), None)
    close = [city] if city else get_close_matches(name[:64], known, n=1)
    return f"did you mean {close[0]}?" if close else "use an IANA name such as Europe/Paris"


def _explain_offset(sign: str, digits: str, minutes: str | None) -> str:
    hours = int(f"{sign}{digits}")
    if minutes and int(minutes):
        return "use the zone of a city, such as Asia/Kolkata, whose clocks show that time"
    if not hours:
        return "did you mean UTC?"
    if not _FURTHEST_WEST <= hours <= _FURTHEST_EAST:
        return "use the zone of a city, such as Europe/Paris"
    ahead = f"{abs(hours)} hour{'s' if abs(hours) > 1 else ''} {'ahead of' if hours > 0 else 'behind'} UTC"
    return f"did you mean Etc/GMT{-hours:+}, {ahead} all year (these names count west), or a city such as Europe/Paris?"
