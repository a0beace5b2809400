"""Cloud Monitoring's metrics: what our log-based metrics count, and when a point of a metric is seen.

Filters are read as Google documents them (cloud.google.com/logging/docs/view/logging-query-language), and as much of
that as ours use: whatever else one says is an error here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final
from zlib import crc32

MINUTE: Final = timedelta(minutes=1)
LATEST_LOG: Final = 10 * MINUTE
"""How late a log-based metric may be: "it may take up to 10 minutes to update the logs-based metrics in Cloud
Monitoring" (cloud.google.com/logging/docs/logs-based-metrics/troubleshooting)."""
LATEST_SERVICE: Final = 3 * MINUTE
"""How late the metrics of Cloud Run and Cloud Tasks may be: they are sampled each minute, and seen up to two minutes
later (cloud.google.com/monitoring/api/metrics_gcp)."""

_LOG_TERM = re.compile(r'\s*([A-Za-z_.]+)(>=|<=|=~|=|>|<)(?:"((?:[^"\\]|\\.)*)"|\(([^)]*)\)|([0-9.]+))')
_EXTRACT = re.compile(r"EXTRACT\(([A-Za-z_.]+)\)")
_LOG_METRIC = "logging.googleapis.com/user/"


class Unsupported(Exception):
    """A policy or a filter says something that is not interpreted here."""


@dataclass(frozen=True, slots=True)
class Point:
    """A count of one metric at one instant."""

    at: datetime
    metric: str
    resource: str
    labels: Mapping[str, str]
    """By ``metric.labels.NAME`` and ``resource.labels.NAME``."""
    value: float = 1.0


Match = Callable[[Point], bool]
Lateness = Callable[[str, datetime], timedelta]
"""How much later than at its instant a point of a metric is seen."""


def usually(metric: str, at: datetime) -> timedelta:  # noqa: ARG001 - a `Lateness`
    """Each point is seen a minute after its instant: nothing is sampled more often."""
    return MINUTE


def at_worst(metric: str, at: datetime) -> timedelta:  # noqa: ARG001 - a `Lateness`
    """Each point is as late as Google's documents allow."""
    return LATEST_LOG if metric.startswith(_LOG_METRIC) else LATEST_SERVICE


def by_turns(metric: str, at: datetime) -> timedelta:
    """For 15 minutes each point is as late as may be, then for 15 as early, each metric at times of its own."""
    phase = crc32(metric.encode()) % 30
    return at_worst(metric, at) if (at.timestamp() // 60 + phase) % 30 < 15 else usually(metric, at)


class Series:
    """All points so far, each metric apart, in the order of their instants. What is counted is sampled each minute."""

    def __init__(self, lateness: Lateness) -> None:
        self.points: dict[str, list[Point]] = defaultdict(list)
        self._seen_at: dict[str, list[datetime]] = defaultdict(list)
        self._places: dict[Any, int] = {}
        self._lateness = lateness

    def add(self, points: Iterable[Point]) -> None:
        for point in points:
            at = point.at + (datetime.min.replace(tzinfo=point.at.tzinfo) - point.at) % MINUTE
            listed, key = self.points[point.metric], (point.metric, point.resource, at, *sorted(point.labels.items()))
            if key in self._places:
                same = listed[self._places[key]]
                listed[self._places[key]] = replace(same, value=same.value + point.value)
                continue
            self._places[key] = len(listed)
            listed.append(replace(point, at=at))
            self._seen_at[point.metric].append(at + self._lateness(point.metric, at))

    def select(self, metric: str, matches: Match, period: timedelta, now: datetime) -> list[Point]:
        """Return the points of the period that ends now which match, and can be seen by now."""
        points, seen_at = self.points[metric], self._seen_at[metric]
        first = bisect_right(points, now - period, key=lambda point: point.at)
        return [points[at] for at in range(first, len(points)) if seen_at[at] <= now and matches(points[at])]


@cache
def match_log(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether an entry of the log matches a filter: comparisons, all of which must hold."""
    terms: list[tuple[str, str, Any]] = []
    at = 0
    while at < len(text.rstrip()):
        found = _LOG_TERM.match(text, at)
        if found is None:
            raise Unsupported(f"{text[at:]!r} in a filter of logs")
        path, compares, one, several, number = found.groups()
        if several is not None:
            choices = re.findall(r'"([^"]*)"', several)
            if compares != "=" or several.split(" OR ") != [f'"{each}"' for each in choices]:
                raise Unsupported(f"({several}) in a filter of logs")
            terms.append((path, "in", choices))
        else:
            terms.append((path, compares, float(number) if number is not None else one))
        at = found.end()
    return lambda entry: all(_compare(_look_up(entry, path), how, wanted) for path, how, wanted in terms)


def _look_up(entry: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - whatever the line has
    found: Any = entry
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _compare(value: Any, how: str, wanted: Any) -> bool:  # noqa: ANN401 - whatever the line has
    if value is None:  # a field that is missing matches nothing
        return False
    match how:
        case "in":
            return value in wanted
        case "=~":
            return re.search(wanted, value) is not None
        case "=":
            return bool(value == wanted)
        case ">" | ">=" | "<" | "<=":
            if not isinstance(value, int | float) or not isinstance(wanted, float):
                return False
            return {">": value > wanted, ">=": value >= wanted, "<": value < wanted, "<=": value <= wanted}[how]
    raise Unsupported(how)


def count_line(
    metrics: Mapping[str, Mapping[str, Any]], name: str, entry: Mapping[str, Any], at: datetime
) -> list[Point]:
    """Return the points that an entry of the log adds to the log-based metrics of a deployment."""
    points = []
    for key, metric in metrics.items():
        if not match_log(metric["filter"])(entry):
            continue
        labels = {f"resource.labels.{label}": value for label, value in entry["resource"]["labels"].items()}
        for label, extractor in metric.get("labels", {}).items():
            found = _EXTRACT.fullmatch(extractor)
            if found is None:
                raise Unsupported(extractor)
            labels[f"metric.labels.{label}"] = str(_look_up(entry, found[1]) or "")
        points.append(Point(at, f"{_LOG_METRIC}{name}-{key}", entry["resource"]["type"], labels))
    return points
