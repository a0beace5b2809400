"""Cloud Monitoring's side of the alerts: which policy fires over which log lines and metrics.

It reads the policies and log-based metrics as Google documents them (cloud.google.com/logging/docs/view/
logging-query-language, cloud.google.com/monitoring/api/v3/filters, cloud.google.com/monitoring/alerts/
concepts-indepth), and as much of that as ours use: whatever else a filter or a policy says is an error here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

DELAY: Final = timedelta(minutes=3)
"""How late every point is seen: Google samples these metrics each minute, and shows them up to two minutes later
(cloud.google.com/monitoring/api/metrics_gcp)."""

_LOG_TERM = re.compile(r'\s*([A-Za-z_.]+)(>=|<=|=~|=|>|<)(?:"((?:[^"\\]|\\.)*)"|\(([^)]*)\)|([0-9.]+))')
_METRIC_TERM = re.compile(r'\s*(?:AND\s+)?([a-z_.]+)(!=|=)(?:"([^"]*)"|monitoring\.regex\.full_match\("([^"]*)"\))')
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


@cache
def match_point(text: str) -> Callable[[Point], bool]:
    """Return whether a point matches a filter of metrics: equalities and regular expressions joined by AND."""
    terms, at = [], 0
    while at < len(text):
        found = _METRIC_TERM.match(text, at)
        if found is None or (at > 0) is not found[0].lstrip().startswith("AND"):
            raise Unsupported(f"{text[at:]!r} in a filter of metrics")
        path, compares, wanted, pattern = found.groups()
        terms.append((path, compares == "=", re.compile(re.escape(wanted) if pattern is None else pattern)))
        at = found.end()
    if [path for path, *_ in terms[:2]] != ["metric.type", "resource.type"]:
        raise Unsupported(f"{text!r}: a policy's filter names a type of metric and of resource")

    def matches(point: Point) -> bool:
        own = {"metric.type": point.metric, "resource.type": point.resource, **point.labels}
        return all((pattern.fullmatch(own.get(path, "")) is not None) is is_equal for path, is_equal, pattern in terms)

    return matches


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


@dataclass(slots=True)
class Series:
    """All points so far, each kind apart."""

    points: dict[str, list[Point]] = field(default_factory=lambda: defaultdict(list))

    def add(self, points: Iterable[Point]) -> None:
        for point in points:
            self.points[point.metric].append(point)

    def select(self, text: str, since: datetime, until: datetime) -> list[Point]:
        """Return the points that match a filter, later than `since`, up to `until`."""
        matches = match_point(text)
        metric = text.split('"')[1]
        return [point for point in self.points[metric] if since < point.at <= until and matches(point)]


def find_alerts(policies: Mapping[str, Mapping[str, Any]], series: Series, now: datetime) -> set[str]:
    """Return the policies that have an open incident: by the points that can be seen now."""
    return {key for key, policy in policies.items() if _is_open(policy, series, now - DELAY)}


def _is_open(policy: Mapping[str, Any], series: Series, seen: datetime) -> bool:
    known = {"displayName", "severity", "combiner", "documentation", "conditions", "userLabels", "notificationChannels"}
    if set(policy) - known or policy["combiner"] not in {"OR", "AND"}:
        raise Unsupported(f"{set(policy) - known} {policy['combiner']}")
    combine = any if policy["combiner"] == "OR" else all
    return combine([_is_met(condition, series, seen) for condition in policy["conditions"]])


def _is_met(condition: Mapping[str, Any], series: Series, seen: datetime) -> bool:
    (kind,) = set(condition) - {"displayName"}
    body = condition[kind]
    if kind == "conditionAbsent":
        _require(body, {"filter", "aggregations", "duration", "trigger"})
        silence = _seconds(body["duration"])
        before = series.select(body["filter"], seen - timedelta(hours=24), seen - silence)
        # It needs one measurement first: what never came is not absent.
        return bool(before) and not series.select(body["filter"], seen - silence, seen)
    if kind != "conditionThreshold":
        raise Unsupported(kind)
    required = {"filter", "aggregations", "comparison", "thresholdValue", "duration", "trigger"}
    _require(body, required | ({"denominatorFilter", "denominatorAggregations"} & set(body)))
    if body["comparison"] != "COMPARISON_GT" or body["duration"] != "0s":
        raise Unsupported(f"{body['comparison']} for {body['duration']}")
    values = _sum(series, body["filter"], body["aggregations"], seen)
    if "denominatorFilter" in body:
        whole = _sum(series, body["denominatorFilter"], body["denominatorAggregations"], seen)
        values = {group: value / whole[group] for group, value in values.items() if whole.get(group)}
    return any(value > body["thresholdValue"] for value in values.values())


def _sum(
    series: Series, text: str, aggregations: list[Mapping[str, Any]], seen: datetime
) -> dict[tuple[str, ...], float]:
    (aggregation,) = aggregations
    _require(
        aggregation,
        {"alignmentPeriod", "perSeriesAligner", "crossSeriesReducer"} | {"groupByFields"} & set(aggregation),
    )
    if (aggregation["perSeriesAligner"], aggregation["crossSeriesReducer"]) != ("ALIGN_DELTA", "REDUCE_SUM"):
        raise Unsupported(str(aggregation))
    sums: dict[tuple[str, ...], float] = defaultdict(float)
    for point in series.select(text, seen - _seconds(aggregation["alignmentPeriod"]), seen):
        sums[tuple(point.labels.get(path, "") for path in aggregation.get("groupByFields", ()))] += point.value
    return sums


def _require(body: Mapping[str, Any], known: set[str]) -> None:
    if set(body) != known or body.get("trigger", {"count": 1}) != {"count": 1}:
        raise Unsupported(f"{sorted(set(body) ^ known)} {body.get('trigger')}")


def _seconds(text: str) -> timedelta:
    return timedelta(seconds=float(text.removesuffix("s")))
