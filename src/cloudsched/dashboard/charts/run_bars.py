"""Bars of what ran and what is due in the parts of a time. Each piece of a bar leads to the list that it counts."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode

from cloudsched.dashboard.charts.svg import draw_vertical, element, percent
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.words import write_count
from cloudsched.domain.responses.count import Count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from markupsafe import Markup

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_HEIGHT: Final = 44
_LEAST: Final = 3
"""In pixels: the height of what is little."""
_GAP: Final = 0.06
"""The empty part of a bar's place on each side, so that bars stand apart."""
_KINDS: Final = {
    "failed": ("f-fail", "failed"),
    "ran": ("f-past", "succeeded"),
    "skipped": ("skipbar", "skipped"),
    "waiting": ("overdue", "not started"),
    "due": ("o", "due"),
}
"""The pieces of a bar from below, by the API's names of their numbers: how each looks, and its word."""


class RunNumber(NamedTuple):
    """A number of runs, with the address of the list that has them."""

    css: str
    value: int
    words: str
    href: str


@dataclass(frozen=True, slots=True)
class RunPart:
    """The numbers of what ran, and of what is due, in a part of a time."""

    start: datetime
    end: datetime
    counts: Mapping[str, Count]

    def __add__(self, following: RunPart) -> RunPart:
        """Return both as one part."""
        return RunPart(
            self.start, following.end, {name: count + following.counts[name] for name, count in self.counts.items()}
        )

    def list_numbers(self, visit: Visit) -> Iterator[RunNumber]:
        """Yield each number that is not zero. What was due and has not begun is not called due."""
        now = parse_instant(visit.soonest)
        start, end = max(self.start, now).isoformat(), min(self.end, now).isoformat()
        for name, count in self.counts.items():
            if not count and not count.at_least:
                continue
            css, word = _KINDS[name]
            path, query = "runs", {"from": self.start.isoformat(), "until": end, "outcome": name}
            if name == "waiting":
                path, query = "due", {"from": self.start.isoformat(), "until": end}
            elif name == "due":
                path, query = "due", {"from": start, "until": self.end.isoformat()}
            yield RunNumber(css, count.value, write_count(count.to_wire(), word, word), f"{path}?{urlencode(query)}")

    @property
    def height(self) -> int:
        """Return what its bar shows on the scale of all. One record may have skipped thousands: these are cut."""
        return sum(count.value for name, count in self.counts.items() if name != "skipped")


def fetch_due(api: Api, visit: Visit, start: datetime, end: datetime, **parts: str) -> dict[str, list[Json]]:
    """Ask the API for the numbers of each part of a time: what has not started until now, and what is due from now on.

    `parts` has their length and their zone, as the API takes them.
    """
    now = parse_instant(visit.soonest)
    found = {}
    for name, begin, until in (("waiting", start, min(end, now)), ("due", max(start, now), end)):
        if begin < until:
            near = {"from": begin.isoformat(), "until": until.isoformat()}
            found[name] = api.get("/v1/occurrences/counts", **near, **parts)["parts"]
    return found


def read_parts(found: Mapping[str, Iterable[Json]], find_bar: Callable[[datetime], object]) -> list[RunPart]:
    """Return the numbers of each bar. Parts that follow each other belong to one if it finds the same of both."""
    parts = []
    for name, counted in found.items():
        for each in counted:
            numbers = {name: each["due"]} if name != "ran" else each
            counts = {kind: read_count(numbers.get(kind, 0)) for kind in _KINDS}
            parts.append(RunPart(parse_instant(each["start"]), parse_instant(each["end"]), counts))
    parts.sort(key=lambda each: each.start)
    return [reduce(operator.add, same) for _, same in groupby(parts, lambda each: find_bar(each.start))]


def read_count(found: int | Json) -> Count:
    """Return a number of the API, which may be a bound."""
    return Count(value=found) if isinstance(found, int) else Count.model_validate(found)


def draw_bars(places: Sequence[tuple[float, float, RunPart]], most: int, name: str, visit: Visit) -> Markup:
    """Return the bars of parts, each between two places from 0 to 1, on a scale up to `most`.

    The Tab key passes over the links: the numbers beside the chart are links, too, and so is each row of a day.
    """
    scenery = [element("line", cls="base", x1=0, x2="100%", y1=_HEIGHT, y2=_HEIGHT)]
    links = []
    for left, right, part in places:
        width = right - left
        top = float(_HEIGHT)
        for number in part.list_numbers(visit):
            tall = min(max(_LEAST, _HEIGHT * number.value / max(most, 1)), top)
            top -= tall
            x, wide = percent(left + _GAP * width), percent(width * (1 - 2 * _GAP))
            piece = element("rect", cls=number.css, x=x, width=wide, y=top, height=tall)
            said = element("title", f"{visit.moment(part.start).clock} {number.words}")
            links.append(element("a", said, piece, href=number.href, cls="b", tabindex="-1"))
        if part.start <= visit.now < part.end:
            place = left + width * ((visit.now - part.start) / (part.end - part.start))
            scenery.append(draw_vertical("nowl", place, 0, _HEIGHT))
    hidden = element("g", *scenery, **{"aria-hidden": "true"})
    return element("svg", *links, hidden, cls="c", height=_HEIGHT, role="group", aria_label=name)
