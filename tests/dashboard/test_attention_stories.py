"""What Home says at the worst moment: nothing that fails is hidden by what failed more often, or before it."""

from __future__ import annotations

import re
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conftest import MakeTask
from tests.dashboard.role_pages import Pages
from tests.web.callers import DAY, HOUR, MINUTE

from cloudsched import App, Context, RetryPolicy, Schedule
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.authority import OWN_CODE
from cloudsched.features.budgets.budgets import Budgets

IS_WELL: set[str] = set()
"""The tasks whose handler succeeds from now on."""


@pytest.fixture
def app(app: App) -> App:
    IS_WELL.clear()

    @app.handler("shaky", retry=0, access="users")
    def shaky(ctx: Context) -> None:
        if ctx.task.id not in IS_WELL:
            raise ValueError(f"the database of {ctx.task.id} is gone")

    @app.handler("calls", retry=0)
    def calls(ctx: Context) -> str:
        try:
            ctx.call("shaky", {}).result()
        except Exception:  # noqa: BLE001 - whatever a call raises
            return "went on without it"
        return "done"

    @app.handler("patient", retry=RetryPolicy(max_retries=1, jitter=0, first_delay=10 * MINUTE))
    def patient() -> None:
        raise ValueError("not yet")

    return app


def hourly(app: App, task_id: str, **fields: Any) -> None:
    schedule = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T00:00:00", timezone="UTC")
    usual: dict[str, Any] = {
        "id": task_id,
        "title": task_id.capitalize(),
        "handler": "shaky",
        "owner": "ada",
        "schedule": schedule,
    }
    app.create(**(usual | fields))


def read_attention(pages: Pages, who: str = "admin") -> tuple[str, str]:
    """Return Home's sentence, and what it says needs attention."""
    pages.forget()
    text = pages.words("/", who)
    sentence = re.search(r"<h1>Home</h1><p[^>]*>(.*?)</p>", text)
    assert sentence
    listed = text.partition("Needs attention</h2>")[2].partition("</ul>")[0]
    return sentence[1], re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", listed))


def test_one_that_fails_is_not_hidden_by_one_that_failed_thirty_times_and_recovered(pages: Pages, app: App) -> None:
    """Payroll fails, then noisy fails thirty times and recovers: payroll needs attention, and noisy does not."""
    sim = pages.sim
    hourly(app, "payroll", schedule=Schedule.once(sim.now + MINUTE))
    for number in range(12):
        hourly(app, f"noisy-{number}")
    sim.advance(3 * HOUR)
    IS_WELL.update(f"noisy-{number}" for number in range(12))
    sim.advance(HOUR)
    for who in ("admin", "viewer", "ada"):
        sentence, listed = read_attention(pages, who)
        assert sentence.startswith("1 thing needs you"), who
        assert "Payroll" in listed
        assert "the database of payroll is gone" in listed
        assert "Noisy" not in listed
    sentence, listed = read_attention(pages, "bob")
    assert sentence.startswith("Nothing needs you")
    assert "Payroll" not in listed


def test_a_call_that_failed_stands_with_the_task_that_made_it(pages: Pages, app: App) -> None:
    """If that has gone on without it, nobody is needed, and no page counts a failure."""
    hourly(app, "caller", handler="calls", schedule=Schedule.once(pages.sim.now))
    pages.sim.advance(5 * MINUTE)
    assert app.get("caller").status is TaskStatus.COMPLETED
    assert read_attention(pages)[0] == "Nothing needs you."
    assert " failed" not in pages.words("/runs?within=PT12H").partition("<h1>")[2].partition("</p>")[0]


def test_a_retry_that_a_budget_holds_is_held_and_not_retrying(pages: Pages, app: App) -> None:
    """It is due, nothing tries it again, and the page says so, and why; with a budget it is retried after all."""
    app.create(handler="patient", title="Sync", owner="bob", id="sync")
    pages.sim.advance(MINUTE)
    assert {each.status for each in pages.sim.executions("sync")} == {ExecutionStatus.RETRYING}
    Budgets.of(app.container).put("bob", 0, by=OWN_CODE)
    pages.sim.advance(HOUR)
    [held] = pages.sim.executions("sync")
    assert held.status is ExecutionStatus.SUSPENDED
    assert held.next_attempt_at is not None
    assert held.next_attempt_at < pages.sim.now
    for text in map(pages.read, ("/runs?within=PT12H", f"/tasks/sync/executions/{held.id}")):
        assert "It waits until its task is resumed" in text
        assert "</svg>Retrying" not in text
    assert "bob has used up its budget (0 of 0 queries of 2027-01): 1 task waits" in read_attention(pages)[1]
    Budgets.of(app.container).put("bob", 10, by=OWN_CODE)
    pages.sim.advance(HOUR)
    assert [each.status for each in pages.sim.executions("sync")] == [ExecutionStatus.FAILED]


def test_one_that_failures_have_paused_is_not_hidden_by_many_of_another_handler(pages: Pages, app: App) -> None:
    """Each handler has a line with the true oldest, the rarest first; that of one task resumes it."""
    app.handler("frail", retry=0)(lambda: 1 / 0)
    hourly(app, "payroll", handler="frail", pause_after_failures=1)
    pages.sim.advance(2 * HOUR)
    for number in range(12):
        hourly(app, f"t{number:02}", pause_after_failures=1)
    hourly(app, "rests")
    app.pause("rests")
    pages.sim.advance(HOUR)
    sentence, listed = read_attention(pages)
    assert sentence.startswith("2 things need you")
    assert listed.index("Payroll is paused, and its last") < listed.index(
        "12 tasks of shaky are paused, and their last"
    )
    assert "Resume…" in listed[: listed.index("12 tasks of shaky")]


