"""An outage of any part is noticed: at least one alert of ours is open ten minutes after it has begun."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.deployables.alerting import Point, Series, Unsupported, find_alerts, match_log, match_point
from tests.deployables.cloud_world import HANDLERS, World
from tests.deployables.outages import BEFORE, OUTAGES, PAGE, Outage, notice, put, read_policies, render

from cloudsched.testing import START


@pytest.fixture(name="deployed", scope="module")
def render_policies() -> tuple[dict[str, Any], dict[str, Any]]:
    """The policies and metrics that infra/deploy.sh applies."""
    return read_policies()


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda outage: outage.part)
def test_an_outage_opens_an_alert_within_ten_minutes(
    deployed: tuple[dict[str, Any], dict[str, Any]], outage: Outage
) -> None:
    """Nothing is open before a part breaks; within ten minutes something is, and stays."""
    found = notice(outage, *deployed)
    assert found[-1]
    opened = next(minute for minute, alerts in enumerate(found) if alerts)
    assert all(found[opened:])


def test_a_healthy_deployment_is_silent_and_at_work(deployed: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """An hour without a fault opens no alert, although everything runs that the alerts watch."""
    with World(*deployed).opened() as world:
        assert not any(world.run(60))
        assert set(world.statuses) == {("execute", 200), ("sweep", 200)}
        assert world.statuses["sweep", 200] == 60
        assert world.statuses["execute", 200] >= HANDLERS * 29
        started = [point for point in world.points() if point.metric.endswith("-started")]
        assert len(started) == world.statuses["execute", 200]


def test_an_end_of_the_outage_ends_the_alert(deployed: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """When the executor answers again, what was due runs; then only the goal of the hour is missed."""
    with World(*deployed).opened() as world:
        world.run(BEFORE)
        world.executor_status = 503
        assert world.run(10)[-1] >= {"executor", "overdue"}
        world.executor_status = 200
        assert world.run(30)[-1] <= {"error-budget"}


def test_the_table_of_the_page_is_what_is_found(deployed: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Run `python -m tests.deployables.outages` after a change of a policy."""
    text = PAGE.read_text(encoding="utf-8")
    assert put(text, render(*deployed)) == text


def test_what_is_not_interpreted_is_an_error() -> None:
    """A filter or a policy that says more than the interpreter understands fails, and is never taken for less."""
    for text in ('jsonPayload.a="b" OR jsonPayload.c="d"', "NOT severity=ERROR", 'jsonPayload.a:"b"'):
        with pytest.raises(Unsupported):
            match_log(text)
    for text in ('metric.type="a"', 'metric.type="a" AND resource.type="b" OR metric.labels.c="d"'):
        with pytest.raises(Unsupported):
            match_point(text)
    condition = {"filter": 'metric.type="a" AND resource.type="b"', "comparison": "COMPARISON_LT"}
    policy = {"combiner": "OR", "conditions": [{"displayName": "", "conditionThreshold": condition}]}
    with pytest.raises(Unsupported):
        find_alerts({"one": policy}, Series(), START)


def test_conditions_group_and_divide_by_their_labels() -> None:
    """A ratio is one of each group; a group without a whole has none; a point is seen three minutes later."""
    whole = 'metric.type="whole" AND resource.type="r"'
    by_handler = {
        "alignmentPeriod": "600s",
        "perSeriesAligner": "ALIGN_DELTA",
        "crossSeriesReducer": "REDUCE_SUM",
        "groupByFields": ["metric.labels.handler"],
    }
    condition = {
        "filter": 'metric.type="part" AND resource.type="r"',
        "aggregations": [by_handler],
        "denominatorFilter": whole,
        "denominatorAggregations": [by_handler],
        "comparison": "COMPARISON_GT",
        "thresholdValue": 0.5,
        "duration": "0s",
        "trigger": {"count": 1},
    }
    policies = {"one": {"combiner": "OR", "conditions": [{"displayName": "", "conditionThreshold": condition}]}}

    def look(*counts: tuple[str, str, int], minutes: int = 5) -> set[str]:
        series = Series()
        series.add(Point(START, metric, "r", {"metric.labels.handler": handler}, n) for metric, handler, n in counts)
        return find_alerts(policies, series, START + timedelta(minutes=minutes))

    assert look(("part", "a", 2), ("whole", "a", 3)) == {"one"}
    assert look(("part", "a", 2), ("whole", "a", 3), minutes=2) == set()
    assert look(("part", "a", 2), ("whole", "a", 3), minutes=14) == set()
    assert look(("part", "a", 2), ("whole", "a", 3), ("whole", "b", 9)) == {"one"}
    assert look(("part", "a", 1), ("whole", "a", 3), ("part", "b", 1), ("whole", "b", 3)) == set()
    assert look(("part", "a", 2), ("whole", "b", 1)) == set()
