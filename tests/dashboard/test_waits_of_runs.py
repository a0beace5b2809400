"""What is said of a run that waits is true now, and nothing of a run that has ended waits."""

from __future__ import annotations

import html
import re
from zoneinfo import ZoneInfo

import pytest
from tests.dashboard.role_pages import Pages
from tests.web.callers import DAY, HOUR, MINUTE, SECOND

from cloudsched import App, Context, RetryPolicy, Schedule
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.journal import StepStatus

WELL: list[bool] = []
LONG = "no such column; " * 60


@pytest.fixture
def app(app: App) -> App:
    @app.handler("naps")
    def naps(ctx: Context) -> str:
        ctx.sleep(5 * HOUR)
        return str(ctx.wait_for("approved", timeout=9 * DAY))

    @app.handler("leaves")
    def leaves(ctx: Context) -> None:
        ctx.call("naps")

    @app.handler("weak", retry=RetryPolicy(max_retries=1, jitter=0, first_delay=MINUTE))
    def weak() -> None:
        if not WELL:
            raise ValueError(f"{LONG}\nthe end")

    WELL.clear()
    return app


def start(pages: Pages, handler: str) -> tuple[str, str]:
    """Begin a run of a monthly task, and return its id and its path."""
    monthly = Schedule.every(30 * DAY, start=pages.sim.now + MINUTE, timezone="America/New_York")
    pages.app.create(id=handler, owner="ada", handler=handler, schedule=monthly)
    pages.sim.advance(MINUTE + SECOND)
    run = pages.app.get(handler).runs[0].execution_id
    return run, f"/tasks/{handler}/executions/{run}"


def test_a_sleep_ends_in_the_zone_of_its_page(pages: Pages) -> None:
    """In the task's, or in the one that is chosen; the API keeps UTC."""
    _, path = start(pages, "naps")
    end = pages.app.get("naps").runs[0].due_at
    for each, zone in ((path, "America/New_York"), (f"{path}?tz=Asia/Tokyo", "Asia/Tokyo")):
        assert f"It sleeps until {end.astimezone(ZoneInfo(zone)):%a %d %b %Y %H:%M %z}." in pages.text(each)


def test_no_next_run_of_a_list_is_past(pages: Pages) -> None:
    """An occurrence that the open run holds back is perhaps skipped."""
    hourly = Schedule.every(HOUR, start=pages.sim.now + MINUTE)
    pages.app.create(id="naps", owner="ada", handler="naps", schedule=hourly)
    pages.sim.advance(3 * HOUR)
    assert "after its open run" in pages.words("/tasks")


def test_nothing_of_a_run_that_has_ended_waits(pages: Pages) -> None:
    """A cancelled sleep ended with its run, for the page and the API, and a retry sleeps on, in its own time."""
    run, path = start(pages, "naps")
    pages.sim.advance(2 * HOUR)
    app = pages.app
    app.cancel_run("naps", run)
    ended = app.execution("naps", run)
    pages.sim.advance(3 * DAY)
    [step] = app.execution("naps", run).steps
    assert (step.status, step.finished_at) == (StepStatus.CANCELLED, ended.finished_at)
    timeline = pages.text(f"{path}?step=1").partition("Timeline")[2].partition("Retry from here")[0]
    assert "aiting" not in timeline
    assert timeline.count(" 2 h") == 2
    app.retry("naps", run)
    pages.sim.advance(6 * HOUR)
    assert [each.status for each in app.execution("naps", run).steps] == [StepStatus.SUCCEEDED, StepStatus.WAITING]
    app.send_event("naps", "approved", execution_id=run)
    pages.sim.advance(MINUTE)
    took = app.execution("naps", run).duration
    assert took is not None
    assert 6 * HOUR <= took < 7 * HOUR


def test_a_call_that_was_left_waits_until_it_has_ended(pages: Pages) -> None:
    app = pages.app
    app.create(id="leaves", owner="ada", handler="leaves")
    pages.sim.advance(MINUTE)
    [run] = pages.sim.executions("leaves")
    assert run.status is ExecutionStatus.SUCCEEDED
    for wait, status in ((HOUR, StepStatus.WAITING), (15 * DAY, StepStatus.FAILED)):
        pages.sim.advance(wait)
        assert [each.status for each in app.execution("leaves", run.id).steps] == [status]


@pytest.mark.parametrize("holder", ["task", "queue"])
def test_a_sleep_that_is_over_is_not_said_to_go_on(pages: Pages, holder: str) -> None:
    """Its task or its queue is paused: each page that has its status says that it waits, or until when it slept."""
    _, path = start(pages, "naps")
    assert "<dt>Goes on by</dt>" in pages.words(path)
    if holder == "task":
        pages.app.pause("naps")
        assert "Goes on by" not in pages.words(path)
        assert "<small>due" not in pages.read("/runs?within=P7D")
    pages.sim.queue.holds = holder == "queue"
    pages.sim.advance(DAY)
    said = {"task": "It waits until its task is resumed", "queue": "It was to sleep until"}[holder]
    for each in (path, "/tasks/naps", "/runs?within=P7D"):
        text = pages.text(each)
        assert "leeps until" not in text, each
        assert "Goes on by" not in text, each
        assert said in text or (each == path and "It was due" in text), each


def test_what_a_run_took_is_the_time_of_its_attempts(pages: Pages) -> None:
    """Not that of a paused queue before a retry, nor the hours before one by hand, of which the page says by whom."""
    run, path = start(pages, "weak")
    pages.sim.queue.holds = True
    pages.sim.advance(40 * MINUTE)
    pages.sim.queue.holds = False
    pages.sim.advance(MINUTE)
    pages.sim.advance(2 * HOUR)
    WELL.append(True)
    pages.app.retry("weak", run)
    pages.sim.advance(MINUTE)
    assert pages.app.execution("weak", run).status is ExecutionStatus.SUCCEEDED
    page = html.unescape(pages.words(path))
    assert page.count("It was retried by the app's own code on") == 1
    assert re.findall(r'<dt>Took</dt><dd>([^<]*)|class="took">([^<]*)', page) == [("0 s", ""), ("", "0 s")]


def test_a_long_error_is_its_first_line_until_it_is_opened(pages: Pages) -> None:
    """The page of the run has the whole, and its traceback, folded; the task and a comparison do not."""
    _, path = start(pages, "weak")
    pages.app.pause("weak")
    pages.sim.advance(2 * MINUTE)
    assert "Goes on by" not in pages.words(path), "what is past is no plan"
    pages.app.resume("weak")
    pages.sim.advance(HOUR)
    page = pages.words(path)
    assert "the end" in page
    assert "Traceback" in page
    folded = re.sub(r"<pre.*?</pre>", "", page, flags=re.DOTALL)
    for text in (folded, pages.words("/tasks/weak").partition("<table")[0]):
        assert LONG[:150] in text
        assert LONG[:300] not in text
