"""What is said of a run that waits is true now, and nothing of a run that has ended waits."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.dashboard.conftest import look
from tests.dashboard.role_pages import Pages
from tests.dashboard.test_waterfall import SECOND, attempt, record
from tests.web.callers import DAY, HOUR, MINUTE

from cloudsched import App, Context, RetryPolicy, Schedule, Settings
from cloudsched.dashboard.views.execution import build
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.journal import StepStatus

WELL: list[bool] = []
LONG = "no such column; " * 60


@pytest.fixture
def app() -> App:
    app = App(Settings())

    @app.handler("naps")
    def naps(ctx: Context) -> str:
        ctx.sleep(5 * HOUR)
        return str(ctx.wait_for("approved", timeout=9 * DAY))

    @app.handler("weak", retry=RetryPolicy(max_retries=1, jitter=0, first_delay=MINUTE))
    def weak() -> None:
        if not WELL:
            raise ValueError(f"{LONG}\nthe end")

    WELL.clear()
    return app


def sleep(pages: Pages) -> str:
    """Create a task whose run sleeps for five hours, and return the path of the run."""
    monthly = Schedule.every(30 * DAY, start=pages.sim.now + MINUTE)
    pages.sim.app.create(id="naps", owner="ada", title="N", handler="naps", schedule=monthly)
    pages.sim.advance(2 * MINUTE)
    return f"tasks/naps/executions/{pages.sim.app.get('naps').runs[0].execution_id}"


def read_took(pages: Pages, path: str) -> set[str]:
    """Return what a run took in the lists, on its page and beside its bar."""
    page, lists = (
        pages.words(f"/{path}"),
        [pages.words("/runs?within=P7D"), pages.words("/tasks/" + path.split("/")[1])],
    )
    found = [*re.findall(r"<dt>Took</dt><dd>([^<]*)<", page), *re.findall(r'class="took">([^<]*)<', page)[:1]]
    return {*found, *(re.findall(r'<td class="num wide">([^<]*s|[^<]*min|[^<]*h)</td>', each)[-1] for each in lists)}


def test_nothing_of_a_run_that_has_ended_waits(pages: Pages) -> None:
    """A cancelled sleep ended with its run, for the page and the API, and a retry sleeps on."""
    path = sleep(pages)
    run = path.rpartition("/")[2]
    pages.sim.advance(2 * HOUR - MINUTE)
    app = pages.sim.app
    app.cancel_run("naps", run)
    ended = app.execution("naps", run)
    pages.sim.advance(3 * DAY)
    [step] = app.execution("naps", run).steps
    assert (step.status, step.finished_at) == (StepStatus.CANCELLED, ended.finished_at)
    text = pages.text(f"/{path}?step=1").replace("\N{NO-BREAK SPACE}", " ")
    assert "aiting" not in text
    assert " d " not in text.partition("Timeline")[2].partition("Sleep 1")[0]
    assert text.count("2 h") >= 3
    app.retry("naps", run)
    pages.sim.advance(MINUTE)
    assert app.execution("naps", run).steps[-1].status is StepStatus.WAITING


@pytest.mark.parametrize("holder", ["task", "queue"])
def test_a_sleep_that_is_over_is_not_said_to_go_on(pages: Pages, holder: str) -> None:
    """Its task or its queue is paused: each page that has its status says that it waits, or until when it slept."""
    path = sleep(pages)
    pages.sim.advance(HOUR)
    if holder == "task":
        pages.sim.app.pause("naps")
    pages.sim.queue.holds = holder == "queue"
    pages.sim.advance(DAY)
    for each in (path, "tasks/naps", "runs?within=P7D"):
        text = pages.text(f"/{each}")
        assert "leeps until" not in text, each
        if holder == "task":
            assert "It waits until its task is resumed" in text
    if holder == "queue":
        assert "It was to sleep until" in pages.text("/tasks/naps")
        assert "It was due" in pages.text(f"/{path}")


def test_what_a_run_took_is_the_time_of_its_attempts(pages: Pages) -> None:
    """Not that of a paused queue before a retry, which the page explains, nor the hours before a retry by hand."""
    app = pages.sim.app
    app.create(id="weak", owner="ada", title="W", handler="weak", schedule=Schedule.once(pages.sim.now + MINUTE))
    pages.sim.advance(MINUTE + SECOND)
    pages.sim.queue.holds = True
    pages.sim.advance(40 * MINUTE)
    pages.sim.queue.holds = False
    pages.sim.advance(MINUTE)
    [run] = pages.sim.executions("weak")
    path = f"tasks/weak/executions/{run.id}"
    assert run.status is ExecutionStatus.FAILED
    assert read_took(pages, path) == {"0\N{NO-BREAK SPACE}s"}
    assert "Attempt 2 began 40 min after attempt 1 ended." in pages.text(f"/{path}")
    pages.sim.advance(2 * HOUR)
    WELL.append(True)
    app.retry("weak", run.id)
    pages.sim.advance(MINUTE)
    assert app.execution("weak", run.id).status is ExecutionStatus.SUCCEEDED
    assert read_took(pages, path) == {"0\N{NO-BREAK SPACE}s"}


def test_the_time_that_a_later_attempt_slept_is_its_own(pages: Pages) -> None:
    path = sleep(pages)
    run = path.rpartition("/")[2]
    pages.sim.app.cancel_run("naps", run)
    pages.sim.advance(DAY)
    pages.sim.app.retry("naps", run)
    pages.sim.advance(6 * HOUR)
    pages.sim.app.send_event("naps", "approved", execution_id=run)
    pages.sim.advance(MINUTE)
    ended = pages.sim.app.execution("naps", run)
    assert ended.status is ExecutionStatus.SUCCEEDED
    assert ended.duration is not None
    assert 6 * HOUR <= ended.duration < 7 * HOUR


def test_a_long_error_is_its_first_line_until_it_is_opened(pages: Pages) -> None:
    """The page of the run has the whole, and its traceback, folded; the task and a comparison do not."""
    app = pages.sim.app
    app.create(id="weak", owner="ada", title="W", handler="weak", schedule=Schedule.once(pages.sim.now + MINUTE))
    pages.sim.advance(HOUR)
    [run] = pages.sim.executions("weak")
    path = f"tasks/weak/executions/{run.id}"
    page = pages.words(f"/{path}")
    assert "the end" in page
    assert "Traceback" in page
    folded = re.sub(r"<pre.*?</pre>", "", page, flags=re.DOTALL)
    for text in (folded, pages.words(f"/{path}/compare"), pages.words("/tasks/weak").partition("<table")[0]):
        assert LONG[:150] in text or "nothing to compare" in text
        assert LONG[:300] not in text


@pytest.mark.parametrize("status", list(ExecutionStatus))
def test_a_run_that_failed_is_headed_by_its_error(status: ExecutionStatus) -> None:
    """Whatever else there is to say, such as that nobody was told; a run that goes on has not failed."""
    failed = attempt(1, 0, 1) | {"error": {"type": "ValueError", "message": "bad"}}
    found: dict[str, Any] = {"message": "Not delivered by EMAIL: it bounced.", "error": failed["error"]}
    execution = record(failed, status=status, **found)
    nothing: dict[str, Any] = dict.fromkeys(("logs", "child", "history"))
    more = {"mayStart": False, "why": "", "eventSchemas": {}, "deliveries": []}
    task = {"id": "t", "title": "T", "revision": 1, "payload": {}}
    sentence = build({**nothing, **more, "execution": execution, "task": task}, look())["sentence"]
    has_failed = status in {ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT}
    assert (" with ValueError: bad." in sentence) == has_failed
    assert sentence.endswith("Not delivered by EMAIL: it bounced.")
