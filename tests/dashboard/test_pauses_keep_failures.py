"""A pause of everything or another schedule mends nothing: what had failed before needs attention after it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.dashboard.role_pages import Pages
from tests.web.callers import MINUTE

from cloudsched import App


@pytest.fixture
def app(app: App) -> App:
    """A handler that fails."""
    app.handler("payroll", retry=0)(lambda: 1 / 0)
    return app


def test_a_pause_of_everything_and_another_schedule_leave_the_alarm_as_it_was(pages: Pages) -> None:
    """It fails until it has succeeded, on whatever days it runs. Nobody is told that failures have paused it."""
    pages.app.create(id="pay", title="Payroll", owner="ada", handler="payroll", schedule="every hour")
    pages.sim.advance(timedelta(hours=3, minutes=5))
    before = pages.app.get("pay")
    assert before.consecutive_failures == 3

    def require_alarm() -> None:
        after = pages.app.get("pay")
        assert (after.status, after.consecutive_failures, after.failing_since) == ("ACTIVE", 3, before.failing_since)
        pages.forget()
        assert "Payroll" in pages.words("/").partition("Needs attention")[2]

    pages.app.pause_all()
    pages.sim.advance(5 * MINUTE)
    pages.forget()
    assert "Payroll is paused, and its last run has failed." in pages.words("/")
    (found,) = pages.app.container.many_tasks.overview.count(None).needs
    assert (found.need.cause, found.need.since) == ("PAUSED", None), "that of the failure would date the pause"
    assert "failing</b>" not in pages.words("/tasks/pay"), "the list of those that are failing has no paused ones"
    actions = [task for task in pages.app.tasks().items if task.handler == "cloudsched.change-tasks"]
    pages.app.restore(actions[0].id)
    pages.sim.advance(5 * MINUTE)
    require_alarm()
    for schedule in ("every day at 09:00", "every hour"):
        pages.app.patch("pay", {"schedule": schedule})
    require_alarm()
