"""What ended, counted by the days of a zone: as the list has it, for whoever asks, at a bounded cost."""

from __future__ import annotations

from datetime import datetime

import pytest
from tests.web.callers import DAY
from tests.web.conftest import Call

from cloudsched import App, Context, Settings
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.engine.ports.search import ExecutionQuery
from cloudsched.engine.queries.overview import count_by_time
from cloudsched.engine.queries.time_parts import MAX_PARTS
from cloudsched.errors import InvalidInput
from cloudsched.testing import START, Simulation

app = App(Settings())
"""A handler that fails every third time."""


@app.handler("work", retry=0)
def work(ctx: Context) -> None:
    if ctx.scheduled_for.hour % 3 == 0:
        raise ValueError("no")


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"from": "2027-01-01T00:00:00Z", "until": "2027-07-25T00:00:00Z"},
        {"from": "2027-01-01T00:00:00Z", "until": "2027-01-11T00:00:00Z", "per": "PT1H"},
        {"from": "2027-01-01T00:00:00Z", "until": "2027-01-02T00:00:00Z", "per": "PT1S"},
        {"from": "2027-01-01T00:00:00Z", "until": "2027-01-02T00:00:00Z", "timezone": "Mars/Base"},
    ],
    ids=str,
)
def test_what_cannot_be_counted_is_refused(call: Call, query: dict[str, str]) -> None:
    """No span, too many days, no such zone."""
    assert call("GET", "/v1/executions/counts", query_string=query).status_code == 400


@pytest.mark.parametrize("more", [{}, {"handler": "work"}], ids=str)
def test_a_time_without_length_has_no_parts(call: Call, more: dict[str, str]) -> None:
    """It is an answer, and no fault."""
    at = "2027-01-01T09:00:00Z"
    answer = call("GET", "/v1/executions/counts", query_string={"from": at, "until": at, **more})
    assert (answer.status_code, answer.json) == (200, {"parts": []})


def test_days_of_every_zone_lie_side_by_side(sim: Simulation) -> None:
    """Also where clocks change at midnight, or a whole day is skipped: nothing is counted twice, nothing left out."""
    search = sim.app.container.store.search
    for name, year, month in (("Pacific/Apia", 2011, 12), ("America/Havana", 2027, 3), ("Asia/Beirut", 2027, 3)):
        zone = load_tzinfo(name)
        start = datetime(year, month, 10, tzinfo=zone)
        days = count_by_time(search, ExecutionQuery(), start, start + 30 * DAY, zone).parts
        starts = [each.start for each in days]
        assert starts == sorted(set(starts))
        found = [(at.astimezone(zone).date() - start.date()).days for at in starts]
        assert found == [each for each in range(30) if (name, each) != ("Pacific/Apia", 20)]
        assert len(days) <= MAX_PARTS
    with pytest.raises(InvalidInput):
        count_by_time(search, ExecutionQuery(), START, START + 400 * DAY, load_tzinfo("UTC"))
