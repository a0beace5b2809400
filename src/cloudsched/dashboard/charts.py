"""Charts, as SVG: bars of what ran and what is due, a mark for each of the last runs, and the steps of one run."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup, escape

from cloudsched.dashboard.status import BAD, show_status
from cloudsched.dashboard.times import find_instant, parse_instant, write_took
from cloudsched.dashboard.words import SKIPPED, read_count, show_unseen
from cloudsched.domain.documents.execution import NOT_RUN_STATUSES, ExecutionStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit
    from cloudsched.domain.responses.count import Count


def element(tag: str, *children: Markup | str, **attributes: str | float) -> Markup:
    """Return an element. Numbers have at most two decimals. An attribute is named as `class_` or `fill_opacity`."""
    written = "".join(
        [f' {name.strip("_").replace("_", "-")}="{_write_value(value)}"' for name, value in attributes.items()]
    )
    inside = "".join([child if isinstance(child, Markup) else escape(show_unseen(child)) for child in children])
    return Markup(f"<{tag}{written}>{inside}</{tag}>")  # noqa: S704 - names of ours, and escaped values


def _write_value(value: str | float) -> str | int:
    if isinstance(value, str):
        return escape(show_unseen(value))
    if isinstance(value, int):
        return value
    return f"{value:.2f}".rstrip("0").rstrip(".")


def percent(fraction: float) -> str:
    """Return a part of the width, such as ``12.5%``."""
    return f"{min(1.0, max(0.0, fraction)) * 100:.2f}%"


_HEIGHT: Final = 44
_LEAST: Final = 3
"""In pixels: the height of what is little."""
_GAP: Final = 0.06
"""The empty part of a bar's place on each side, so that bars stand apart."""
_KINDS: Final = {
    "failed": ("f-fail", "failed"),
    "ran": ("f-past", "succeeded"),
    "skipped": ("skipbar", SKIPPED),
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
            yield RunNumber(css, count.value, count.write(word, word), f"{path}?{urlencode(query)}")

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


def draw_bars(places: Sequence[tuple[float, float, RunPart]], most: int, name: str, visit: Visit) -> Markup:
    """Return the bars of parts, each between two places from 0 to 1, on a scale up to `most`.

    The Tab key passes over the links: the numbers beside the chart are links, too, and so is each row of a day.
    """
    scenery = [element("line", class_="base", x1=0, x2="100%", y1=_HEIGHT, y2=_HEIGHT)]
    links = []
    for left, right, part in places:
        width = right - left
        top = float(_HEIGHT)
        for number in part.list_numbers(visit):
            tall = min(max(_LEAST, _HEIGHT * number.value / max(most, 1)), top)
            top -= tall
            x, wide = percent(left + _GAP * width), percent(width * (1 - 2 * _GAP))
            piece = element("rect", class_=number.css, x=x, width=wide, y=top, height=tall)
            said = element("title", f"{visit.moment(part.start).clock} {number.words}")
            links.append(element("a", said, piece, href=number.href, class_="b", tabindex="-1"))
        if part.start <= visit.now < part.end:
            place = left + width * ((visit.now - part.start) / (part.end - part.start))
            scenery.append(element("line", class_="nowl", x1=percent(place), x2=percent(place), y1=0, y2=_HEIGHT))
    hidden = element("g", *scenery, aria_hidden="true")
    return element("svg", *links, hidden, class_="c", height=_HEIGHT, role="group", aria_label=name)


_LOOKS = {
    "SUCCEEDED": "f-past",
    "RUNNING": "f-run",
    "WAITING": "hatched",
    "SUSPENDED": "hatched",
    "CANCELLED": "skipbar",
}
"""The looks of bars by their status. All others have failed."""


def find_span(record: Json, now: datetime) -> tuple[datetime, datetime]:
    """Return the axis of a run: from when it was due, or began if that was earlier, to its end or to now."""
    due = parse_instant(record["scheduledFor"])
    start = min(due, find_instant(record, "startedAt") or due)
    return start, max(start, find_instant(record, "finishedAt") or now)


def list_rows(record: Json, now: datetime) -> list[Json]:
    """Return the rows: the handler with its attempts, then each step. Nothing is drawn of the time between attempts."""
    bars = [(each, _LOOKS.get(each["status"], "f-fail")) for each in record["attempts"]]
    if began := record.get("attemptStartedAt"):
        end = record.get("leaseUntil") or record.get("finishedAt")
        bars.append(({"startedAt": began, "finishedAt": end}, _LOOKS.get(record["status"], "f-fail")))
    run = {"number": 0, "kind": "runs", "name": "The handler", "status": record["status"]}
    rows = [{**run, "bars": bars, "took": write_took(record, now)}]
    for step in record.get("steps", ()):
        kind = step["kind"].lower()
        look = "hatched" if step["kind"] in {"SLEEP", "EVENT"} else _LOOKS.get(step["status"], "f-fail")
        named = {"kind": kind, "name": step.get("name") or kind, "took": write_took(step, now)}
        rows.append({**step, **named, "bars": [(step, look)]})
    span = find_span(record, now)
    return [{**row, "chart": _draw(row["bars"], *span)} for row in rows]


def _draw(bars: Iterable[tuple[Json, str]], start: datetime, end: datetime) -> Markup:
    """Return bars on the axis, each at least three pixels wide. Failures are half as high, and lower."""
    length = max(end - start, timedelta(milliseconds=1))
    marks = []
    for part, css in bars:
        begin = min(max(parse_instant(part["startedAt"]), start), end)
        finish = min(max(find_instant(part, "finishedAt") or end, begin), end)
        share = (finish - begin) / length
        shape: dict[str, str | float] = {"y": 17, "height": 9} if css == "f-fail" else {"y": 10, "height": 12}
        if css == "hatched":
            shape["fill"] = "url(#hatch)"
        width = percent(share) if share > 0.003 else "3"  # noqa: PLR2004 - three pixels at least
        marks.append(element("rect", class_=css, x=percent((begin - start) / length), width=width, **shape))
    return element("svg", *marks, class_="c", height=32, aria_hidden="true")


MARKS: Final = 12
"""The largest number of marks."""
_STEP: Final = 7
"""In pixels: from a mark to the next."""
_MARK_WIDTH: Final = 5
_LINE: Final = 12
"""In pixels: the height of the line on which they stand, and below which failures hang."""
_MARK_HEIGHT: Final = 9
_FAILURE_HEIGHT: Final = 8
_SHAPES: Final[dict[str, str]] = {
    ExecutionStatus.SKIPPED: "M{x} 5l2 2-2 2m2.5-4l2 2-2 2",
    ExecutionStatus.CANCELLED: "M{x} 9l5-5",
    ExecutionStatus.EXPIRED: "M{x} 4h5l-5 6h5z",
}
"""The outlines of what did not run."""
_FILLS: Final[dict[str, str]] = {ExecutionStatus.RUNNING: "f-run", ExecutionStatus.RETRYING: "f-retry"}


def draw_runs(statuses: Sequence[str]) -> Markup:
    """Return the marks of executions, the earliest first. The latest is at the right."""
    shown = statuses[-MARKS:]
    parts = [element("line", class_="base", x1=0, x2=_STEP * MARKS, y1=_LINE, y2=_LINE)]
    for place, status in enumerate(shown, MARKS - len(shown)):
        parts += _draw_mark(status, place * _STEP)
    return element("svg", *parts, class_="runs", role="img", aria_label=write_runs(statuses))


def write_runs(statuses: Sequence[str]) -> str:
    """Return the same in words, such as ``Last 12: 9 succeeded, 3 failed``."""
    shown = statuses[-MARKS:]
    if not shown:
        return "Nothing has run yet"
    if len(shown) == 1:
        return f"The last one: {show_status(shown[0]).word.lower()}"
    counts = Counter(show_status(each).word.lower() for each in shown)
    return f"Last {len(shown)}: {', '.join(f'{count} {word}' for word, count in counts.items())}"


def _draw_mark(status: str, left: int) -> list[Markup]:
    if status in BAD:
        return [element("rect", class_="f-fail", x=left, y=_LINE, width=_MARK_WIDTH, height=_FAILURE_HEIGHT)]
    top = _LINE - _MARK_HEIGHT
    if status == ExecutionStatus.SUSPENDED:
        hatched = element("rect", x=left, y=top, width=_MARK_WIDTH, height=_MARK_HEIGHT, fill="url(#hatch)")
        frame = element(
            "rect",
            class_="o w",
            x=left + 0.5,
            y=top + 0.5,
            width=_MARK_WIDTH - 1,
            height=_MARK_HEIGHT - 1,
            fill_opacity=0,
        )
        return [hatched, frame]
    if status in NOT_RUN_STATUSES:
        base = element("rect", class_="f-past", x=left, y=_LINE - 1, width=_MARK_WIDTH, height=1)
        return [base, element("path", class_="skipped", d=_SHAPES[status].format(x=left))]
    return [element("rect", class_=_FILLS.get(status, "f-past"), x=left, y=top, width=_MARK_WIDTH, height=_MARK_HEIGHT)]
