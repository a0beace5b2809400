"""A service goes on at once when its machine's clock is set, and when the machine wakes up after it slept.

A machine that slept is one whose wall clock has gone on while the monotonic clock stood still.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.harness import wait_until
from tests.instants import HOUR, SECOND

from cloudsched import App, Context
from cloudsched.adapters import in_process_queue
from cloudsched.adapters.clocks import SystemClock
from cloudsched.config.access import Access
from cloudsched.config.settings import Settings
from cloudsched.local import maintenance
from cloudsched.local.service import run_service


class SteppedClock:
    """The system's clock, set forward or back."""

    step = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.step


@pytest.mark.parametrize("hours", [2, -2])
@pytest.mark.parametrize("threads", [1, 8])
def test_what_is_due_runs_after_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int, threads: int
) -> None:
    """What is created after the step, what was due in the time that was skipped, and what is due again and again.

    A step back repeats nothing: what has run stays as it is.
    """
    clock, app, ran = SteppedClock(), App(), list[str]()
    monkeypatch.setattr(SystemClock, "now", clock.now)
    for module in (in_process_queue, maintenance):
        monkeypatch.setattr(module, "CLOCK_CHECK_SECONDS", 0.01)

    @app.handler("note")
    def note(ctx: Context) -> None:
        ran.append(ctx.task.id)

    def create(task_id: str, due_in: timedelta) -> None:
        app.create(id=task_id, owner="ada", title="Note", handler="note", schedule=clock.now() + due_in)

    with run_service(app, Settings(access=Access(open=True)), data=tmp_path, threads=threads):
        app.create(id="before", owner="ada", title="Note", handler="note")
        create("in-an-hour", HOUR)
        create("in-three-hours", 3 * HOUR)
        wait_until(lambda: ran == ["before"], "it runs")
        clock.step = timedelta(hours=hours)
        create("after", SECOND)
        app.create(id="often", owner="ada", title="Often", handler="note", schedule="every second")
        expected = {"before", "after", "often"} | ({"in-an-hour"} if hours > 0 else set())
        wait_until(lambda: {*ran} >= expected and ran.count("often") >= 2, "everything that is due runs")
        assert {*ran} == expected
        assert [ran.count(each) for each in expected - {"often"}] == [1] * (len(expected) - 1)
