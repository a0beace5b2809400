"""An outage of any part is noticed, notifies once for each alert, and is over when the part is mended."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cache

import pytest
from tests.deployables.alerting import Monitoring
from tests.deployables.cloud_world import HANDLERS, NAME, WATCHES, World
from tests.deployables.outages import AFTER, MOUNTED, OUTAGES, PAGE, Outage, Story, put, read_policies, render, tell
from tests.deployables.series import MINUTE, Lateness, Point, at_worst, count_line, usually
from tests.instants import HOUR

from cloudsched.testing import START


@cache
def tell_once(outage: Outage) -> dict[Lateness, list[Story]]:
    """Each outage is simulated once for all tests."""
    return tell(outage, *read_policies())


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda outage: outage.part)
def test_each_of_two_outages_is_noticed_notifies_once_and_ends(outage: Outage) -> None:
    """Within 15 minutes, or 20 if metrics are as late as may be. No alert notifies twice, none stays, and again so."""
    for who, told in tell_once(outage).items():
        for story in told:
            assert min(story.noticed.values()) <= (15 if who is usually else 20), who
            assert set(story.notified.values()) <= {0, 1}, who
            assert story.lasted < AFTER
        first, second = ({key for key, times in story.notified.items() if times} for story in told)
        assert first & second


@pytest.mark.parametrize("mounted", ["", MOUNTED])
def test_a_healthy_deployment_is_silent_and_at_work(mounted: str) -> None:
    """Two hours without a fault open no alert, however late metrics are, although everything runs that alerts watch."""
    with World(*read_policies(mounted), mounted).opened() as world:
        world.run(120)
        for who in WATCHES:
            assert not any(incident.opened for incident in world.watches[who].incidents.values()), who
        assert set(world.statuses) == {("execute", 200), ("sweep", 200), ("api", 404)}
        assert world.statuses["sweep", 200] == 120
        assert world.statuses["execute", 200] >= HANDLERS * 59
        started = sum(point.value for point in world.points() if point.metric.endswith("-started"))
        assert started == world.statuses["execute", 200]


@pytest.mark.parametrize(
    ("part", "alerts"),
    [
        ("the functions lose `roles/datastore.user`", {"executor", "api-errors", "sweep-silent"}),
        ("half of all handlers fail", {"failing", "handler"}),
    ],
)
def test_a_mounted_service_has_the_same_alerts(part: str, alerts: set[str]) -> None:
    """Its name in MOUNTED_SERVICES is enough."""
    (outage,) = (each for each in OUTAGES if each.part == part)
    for told in tell(outage, *read_policies(MOUNTED), MOUNTED).values():
        assert all(alerts <= set(story.noticed) for story in told)


def end_runs(handler: str, succeeded: int, failed: int) -> list[Point]:
    """Return what the log-based metrics count when runs of a handler end."""
    metrics = read_policies()[1]
    return [
        point
        for action, times in (("succeeded", succeeded), ("failed", failed))
        for _ in range(times)
        for point in count_line(
            metrics,
            NAME,
            {
                "resource": {"type": "cloud_run_revision", "labels": {"service_name": f"{NAME}-execute"}},
                "jsonPayload": {"action": action, "handler": handler},
            },
            START,
        )
    ]


@pytest.mark.parametrize(
    ("runs", "is_bad"),
    [
        ([("busy", 997, 3), ("rare", 0, 1)], False),
        ([("busy", 997, 3), ("rare", 0, 3)], True),
        ([("rare", 1, 2)], False),
        ([("odd", 3, 3)], False),
    ],
)
def test_the_failures_and_their_share_are_of_one_handler(runs: list[tuple[str, int, int]], is_bad: bool) -> None:  # noqa: FBT001 - a case
    """One handler that fails often, and another that fails seldom but always, are two handlers without an alert."""
    watch = Monitoring({"handler": read_policies()[0]["handler"]}, usually)
    for run in runs:
        watch.series.add(end_runs(*run))
    for minute in range(60):
        watch.look(START + minute * MINUTE)
    assert bool(watch.incidents["handler"].opened) is is_bad
    assert not watch.list_open()


def test_a_sweep_that_stays_silent_stays_an_incident() -> None:
    """Who looks after three days still sees it. It ends when the sweep runs again."""
    watch = Monitoring({"sweep-silent": read_policies()[0]["sweep-silent"]}, at_worst)
    swept = Point(START, f"logging.googleapis.com/user/{NAME}-swept", "cloud_run_revision", {})
    watch.series.add([swept])
    for hour in range(1, 72):
        watch.look(START + timedelta(hours=hour))
        assert watch.list_open() == {"sweep-silent"}
    back = START + 72 * HOUR
    watch.series.add([replace(swept, at=back)])
    watch.look(back + timedelta(minutes=10))
    assert not watch.list_open()
    assert len(watch.incidents["sweep-silent"].opened) == 1


def test_the_table_of_the_page_is_what_is_found() -> None:
    """Run `python -m tests.deployables.outages` after a change of a policy."""
    text = PAGE.read_text("utf-8")
    assert put(text, render({outage: tell_once(outage) for outage in OUTAGES})) == text
