"""The times in which runs were due and none started in time, as Home and the calendar show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from cloudsched.dashboard.times import parse_instant, write_duration
from cloudsched.dashboard.words import write_count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit

_FILTERS: Final = ("owner", "handler", "label", "category")
"""The filters of a page that its stops are counted with."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A time in which runs were due and none started in time."""

    start: datetime
    end: datetime
    """Now, if it goes on."""
    is_over: bool
    title: str
    day: str
    """The address of its first day in the calendar."""
    numbers: Sequence[tuple[str, str]]
    """What was skipped and what started late, each with the address of its list."""


def read_stops(answer: Json, visit: Visit) -> list[Stop]:
    """Return the stops of an answer of the API, the latest first."""
    return [_read_stop(each, visit) for each in reversed(answer.get("stops", ()))]


def _read_stop(stop: Json, visit: Visit) -> Stop:
    start = parse_instant(stop["start"])
    end = parse_instant(stop["end"]) if stop["isOver"] else visit.now
    since = visit.moment(stop["start"]).text
    filters = {name: visit.query[name] for name in _FILTERS if visit.query.get(name)}
    nothing = "None of the filtered runs" if filters else "Nothing"
    title = f"{nothing} that {'were' if filters else 'was'} due since {since} has started in time"
    if stop["isOver"]:
        length = write_duration(end - start)
        title = f"{nothing} started in time for {length}, from {since} to {visit.moment(stop['end']).text}"

    bounds = {"from": stop["start"], "until": stop["end"], **filters}
    skipped = write_count(stop["skipped"], "skipped", "skipped", is_at_least=stop.get("isAtLeast"))
    numbers = [
        (said, f"runs?{urlencode({**bounds, **chosen})}")
        for count, said, chosen in (
            (stop["skipped"], skipped, {"outcome": "skipped"}),
            (stop["late"], f"{stop['late']:,} started late", {"minLateness": "PT1M"}),
        )
        if count
    ]
    day = start.astimezone(visit.zone).date().isoformat()
    return Stop(start, end, stop["isOver"], title, f"calendar?{urlencode({'day': day, **filters})}", numbers)
