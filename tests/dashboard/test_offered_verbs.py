"""A page offers what the API allows its visitor and leads back to a chosen step."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tests.dashboard.conftest import read_form
from tests.dashboard.role_pages import Pages
from tests.web.callers import HOUR, MINUTE

from cloudsched import App, Context, Schedule
from cloudsched.dashboard.offered_verbs import explain_impossible, explain_retry, fetch_held
from cloudsched.domain.documents.task import Task
from cloudsched.domain.explanation.findings import Reason
from cloudsched.domain.transitions.commit import Commit
from cloudsched.testing import START

DONE: list[str] = []


@pytest.fixture
def app(app: App) -> App:
    """A handler for servers only, and a durable one whose second step fails until the test has mended it."""
    state = {"is_broken": True}
    DONE.clear()

    @app.handler("closed")
    def closed() -> None:
        pass

    @app.handler("breaks", retry=0)
    def breaks() -> None:
        raise ValueError("broken")

    @app.handler("flow", access="users", retry=0)
    def flow(ctx: Context) -> None:
        ctx.step("first", lambda: DONE.append("first"))
        ctx.step("second", fail_once, retry=False)

    def fail_once() -> None:
        if state.pop("is_broken", False):
            raise ValueError("broken")
        DONE.append("second")

    return app


def create(pages: Pages, handler: str) -> Task:
    at = START + MINUTE
    return pages.app.create(owner="ada", handler=handler, schedule=at)


def test_page_offers_what_its_visitor_may_do(pages: Pages) -> None:
    """The owner of a task of servers may pause it, and not run or edit it; an admin may; a reader nothing."""
    path = f"/tasks/{create(pages, 'closed').id}"
    shown = {who: pages.read(path, who) for who in ("ada", "admin", "reader", "viewer")}
    for who, verbs in {"ada": {"pause", "cancel", "delete"}, "admin": {"pause", "cancel", "delete", "trigger"}}.items():
        assert {
            verb for verb in ("pause", "cancel", "delete", "trigger", "resume") if f"/verbs/{verb}" in shown[who]
        } == verbs
    assert ("Edit…" in shown["ada"], "Edit…" in shown["admin"]) == (False, True)
    assert not any("/verbs/" in shown[who] for who in ("reader", "viewer"))
    assert not any("aria-disabled" in find_verbs(text) for text in shown.values()), "nothing is only impossible now"


def find_verbs(text: str) -> str:
    """Return the part of a task's page that has its verbs."""
    return text.partition('aria-label="Why"')[2].partition("</section>")[0]


def test_what_is_not_possible_now_is_dashed_and_says_why(pages: Pages) -> None:
    """To who may do it at other times, and to nobody else; it cannot be sent, and can have the focus."""
    flow, closed = create(pages, "flow"), create(pages, "closed")
    for task in (flow, closed):
        pages.app.pause(task.id)
        assert "Nothing is due while it is paused." in pages.read(f"/tasks/{task.id}")
    reason = "The task is paused. Resume it to run it."
    for who, has_flow, has_closed in (("ada", True, False), ("admin", True, True), ("reader", False, False)):
        for task, is_said in ((flow, has_flow), (closed, has_closed)):
            text = find_verbs(pages.read(f"/tasks/{task.id}", who))
            assert (reason in text) == is_said
            assert ('aria-disabled="true" aria-describedby="cannot-1" tabindex="0">Run now<' in text) == is_said
            assert "/verbs/trigger" not in text
    pages.app.cancel(flow.id)
    text = find_verbs(pages.read(f"/tasks/{flow.id}", "ada"))
    assert "The task has ended (cancelled). Give it a new schedule to start it again." in text
    assert text.count("aria-disabled") == 2, "neither run nor paused"
    assert text.count("has ended") == 1, "said once"


def test_the_question_before_a_run_tells_that_a_paused_queue_holds_it(pages: Pages) -> None:
    """And it promises no instant that has passed."""
    several = pages.app.create(owner="ada", schedule=START + MINUTE, children=[{"handler": "closed"}])
    assert "It runs once, now." in pages.read(f"/tasks/{several.id}"), "how many of its tasks is not known"
    path = f"/tasks/{create(pages, 'closed').id}"
    asked = html.unescape(find_verbs(pages.read(path)))
    assert "It runs once, now." in asked
    assert "The next run is still due" in asked
    pages.sim.queue.holds = True
    pages.sim.advance(HOUR)
    pages.app.trigger(several.id)
    assert "See the run" not in pages.read(f"/tasks/{several.id}"), "none of its runs has begun"
    assert all("is paused" in pages.text("/queues", who) for who in ("admin", "viewer", "ada"))
    asked = html.unescape(find_verbs(pages.read(path)))
    assert "It runs once, when its queue is resumed." in asked
    assert "still due" not in asked


