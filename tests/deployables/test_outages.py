"""An outage of any part is noticed: at least one alert of ours is open ten minutes after it has begun."""

from __future__ import annotations

from typing import Any

import pytest
from tests.deployables.cloud_world import HANDLERS, World
from tests.deployables.outages import OUTAGES, PAGE, Outage, notice, put, read_policies, render


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


def test_the_table_of_the_page_is_what_is_found(deployed: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Run `python -m tests.deployables.outages` after a change of a policy."""
    text = PAGE.read_text(encoding="utf-8")
    assert put(text, render(*deployed)) == text
