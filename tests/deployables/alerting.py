"""Cloud Monitoring's side of the alerts: when a policy opens an incident over its metrics, and when that ends.

It reads policies as Google documents them (cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.alertPolicies,
cloud.google.com/monitoring/api/v3/filters, cloud.google.com/monitoring/alerts/concepts-indepth, and for PromQL
cloud.google.com/monitoring/alerts/using-promql), and as much of that as ours use: whatever else one says is an error.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from tests.deployables.series import Lateness, Match, Point, Series, Unsupported
from tests.instants import DAY, MINUTE

AUTO_CLOSE: Final = (30 * MINUTE, 7 * DAY)
"""The shortest and the longest time after which Google closes an incident that has no data. The longest is the default.
"""
_KINDS: Final = {
    "conditionThreshold": {"filter", "aggregations", "comparison", "thresholdValue", "duration", "trigger"},
    "conditionAbsent": {"filter", "aggregations", "duration", "trigger"},
    "conditionPrometheusQueryLanguage": {"query", "duration", "evaluationInterval"},
}
"""What each kind of condition has to say, for this model."""
_OPTIONAL: Final = {
    "conditionThreshold": {"denominatorFilter", "denominatorAggregations", "evaluationMissingData"},
    "conditionPrometheusQueryLanguage": {"disableMetricValidation"},
}
_SHORTEST: Final = {"conditionThreshold": 0, "conditionAbsent": 120, "conditionPrometheusQueryLanguage": 0}
"""The shortest `duration`, in seconds."""
_AGGREGATION: Final = {"alignmentPeriod", "perSeriesAligner", "crossSeriesReducer"}
_METRIC_TERM = re.compile(r'\s*(?:AND\s+)?([a-z_.]+)(!=|=)(?:"([^"]*)"|monitoring\.regex\.full_match\("([^"]*)"\))')
_SUM = r"sum(?: by \((\w+)\))?\(increase\(\{([^{}]*)\}\[(\d+)m\]\)\)"
_CLAUSE = re.compile(rf"{_SUM}(?: / {_SUM})? (>=|>) ([0-9.]+)")
_LABEL = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"(?:,|$)')

Condition = Callable[[Series, datetime], bool | None]
"""Whether a condition is met now. None without data."""
Sums = dict[str, float]


def check_policy(policy: Mapping[str, Any]) -> None:
    """Refuse what Cloud Monitoring refuses, as far as its reference says so.

    Raises:
        ValueError: It is refused.
    """
    closes = policy.get("alertStrategy", {}).get("autoClose")
    if closes is not None and not AUTO_CLOSE[0] <= read_seconds(closes) <= AUTO_CLOSE[1]:
        raise ValueError(f"alertStrategy.autoClose is {closes}; it must be between 30 minutes and 7 days")
    for condition in policy["conditions"]:
        (kind,) = set(condition) - {"displayName"}
        body = condition[kind]
        duration = read_seconds(body["duration"]).total_seconds()
        if duration % 60 or duration < _SHORTEST[kind]:
            raise ValueError(f"{kind}.duration is {body['duration']}")
        missing = body.get("evaluationMissingData")
        if missing is not None and kind != "conditionThreshold":
            raise ValueError(f"{kind} has no field evaluationMissingData")
        if missing is not None and duration < 60:
            raise ValueError("to use evaluationMissingData, the duration must be 60 seconds or more")
        if body.get("comparison", "COMPARISON_GT") not in {"COMPARISON_GT", "COMPARISON_LT"}:
            raise ValueError(f"only COMPARISON_LT and COMPARISON_GT are supported, not {body['comparison']}")
        interval = read_seconds(body.get("evaluationInterval", "30s")).total_seconds()
        if interval <= 0 or interval % 30:
            raise ValueError(f"evaluationInterval is {interval} s; it must be a positive multiple of 30")


class Monitoring:
    """The policies of a deployment, and the points that Cloud Monitoring has by now.

    Args:
        policies: The policies, by their keys.
        lateness: How late points are seen.
    """

    def __init__(self, policies: Mapping[str, Mapping[str, Any]], lateness: Lateness) -> None:
        self.series = Series(lateness)
        self.incidents = {key: Incident(policy) for key, policy in policies.items()}

    def look(self, now: datetime) -> None:
        """Evaluate each policy, as Cloud Monitoring does once a minute."""
        for incident in self.incidents.values():
            incident.look(self.series, now)

    def list_open(self) -> set[str]:
        return {key for key, incident in self.incidents.items() if incident.is_open}


class Incident:
    """The incidents of a policy, of which one can be open at a time.

    * It opens once the condition has been met at each look for the condition's duration. That notifies, once.
    * It ends when the condition is not met. Without data that is as `evaluationMissingData` says: by default nothing
      changes.
    * It ends when there have been no data for `autoClose`, and opens again only after data have come.
    """

    def __init__(self, policy: Mapping[str, Any]) -> None:
        known = {"displayName", "severity", "combiner", "documentation", "conditions", "userLabels"}
        known |= {"notificationChannels", "alertStrategy"}
        if set(policy) - known or policy["combiner"] != "OR" or len(policy["conditions"]) != 1:
            raise Unsupported(f"{sorted(set(policy) - known)} {policy['combiner']}: one condition, and nothing else")
        check_policy(policy)
        (condition,) = policy["conditions"]
        (kind,) = set(condition) - {"displayName"}
        body = condition[kind]
        if not _KINDS[kind] <= set(body) <= _KINDS[kind] | _OPTIONAL.get(kind, set()):
            raise Unsupported(f"{sorted(set(body) ^ _KINDS[kind])}")
        if body.get("trigger", {"count": 1}) != {"count": 1}:
            raise Unsupported(str(body["trigger"]))
        self._condition = _READERS[kind](body)
        # An absence has its duration in what it looks at.
        self._duration = timedelta(0) if kind == "conditionAbsent" else read_seconds(body["duration"])
        self._is_absence = kind == "conditionAbsent"
        self._ends_without_data = body.get("evaluationMissingData") == "EVALUATION_MISSING_DATA_INACTIVE"
        self._auto_close = read_seconds(policy.get("alertStrategy", {}).get("autoClose", "604800s"))
        self._met_since: datetime | None = None
        self._silent_since: datetime | None = None
        self._waits_for_data = False
        self.is_open = False
        self.opened: list[datetime] = []
        """When it has opened."""

    def look(self, series: Series, now: datetime) -> None:
        found = self._condition(series, now)
        is_silent = found is None or (self._is_absence and found)
        if not is_silent:
            self._silent_since, self._waits_for_data = None, False
        elif self._silent_since is None:
            self._silent_since = now
        if found is None and not self._ends_without_data:
            found = self._met_since is not None
        self._met_since = (self._met_since or now) if found else None
        if self.is_open and self._silent_since is not None and now - self._silent_since >= self._auto_close:
            self._waits_for_data = True
        was_open = self.is_open
        is_met = self._met_since is not None and now - self._met_since >= self._duration
        self.is_open = is_met and not self._waits_for_data
        if self.is_open and not was_open:
            self.opened.append(now)


def _read_threshold(body: Mapping[str, Any]) -> Condition:
    """Read a comparison of a sum, or of the ratio of two, with a threshold."""
    if body["comparison"] != "COMPARISON_GT":
        raise Unsupported(body["comparison"])
    metric, matches = body["filter"].split('"')[1], match_point(body["filter"])
    period = _read_period(body["aggregations"])
    whole = body.get("denominatorFilter", body["filter"])
    if "denominatorFilter" in body and _read_period(body["denominatorAggregations"]) != period:
        raise Unsupported("a ratio of two periods")

    def is_met(series: Series, now: datetime) -> bool | None:
        found = series.select(metric, matches, period, now)
        all_ = series.select(whole.split('"')[1], match_point(whole), period, now)
        if not found or not all_:
            return None
        value = sum(point.value for point in found)
        if "denominatorFilter" in body:
            value /= sum(point.value for point in all_)
        return bool(value > body["thresholdValue"])

    return is_met


def _read_absence(body: Mapping[str, Any]) -> Condition:
    """Read the silence of a metric. What has never come is not silent."""
    metric, matches = body["filter"].split('"')[1], match_point(body["filter"])
    _read_period(body["aggregations"])
    silence = read_seconds(body["duration"])

    def is_silent(series: Series, now: datetime) -> bool:
        is_known = bool(series.select(metric, matches, now - datetime.min.replace(tzinfo=now.tzinfo), now))
        return is_known and not series.select(metric, matches, silence, now)

    return is_silent


def _read_period(aggregations: list[Mapping[str, Any]]) -> timedelta:
    (aggregation,) = aggregations
    told = (aggregation["perSeriesAligner"], aggregation["crossSeriesReducer"])
    if set(aggregation) != _AGGREGATION or told != ("ALIGN_DELTA", "REDUCE_SUM"):
        raise Unsupported(str(aggregation))
    return read_seconds(aggregation["alignmentPeriod"])


def _read_query(body: Mapping[str, Any]) -> Condition:
    """Read comparisons of sums, or of ratios of two, all of which must hold for the same label.

    What has no data is in no result, and a result without a series is not met (prometheus.io/docs/prometheus/latest/
    querying/operators). Increases are exact here; Prometheus may take one for a little more.
    """
    clauses = [_CLAUSE.fullmatch(clause) for clause in body["query"].split(" and ")]
    if None in clauses:
        raise Unsupported(body["query"])
    tests = [_read_clause(*clause.groups()) for clause in clauses if clause is not None]

    def is_met(series: Series, now: datetime) -> bool:
        return bool(set.intersection(*(test(series, now) for test in tests)))

    return is_met


def _read_clause(*told: str | None) -> Callable[[Series, datetime], set[str]]:
    """Read one comparison: for which values of its label it holds."""
    above = _read_sum(*told[:3])
    below = None if told[5] is None else _read_sum(*told[3:6])
    if below is not None and told[0] != told[3]:
        raise Unsupported("a ratio by two labels")
    is_equal_enough, limit = told[6] == ">=", float(str(told[7]))

    def find(series: Series, now: datetime) -> set[str]:
        values = above(series, now)
        if below is not None:
            whole = below(series, now)
            values = {group: value / whole[group] for group, value in values.items() if whole.get(group)}
        return {group for group, value in values.items() if value > limit or (is_equal_enough and value == limit)}

    return find


def _read_sum(by: str | None, selector: str | None, minutes: str | None) -> Callable[[Series, datetime], Sums]:
    labels = _LABEL.findall(selector or "")
    if "".join(f'{name}{how}"{value}",' for name, how, value in labels).rstrip(",") != selector:
        raise Unsupported(f"{{{selector}}}")
    (metric,) = (value for name, _, value in labels if name == "__name__")
    wanted = [
        (name, how in {"=", "=~"}, re.compile(value if "~" in how else re.escape(value)))
        for name, how, value in labels
        if name != "__name__"
    ]
    if [name for name, *_ in wanted][:1] != ["monitored_resource"] and "cloudtasks" not in metric:
        raise Unsupported(f"{selector}: a log-based metric may be of several resources")

    def matches(point: Point) -> bool:
        return all(
            (pattern.fullmatch(_get_label(point, name)) is not None) is is_like for name, is_like, pattern in wanted
        )

    def add(series: Series, now: datetime) -> Sums:
        sums: Sums = defaultdict(float)
        for point in series.select(metric, matches, timedelta(minutes=int(str(minutes))), now):
            sums[_get_label(point, by) if by else ""] += point.value
        return sums

    return add


def _get_label(point: Point, name: str) -> str:
    """Return a label under the name that it has in PromQL."""
    if name == "monitored_resource":
        return point.resource
    return point.labels.get(f"metric.labels.{name}") or point.labels.get(f"resource.labels.{name}", "")


@cache
def match_point(text: str) -> Match:
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


def read_seconds(text: str) -> timedelta:
    """Return a duration, as Google's JSON has it."""
    return timedelta(seconds=float(text.removesuffix("s")))


_READERS: Final = {
    "conditionThreshold": _read_threshold,
    "conditionAbsent": _read_absence,
    "conditionPrometheusQueryLanguage": _read_query,
}