def test_an_execution_says_why_it_is_not_retried_and_is_retried_from_the_chosen_step(pages: Pages) -> None:
    """Failed of a paused task: when that is resumed. Once it can be, a question says what a retry does.

    The page of a failed execution with a chosen step retries from there: that step is done again.
    """
    task = create(pages, "flow")
    pages.sim.advance(2 * MINUTE)
    (failed,) = pages.sim.executions(task.id)
    path = f"/tasks/{task.id}/executions/{failed.id}"
    assert "It gets one more attempt." in pages.read(path, "ada")
    assert "It gets one more attempt" not in pages.read(path, "reader")
    answer = {**failed.to_wire(), "allowedVerbs": []}
    for status, words in (
        ("CANCELLED", "Its task is cancelled. Give the task a new schedule to start it again."),
        ("PAUSED", "Its task is paused. It can be retried once that is resumed."),
    ):
        found = {"status": status, "allowedVerbs": ["delete"], "needs": ["LIMIT"]}
        assert explain_retry(found, answer, may_start=True) == words
        assert explain_retry(found, answer, may_start=False) == ""
        assert explain_retry({**found, "allowedVerbs": []}, answer, may_start=True) == ""
    both: Any = SimpleNamespace(find=lambda _: {"isUsedUp": True})
    limited = {"status": "PAUSED", "owner": "ada", "needs": ["LIMIT"]}
    assert "limit" in str(fetch_held(both, limited, {"findings": [{"reason": Reason.BUDGET_USED_UP}]})), "its headline"
    over = explain_impossible({"status": "CANCELLED", "allowedVerbs": ["delete"]}, START, None, may_start=True)
    assert over[1] == "The task has ended (cancelled).", "a delivery, which nobody may edit"
    still = {"status": "RUNNING", "allowedVerbs": []}
    assert explain_retry({"status": "ACTIVE", "allowedVerbs": ["pause"]}, still, may_start=True) == (
        "It is still open. It can be retried once it has failed."
    )
    assert "Retry from here" not in pages.read(path, "ada")
    assert "Retry from here" in pages.read(f"{path}?step=1", "ada")
    assert "Retry from here" not in pages.read(f"{path}?step=1", "reader")
    form = {"executionId": failed.id, "fromStep": "1"}
    assert pages.post("ada", f"/tasks/{task.id}/verbs/retry", {**form, "fromStep": "x"}).status_code == 400
    assert pages.post("ada", f"/tasks/{task.id}/verbs/retry", form).status_code == 303
    pages.sim.advance(2 * MINUTE)
    assert pages.app.execution(task.id, failed.id).status == "SUCCEEDED"
    assert DONE == ["first", "first", "second"]


def test_a_comparison_is_offered_where_there_is_a_good_run(pages: Pages) -> None:
    """A task that has always failed has nothing to compare with."""
    hourly = {"rrule": "FREQ=HOURLY", "dtstart": f"{START + timedelta(hours=1):%Y-%m-%dT%H:%M:%S}"}
    task = pages.app.create(owner="ada", handler="flow", schedule=hourly)
    pages.sim.advance(70 * MINUTE)
    (run,) = pages.sim.executions(task.id)
    path = f"/tasks/{task.id}/executions/{run.id}"
    assert "/compare" not in pages.read(path, "ada")
    pages.sim.advance(HOUR)
    assert "/compare" in pages.read(path, "ada")


def test_home_offers_no_retry_that_would_be_refused(pages: Pages) -> None:
    """The owner of a task of servers sees that it failed, and not the retry, which is the admin's; a viewer sees it."""
    task = create(pages, "breaks")
    pages.sim.advance(2 * MINUTE)
    shown = {who: pages.read("/", who) for who in ("ada", "admin", "viewer")}
    assert all("ValueError: broken" in text for text in shown.values())
    offers = {who: re.findall(r'href="\.(/[^"]*)">Retry…', text) for who, text in shown.items()}
    assert not offers["ada"] + offers["viewer"]
    question = html.unescape(
        pages.read(offers["admin"][0]).partition('<details class="ask"')[2].partition("</details>")[0]
    )
    assert "It gets one more attempt." in question
    assert "The handler breaks gets the task's own payload, which is empty." in question
    assert f"tasks/{task.id}/verbs/retry" in question