def test_the_wait_of_a_rare_handler_is_not_hidden_by_waits_that_end_first(pages: Pages, app: App) -> None:
    """Each handler has a row."""

    @app.handler("asks")
    def asks(ctx: Context) -> object:
        return ctx.wait_for("approved", timeout=DAY)

    @app.handler("contract")
    def contract(ctx: Context) -> object:
        return ctx.wait_for("signed", timeout=5 * DAY)

    for number in range(9):
        app.create(handler="asks", title=f"Ask {number}", owner="ada")
    app.create(handler="contract", title="The lease", owner="ada")
    pages.sim.advance(MINUTE)
    listed = read_attention(pages)[1]
    assert "9 tasks of asks have asked for an answer. Until Sat 02 Jan" in listed
    assert "The lease has asked for an answer. Until Wed 06 Jan" in listed


def test_what_is_late_is_named(pages: Pages, make_task: MakeTask) -> None:
    """With the first of them, and since when."""
    for minutes in (5, 50):
        due = pages.sim.now - timedelta(minutes=minutes)
        late = make_task(id=f"late-{minutes}", title=f"Late {minutes}", next_execution_time=due)
        pages.app.container.store.commit(Commit(late))
    listed = read_attention(pages)[1]
    assert re.search(r"2 tasks of greet are late and have not started\. Since .* 50 min ago \. Late 50 ", listed)


def test_what_a_paused_queue_makes_late_is_counted_once(pages: Pages, make_task: MakeTask) -> None:
    """In the row of the queue, unless a task of the same handler is late for another reason."""
    container = pages.app.container
    container.replace(queue_watch=SimpleNamespace(find_paused={Priority.LOW: "cloudsched-low"}.get))
    for priority in (Priority.LOW, Priority.NORMAL):
        pages.app.handler(priority.lower())(lambda: None)
    for number, priority in enumerate([*[Priority.LOW] * 30, Priority.NORMAL]):
        due = pages.sim.now - timedelta(minutes=50 - number)
        fields = {"title": f"T{number:02}", "handler": priority.lower(), "priority": priority}
        container.store.commit(Commit(make_task(id=f"t{number:02}", next_execution_time=due, **fields)))
    sentence, listed = read_attention(pages)
    assert sentence.startswith("2 things need you")
    assert "The queue cloudsched-low is paused" in listed
    for who in ("viewer", "ada"):
        assert "is paused: no task of priority LOW" in pages.text("/queues", who)
    assert "T30 is late and has not started" in listed
    assert "tasks of low" not in listed


def test_what_a_retry_has_mended_is_no_failure_in_the_row(pages: Pages, app: App) -> None:
    """Neither the last one nor one before it, on Home, on its page and in the explanation.

    Home offers a retry until it is asked for.
    """
    hourly(app, "payroll")
    pages.sim.advance(timedelta(hours=4, minutes=5))
    failed = [each.id for each in pages.sim.executions("payroll")]
    assert len(failed) == 4
    listed = read_attention(pages)[1]
    assert "Payroll is failing, 4 times in a row. Since Fri 01 Jan 01:00" in listed
    pages.post("admin", "/tasks/payroll/verbs/retry", {"executionId": failed[0]})  # it fails again
    pages.sim.advance(5 * MINUTE)
    assert "failing, 4 times in a row." in read_attention(pages)[1]

    IS_WELL.add("payroll")
    for execution_id, said in zip(failed, [", 3 times in a row", ", 2 times in a row", ""], strict=False):
        pages.post("admin", "/tasks/payroll/verbs/retry", {"executionId": execution_id})
        pages.sim.advance(5 * MINUTE)
        assert f"Payroll is failing{said}." in read_attention(pages)[1]
        assert ("in a row" in read_attention(pages)[1]) == bool(said)
        assert ("before it failed, too" in pages.read("/tasks/payroll")) == bool(said)
    assert "Retry…" in read_attention(pages)[1]
    pages.post("admin", "/tasks/payroll/verbs/retry", {"executionId": failed[-1]})
    assert "Payroll" in read_attention(pages)[1]
    assert "Retry…" not in read_attention(pages)[1]
    pages.sim.advance(5 * MINUTE)
    assert read_attention(pages)[0].startswith("Nothing needs you")


def test_a_failure_has_one_age(pages: Pages, app: App) -> None:
    """A run that gave up minutes after it was due failed then, on Home and on the task's page."""
    hourly(app, "payroll", handler="patient", schedule=Schedule.once(pages.sim.now + MINUTE))
    pages.sim.advance(HOUR)
    pages.forget()
    home, task = pages.read("/"), pages.read("/tasks/payroll")
    ages = [
        re.search('<time class="t" datetime="([^"]+)"', text[text.index(begin) :])
        for text, begin in ((home, "<b>Payroll is failing"), (task, 'aria-label="Why"'))
    ]
    assert ages[0]
    assert ages[1]
    assert ages[0][1] == ages[1][1]
