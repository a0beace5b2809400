"""An open run whose time has passed says what holds it up: not that its next attempt was some time ago."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.dashboard.role_pages import Pages
from tests.web.callers import MINUTE

from cloudsched import App, RetryPolicy
from cloudsched.domain.documents.execution import ExecutionStatus, Lease
from cloudsched.domain.transitions.commit import Commit

PAST = timedelta(hours=3, minutes=47)


@pytest.fixture
def app(app: App) -> App:
    @app.handler("patient", retry=RetryPolicy(max_retries=3, jitter=0, first_delay=10 * MINUTE))
    def patient() -> None:
        raise ValueError("not yet")

    return app


def strand(pages: Pages, record: dict[str, Any], run: dict[str, Any], **task: Any) -> str:
    """Let a retrying run be as no process has left it in time, and return the id of its execution."""
    pages.app.create(handler="patient", title="Sync", owner="ada", id="sync")
    pages.sim.advance(MINUTE)
    store = pages.app.container.store
    stored = store.load("sync")
    assert stored is not None
    [execution] = pages.sim.executions("sync")
    changed = stored.task.model_copy(update={"runs": (stored.task.runs[0].model_copy(update=run),), **task})
    store.commit(Commit(changed, stored, executions=(execution.model_copy(update=record),)))
    return execution.id


@pytest.mark.parametrize("seems_dead", [False, True])
def test_an_attempt_whose_time_has_passed_names_what_it_waits_for(pages: Pages, *, seems_dead: bool) -> None:
    """Its dispatch, or the sweep that would send another, also if that seems dead; and how the last one ended."""
    due = pages.sim.now - PAST
    run = strand(pages, {"next_attempt_at": due}, {"due_at": due}, **({"wake_at": due} if seems_dead else {}))
    sweep = "The sweep would send another: it seems not to run"
    lost = "its dispatch has not arrived yet. If that was lost, the sweep sends another."
    text = pages.text(f"/tasks/sync/executions/{run}")
    assert "Attempt 2 was due on" in text
    assert (sweep if seems_dead else lost) in text
    assert "Attempt 1 failed: ValueError: not yet" in text


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (-PAST, "has not reported, and its lease ended on"),
        (PAST, "Running. An earlier attempt ended with ValueError: not yet"),
    ],
)
def test_a_run_with_a_lease_is_not_said_to_run_with_an_error(pages: Pages, left: timedelta, said: str) -> None:
    """Nor to end in the past. One that goes on says how its last attempt ended."""
    until = pages.sim.now + left
    lease = Lease(token_hash="", started_at=until - 5 * MINUTE, until=until)
    record = {"status": ExecutionStatus.RUNNING, "next_attempt_at": None, "lease_until": until}
    run = strand(pages, record, {"lease": lease})
    text = pages.text(f"/tasks/sync/executions/{run}")
    assert said in text
    assert "Running with" not in text
