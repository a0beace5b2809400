"""The page of a run that began late says what was found about it, and a run that is open can be cancelled there."""

from __future__ import annotations

from tests.dashboard.role_pages import Pages
from tests.web.callers import HOUR, MINUTE

from cloudsched import App, Schedule
from cloudsched.domain.documents.execution import ExecutionStatus


def test_a_late_run_says_what_was_found(pages: Pages, app: App) -> None:
    """One that began in time says nothing of the kind. The number above the list of late ones has those still open."""
    hourly = Schedule.every(HOUR, start=pages.sim.now + 5 * MINUTE)
    for task_id in ("late", "later"):
        app.create(id=task_id, owner="ada", handler="work", schedule=hourly)
    app.create(id="naps", owner="ada", handler="rests", schedule=Schedule.once(pages.sim.now + HOUR))
    pages.sim.advance(50 * MINUTE)
    pages.sim.queue.holds = True
    pages.sim.advance(40 * MINUTE)
    pages.sim.queue.holds = False
    pages.sim.advance(MINUTE)
    told = {run.id: pages.words(f"/tasks/late/executions/{run.id}") for run in pages.sim.executions("late")}
    assert sum("All 2 runs that were due from" in each for each in told.values()) == 1
    assert sum("It began" in each for each in told.values()) == 1
    statuses = [each["status"] for each in pages.rows("/runs?minLateness=180")]
    assert sorted(statuses) == ["SUCCEEDED", "SUCCEEDED", "SUSPENDED"]
    assert "<p>3 found.</p>" in pages.words("/runs?minLateness=180")


def test_a_run_is_cancelled_on_its_page_alone(pages: Pages, app: App) -> None:
    """Whoever may change the task is asked first, and the task goes on; one that has ended offers nothing."""
    app.create(id="naps", owner="ada", handler="rests", schedule=Schedule.every(HOUR, start=pages.sim.now))
    pages.sim.advance(HOUR + MINUTE)
    run = app.get("naps").runs[0].execution_id
    path = f"/tasks/naps/executions/{run}"
    assert "Cancel this run" not in pages.read(path, "reader")
    assert "The task and its schedule go on." in pages.words(path, "ada")
    assert pages.post("reader", "/tasks/naps/verbs/cancel-run", {"executionId": run}).status_code == 403
    sent = pages.post("ada", "/tasks/naps/verbs/cancel-run", {"executionId": run})
    assert (sent.status_code, "done=cancel-run" in sent.headers["Location"]) == (303, True)
    assert app.execution("naps", run).status is ExecutionStatus.CANCELLED
    assert app.get("naps").is_active
    assert "Cancel this run" not in pages.read(path, "ada")