def test_a_pause_can_be_taken_back_until_somebody_changes_the_task(pages: Pages) -> None:
    """The note offers to undo it, to who may, with the ETag of then: once the task has changed, nothing happens."""
    path = f"/tasks/{create(pages, 'flow').id}"
    assert ">Undo</button>" not in pages.read(path, "ada")
    assert pages.post("ada", f"{path}/verbs/pause", {}).headers["Location"].endswith("?done=pause#said")
    text = pages.read(f"{path}?done=pause", "ada")
    assert text.count('id="said"') == 1, "the place of the message that the address names"
    assert ">Undo</button>" in text
    assert ">Undo</button>" not in pages.read(f"{path}?done=pause", "reader")
    form = text[: text.index(">Undo</button>")].rpartition("<form")[2]
    etag = html.unescape(form.partition('name="etag" value="')[2].partition('"')[0])
    pages.app.update(path.rpartition("/")[2], title="Renamed")
    assert "Somebody has changed this task" in pages.post("ada", f"{path}/verbs/resume", {"etag": etag}).text
    assert pages.app.get(path.rpartition("/")[2]).status == "PAUSED"
    assert ">Undo</button>" not in pages.read(f"{path}?done=resume", "ada"), "it is paused: nothing was resumed"


HOURLY = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T00:00:00", timezone="UTC")
NEVER_HELPS = "the next start would pause it again"


def look(pages: Pages, task: Task, who: str = "admin") -> str:
    return html.unescape(find_verbs(pages.read(f"/tasks/{task.id}", who)))


def test_a_task_that_its_limit_holds_offers_to_raise_that_and_nothing_in_vain(pages: Pages) -> None:
    """Nobody resumes it for nothing. Its form has the limit, and a higher one lets it go."""
    app = pages.app

    @app.handler("uses", access="users")
    def uses(ctx: Context) -> None:
        ctx.used(queries=20)

    task = app.create(owner="ada", handler="uses", schedule=HOURLY, max_queries_per_month=10)
    pages.sim.advance(3 * HOUR)
    assert app.get(task.id).status == "PAUSED"
    text = look(pages, task)
    assert NEVER_HELPS in text
    assert "Raise its limit…" in text
    assert not any(f"/verbs/{verb}" in text for verb in ("resume", "trigger", "snooze", "retry"))
    assert "Raise its limit…" not in look(pages, task, "viewer")
    form = {**read_form(pages.read(f"/tasks/{task.id}/edit")), "verb": "save"}
    assert form["maxQueriesPerMonth"] == "10"
    path = f"/tasks/{task.id}/edit"
    assert "is no whole number" in pages.post("admin", path, {**form, "maxQueriesPerMonth": "many"}).text
    assert pages.post("admin", path, {**form, "maxQueriesPerMonth": "1000"}).status_code == 303
    pages.sim.advance(2 * HOUR)
    assert app.get(task.id).status == "ACTIVE"
    assert NEVER_HELPS not in look(pages, task)


def test_a_task_whose_handler_is_gone_is_not_said_to_run(pages: Pages) -> None:
    """Neither by hand nor again: both questions say that it would fail, and of a handler that is there neither does."""
    container = pages.app.container
    task = pages.app.create(owner="ada", handler="breaks", schedule=HOURLY)
    pages.sim.advance(2 * HOUR)
    said = "Nothing would run it"
    assert said not in look(pages, task)
    stored = container.store.load(task.id)
    assert stored is not None
    container.store.commit(Commit(stored.task.model_copy(update={"handler": "removed"}), stored))
    text = look(pages, task)
    assert text.count(said) == 2
    assert "It runs once, now" not in text
    assert "It gets one more attempt" not in text


@pytest.mark.parametrize(
    ("limit", "said", "change"),
    [
        ({"max_runs": 2}, "It has run as often as it may (2).", {"maxRuns": "9"}),
        ({"until": START + 2 * HOUR}, "Its time is over: give it a later end, or none.", {"until": ""}),
    ],
)
def test_what_has_ended_names_the_edit_that_starts_it_again(
    pages: Pages, limit: dict[str, object], said: str, change: dict[str, str]
) -> None:
    """And the form has it."""
    app = pages.app
    app.handler("plain")(lambda: None)
    task = app.create(owner="ada", handler="plain", schedule=HOURLY, **limit)  # type: ignore[arg-type]
    pages.sim.advance(4 * HOUR)
    assert app.get(task.id).status == "COMPLETED"
    text = look(pages, task)
    assert said in text
    assert "/verbs/trigger" not in text
    form = {**read_form(pages.read(f"/tasks/{task.id}/edit")), "verb": "save"}
    assert pages.post("admin", f"/tasks/{task.id}/edit", {**form, **change}).status_code == 303
    before = len(pages.sim.executions(task.id))
    pages.sim.advance(2 * HOUR)
    assert len(pages.sim.executions(task.id)) == before + 2


def test_what_is_paused_past_its_only_instant_is_not_said_to_wait_for_a_resume(pages: Pages) -> None:
    """Resuming it is not possible: only a new schedule helps, and its sentence says that."""
    task = create(pages, "flow")
    pages.app.pause(task.id)
    pages.sim.advance(2 * HOUR)
    text = look(pages, task)
    assert "starts nothing until it has a new schedule, since its only instant is over" in text
    assert "/verbs/resume" not in text
