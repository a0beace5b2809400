"""What waits for a decision is approved or rejected with a button, by those who may, once."""

from __future__ import annotations

import html
import re

import pytest
from pydantic import BaseModel
from tests.dashboard.role_pages import Pages
from tests.web.callers import DAY, HOUR, MINUTE

from cloudsched import App, Context
from cloudsched.domain.documents.authority import say_subject
from cloudsched.domain.transitions.needs import find_needs


class Decision(BaseModel):
    approved: bool
    note: str = ""


@pytest.fixture
def app(app: App) -> App:
    @app.handler("pay", events={"decision": Decision}, access="users")
    def pay(ctx: Context) -> str:
        decision = ctx.wait_for(
            "decision", Decision, DAY * (ctx.task.title.count("!") + 1), question="May <it> be paid?"
        )
        return f"{decision.approved} {decision.note}"

    @app.handler("any", access="users")
    def take_any(ctx: Context) -> object:
        return ctx.wait_for("approved", timeout=DAY)

    return app


def read_form(text: str, task: str) -> dict[str, str]:
    form = text[text.index(f'data-key="{task}') :].partition("</form>")[0]
    return dict(re.findall(r'type="hidden" name="(task|execution|event)" value="([^"]*)"', form))


def test_a_decision_is_made_with_a_button_and_a_note(pages: Pages, app: App) -> None:
    """On Home, in the list and on the run's page, under its question; the handler gets it, and the record has who.

    A second answer changes nothing and says so.
    """
    app.create(id="later", title="Later!<b>", handler="pay", owner="ada")
    app.create(id="supplier", title="Pay the supplier", handler="pay", owner="ada")
    app.create(id="free", title="Free", handler="any", owner="bob")
    pages.sim.advance(MINUTE)
    pages.forget()
    assert re.search(r'href="\./decisions">Decide…', pages.read("/"))
    text = pages.read("/decisions")
    assert text.index('data-key="supplier') < text.index('data-key="later'), "the first to give up comes first"
    assert len(re.findall(r", and gives up\s*<time[^>]*>in [^<]*<", text)) == 3
    assert "Later!<b>" not in text
    assert "Pay the supplier" not in pages.read("/decisions", "bob")
    [run] = pages.sim.executions("supplier")
    page = f"/tasks/supplier/executions/{run.id}"
    shown = text + pages.read(f"{page}?step=1", "ada")
    assert shown.count("May &lt;it&gt; be paid?") == 4
    assert shown.count('value="approve"') == 3  # a wait that takes anything could take a rejection for a yes
    for who in ("viewer", "reader"):
        for path in ("/decisions", page):
            assert 'value="approve"' not in pages.read(path, who)
    form = {**read_form(text, "supplier"), "note": "fine"}
    assert pages.post("viewer", "/decisions", {**form, "decision": "approve"}).status_code == 403
    assert pages.post("ada", "/decisions", {**form, "decision": "reject"}).status_code == 303
    app.pause("later")
    text = pages.read("/decisions")
    assert "2 tasks have asked for an answer." in text
    assert text.count("Its task is paused: it goes on with the answer once that is resumed.") == 1
    later = {**read_form(text, "later"), "decision": "approve"}
    assert pages.post("admin", "/decisions", later).status_code == 303
    [held] = pages.sim.executions("later")
    text = pages.text(f"/tasks/later/executions/{held.id}", "admin")
    assert "It was answered, and goes on once its task is resumed." in text
    assert "waiting" not in text
    for page in ("/", "/decisions"):  # nobody has to answer, also before the run goes on
        assert 'name="task" value="supplier"' not in pages.read(page)
    assert not find_needs(app.get("supplier"), pages.sim.now)
    pages.sim.advance(MINUTE)
    [run] = pages.sim.executions("supplier")
    assert run.content == "False fine"
    assert run.steps[0].sender is not None
    again = pages.post("admin", "/decisions", {**form, "decision": "approve"})
    assert again.status_code == 409
    assert "Nobody waits for this answer any more" in html.unescape(again.text)
    assert 'data-key="supplier' not in again.text


def test_a_wait_that_ran_out_during_a_pause_asks_nobody(pages: Pages, app: App) -> None:
    """An answer would be refused: it is offered nowhere, and the pages say that the run times out."""
    app.create(id="free", title="Free", handler="any", owner="ada")
    pages.sim.advance(MINUTE)
    app.pause("free")
    pages.sim.advance(2 * DAY)
    [run] = pages.sim.executions("free")
    text = pages.text(f"/tasks/free/executions/{run.id}", "ada")
    assert "The time for an answer is over: it times out once its task is resumed." in text
    assert "It has asked for the event &#39;approved" in pages.read("/runs?within=P7D", "ada")
    task = pages.text("/tasks/free", "ada")
    assert "waits until its task is resumed. If none has come, it times out" in task
    assert "Answer" not in text + task
    assert "Nothing waits for an answer." in pages.read("/decisions", "ada")


def test_which_run_an_answer_is_for_is_said_before_it_is_given(pages: Pages, app: App) -> None:
    """A task of several runs that wait names each by its time, in order, and so does the form of each."""
    app.create(id="free", title="Free", handler="any", owner="ada", schedule="every hour", overlap="ALLOW")
    pages.sim.advance(HOUR * 3)
    page = pages.read("/tasks/free", "ada")
    links = re.findall(
        r'href="[./]*(/tasks/free/executions/[^"]*)">\s*<span>Answer the run of\s*<time[^>]*>([^<]*)<', page
    )
    assert [at for _, at in links] == sorted({at for _, at in links})
    assert len(links) == 3
    for page, at in links:
        [form] = re.findall(r'href="[./]*(/tasks/free/\s*events/[^"]*)"', pages.read(page, "ada"))
        assert f"run of {at}" in pages.read(form, "ada")


@pytest.mark.parametrize(("decision", "word"), [("approve", "Approved"), ("reject", "Rejected")])
def test_a_decision_is_in_the_history_and_among_the_changes(pages: Pages, app: App, decision: str, word: str) -> None:
    """Who, when, and the note, which may be anything; other events, and an answer that is refused, are not.

    An answer that need not be yes or no is given on the run's page: those who may give it are told so.
    """
    app.create(id="supplier", title="Pay the supplier", handler="pay", owner="ada")
    app.create(id="free", title="Free", handler="any", owner="ada")
    pages.sim.advance(MINUTE)
    for who in ("viewer", "admin", "ada"):
        text = pages.read("/decisions", who)
        assert "Free" in text
        assert ("Open it to answer." in text) == (who != "viewer"), who
    form = {**read_form(text, "supplier"), "note": "<b>" + "n" * 490}
    for _ in range(2):
        pages.post("ada", "/decisions", {**form, "decision": decision})
    app.send_event("free", "approved", {"by": "grace"})
    [_, entry] = app.get("supplier").history
    [run] = pages.sim.executions("supplier")
    assert entry.execution_id == run.id
    assert entry.by is not None
    assert entry.by.subject is not None
    for path in ("/tasks/supplier", "/audit", f"/audit?action={word.upper()}"):
        shown = pages.read(path, "ada")
        assert re.search(rf"{word}(:|</b>)", shown), path
        assert "&lt;b&gt;nnn" in shown, path
        assert f"<code>{say_subject(entry.by.subject)}</code>" in shown, path
    assert "&lt;b&gt;nnn" not in pages.read("/audit", "bob")
    assert [each.action for each in app.get("free").history] == ["CREATED"]
