"""Actions on many tasks: named, followed, stopped, done again for what failed, and taken back."""

from __future__ import annotations

import html
import random
import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.dashboard.conftest import read_hidden, visit
from tests.dashboard.role_pages import Pages
from tests.web.callers import DAY, HOUR, MINUTE
from werkzeug.test import TestResponse

from cloudsched import App, Context, Settings
from cloudsched.dashboard.times import BLANK
from cloudsched.dashboard.views.task_history import build_entry
from cloudsched.domain.documents.audit_note import AuditNote
from cloudsched.domain.documents.task import HistoryEntry, Hold, Task, TaskStatus
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.tasks.scheduler import Scheduler
from cloudsched.errors import NotAllowed

DAILY = {"schedule": {"rrule": "FREQ=DAILY", "dtstart": "2030-01-01T09:00:00", "timezone": "UTC"}}
IS_MENDED: list[bool] = []
"""The handler ``half`` fails until a test adds something, and for some tasks ever after."""
Create = Callable[..., Task]


@pytest.fixture
def app() -> App:
    app = App(Settings())

    @app.handler("work", access="users")
    def work() -> str:
        return "done"

    @app.handler("breaks", access="users", retry=0)
    def breaks(_: Context) -> None:
        raise ValueError("broken")

    @app.handler("half", access="users", retry=0)
    def half(ctx: Context) -> None:
        if not IS_MENDED or ctx.task.title.startswith("bad"):
            raise ValueError("broken")

    IS_MENDED.clear()
    tried: list[str] = []

    @app.handler("sleeps", access="users", retry=0)
    def sleeps(ctx: Context) -> None:
        tried.append(ctx.task.id)
        if len(tried) == 1:
            raise ValueError("not yet")
        ctx.sleep(DAY)

    return app


def start(pages: Pages, who: str, query: str, typed: str = "") -> TestResponse:
    """Answer the question of a bulk act, and return the redirect."""
    form = read_hidden(pages.read(f"/bulk?{query}", who))
    return pages.post(who, "/bulk", {**form, "typed": typed})


def find_action(answer: TestResponse) -> str:
    """Return the id of the action to which an answer leads."""
    assert answer.status_code == 303, answer.text
    found = re.search(r"actions/(batch-\w+)", answer.headers["Location"])
    assert found
    return found[1]


def test_a_form_with_the_ids_of_others_changes_none_of_them(pages: Pages, create: Create) -> None:
    """Neither their number nor their titles come back."""
    task = create(title="Quiet plan", **DAILY)
    page = pages.get("bob", f"/bulk?action=delete&ids={task.id}")
    assert "Quiet plan" not in page.text
    assert "There is no task to delete." in page.text
    pages.post("bob", "/bulk", {"action": "delete", "ids": task.id, "count": "0", "typed": "0", "key": "k"})
    pages.sim.advance(MINUTE)
    assert pages.sim.app.get(task.id).status == "ACTIVE"


@pytest.mark.parametrize("path", ["/actions/nope", "/actions/{task}"])
def test_only_actions_have_the_page_of_one(pages: Pages, create: Create, path: str) -> None:
    """An ordinary task is none, also for its owner: it cannot be stopped there."""
    task = create(**DAILY)
    assert pages.get("ada", path.format(task=task.id)).status_code == 404
    assert pages.post("ada", path.format(task=task.id), {"verb": "stop"}).status_code == 404
    assert pages.sim.app.get(task.id).status == "ACTIVE"


def test_everything_is_paused_and_restored_from_the_pages(pages: Pages, create: Create) -> None:
    """The question names the tasks and what is left alone. Three pages lead back, until all is restored.

    Home says how many tasks are paused, to those who may only look as well, and Home and Tasks who paused them.
    """
    before, *_ = create(title="Was paused", **DAILY), create(title="Nightly", **DAILY)
    create(title="Weekly", **DAILY)
    pages.sim.app.pause(before.id)
    question = pages.read("/bulk?action=pause&status=ACTIVE")
    assert "<h1>Pause 2 tasks?</h1>" in question
    assert "Nightly" in question
    assert "Left alone: 1 task, paused already." in question
    assert ">Pause 2 tasks</button>" in question
    assert "include calls" in question, "the list hides calls, and the number has them"
    action = find_action(start(pages, "admin", "action=pause&status=ACTIVE"))
    pages.sim.advance(MINUTE)
    page = pages.read(f"/actions/{action}")
    assert "<h1>Pause everything</h1>" in page
    assert "Restore these 2…" in page
    assert "Restore these" not in pages.read(f"/actions/{action}", "viewer")
    for path in ("/", "/tasks"):
        assert "Restore these 2…" in pages.read(path)
        assert "Restore these" not in pages.read(path, "viewer")
        said = " ".join(html.unescape(re.sub(r"<[^>]+>", "", pages.read(path))).split())
        assert "2 tasks are paused, by key:admin, " in said
    for who in ("admin", "viewer"):
        home = pages.read("/", who)
        assert "3 tasks are paused." in home
        assert "Nothing is due: 3 tasks are paused" in home
    assert "Pause everything" in pages.read("/actions")
    assert action not in pages.read("/actions", "ada")

    undone = find_action(start(pages, "admin", f"action=resume&pauseId={action}"))
    pages.sim.advance(MINUTE)
    assert pages.sim.app.get(before.id).status == "PAUSED"
    assert "Restore these" not in pages.read(f"/actions/{undone}")
    for path in (f"/actions/{action}", "/", "/tasks"):
        assert "Restore these" not in pages.read(path)


def prepare(pages: Pages, create: Create, chance: random.Random) -> dict[str, int]:
    """Create tasks that are active, held by a budget, paused until some time, and paused by hand."""
    numbers = {kind: chance.randint(1, 4) for kind in ("active", "held", "until", "paused")}
    for kind, number in numbers.items():
        for _ in range(number):
            task = create(**DAILY)
            if kind == "paused":
                pages.sim.app.pause(task.id)
            elif kind != "active":
                store = pages.sim.app.container.store
                stored = store.load(task.id)
                assert stored is not None
                now = pages.sim.now
                pause = {"status": TaskStatus.PAUSED, "status_changed_at": now, "next_execution_time": None}
                until = now + 40 * DAY
                kinds: dict[str, dict[str, Any]] = {
                    "held": {"hold": Hold(at=now, is_alone=True), "wake_at": None},
                    "until": {"paused_until": until, "wake_at": until},
                }
                store.commit(Commit(stored.task.model_copy(update={**pause, **kinds[kind]}), stored))
    return numbers


def list_tasks(pages: Pages) -> Sequence[Task]:
    return pages.sim.app.container.store.list_tasks(TaskQuery(), limit=100).items


@pytest.mark.parametrize("seed", range(3))
def test_question_result_and_restore_count_the_same_tasks(pages: Pages, create: Create, seed: int) -> None:
    """A task that would go on by itself is one of them, and each page says that it is not resumed."""
    numbers = prepare(pages, create, random.Random(seed))  # noqa: S311 - the same tasks in each run
    marked = numbers["held"] + numbers["until"]
    concerned = numbers["active"] + marked
    before = {each.id: each.status for each in list_tasks(pages)}
    question = pages.words("/bulk?action=pause&status=ACTIVE")
    assert f"<h1>Pause {concerned} tasks?</h1>" in question
    assert re.search(
        rf": {numbers['active']} active, and {marked} whose pauses? would otherwise end without you", question
    )
    assert re.search(rf"Left alone: {numbers['paused']} tasks?, paused already\.", question)

    action = find_action(start(pages, "admin", "action=pause&status=ACTIVE"))
    pages.sim.advance(MINUTE)
    page = pages.read(f"/actions/{action}")
    assert re.search(rf"Chosen</dt><dd>{concerned}<", page)
    assert re.search(rf"Succeeded</dt><dd>{concerned}<", page)
    assert re.search(rf"{marked} w(as|ere) already paused", page)
    assert f"Restore these {concerned}…" in page
    assert "since." not in page

    undone = find_action(start(pages, "admin", f"action=resume&pauseId={action}"))
    pages.sim.advance(MINUTE)
    page = pages.read(f"/actions/{undone}")
    assert re.search(rf"Succeeded</dt><dd>{concerned}<", page)
    assert re.search(rf"{marked} stays? paused, as before", page)
    assert f"Pause these {numbers['active']} again…" in page
    assert "since." not in page
    assert {each.id: each.status for each in list_tasks(pages) if each.id in before} == before


@pytest.mark.parametrize("kind", ["free", "billed"])
def test_what_a_pause_concerns_is_counted_whatever_is_paused_already(
    pages: Pages, create: Create, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Where counts are free, exactly; elsewhere nothing is called the least number that is none."""
    monkeypatch.setattr("cloudsched.engine.tasks.batch_changes.LOCAL_READ", 3)
    monkeypatch.setattr("cloudsched.engine.tasks.batch_changes.MAX_READ", 3)
    for _ in range(9):
        pages.sim.app.pause(create(**DAILY).id)
    if kind == "free":
        create(**DAILY)
        assert "<h1>Pause 1 task?</h1>" in pages.read("/bulk?action=pause&status=ACTIVE")
        return
    monkeypatch.setattr("cloudsched.adapters.sqlite.search._ENDS_BY_ITSELF", "1")
    question = pages.read("/bulk?action=pause&status=ACTIVE")
    assert "<h1>Pause all that match?</h1>" in question
    assert "0 or more" not in question


def test_an_action_is_started_once_and_can_be_stopped(pages: Pages, create: Create) -> None:
    """A double click leads to the same one; a stale button of its page stops nothing."""
    task = create(**DAILY)
    form = read_hidden(pages.read("/bulk?action=cancel&status=ACTIVE", "ada"))
    one, two = (find_action(pages.post("ada", "/bulk", form)) for _ in range(2))
    assert one == two
    page = pages.get("ada", f"/actions/{one}")
    assert "Stop it" in page.text
    for path in (f"/actions/{one}", "/actions"):
        assert "Waits to start" in pages.read(path, "ada"), "nothing has run it"
    for path in ("/", "/tasks"):
        text = re.sub(r"\s+", " ", pages.read(path, "ada"))
        assert re.search(rf'actions/{one}">Cancel tasks with [^<]*status Active[^<]*</a></b> waits to start, ', text)
        assert one not in pages.read(path, "bob")
    etag = read_hidden(page.text)["etag"]
    assert pages.post("ada", f"/actions/{one}", {"verb": "stop", "etag": '"stale"'}).status_code == 412
    assert pages.post("ada", f"/actions/{one}", {"verb": "stop", "etag": etag}).status_code == 303
    pages.sim.advance(MINUTE)
    assert pages.sim.app.get(task.id).status == "ACTIVE"
    assert "waits to start" not in pages.read("/", "ada")
    stopped = pages.read(f"/actions/{one}", "ada")
    assert "Stopped" in stopped
    assert "Stop it" not in stopped


def test_what_failed_is_listed_with_its_reason_and_tried_again(
    pages: Pages, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what failed is asked about again."""
    bad, _ = create(title="Stubborn", **DAILY), create(**DAILY)
    original = Scheduler.pause

    def pause(self: Scheduler, task_id: str, *given: object, **named: object) -> Task:
        if task_id == bad.id:
            raise NotAllowed("pause", "too <b>stubborn</b>")
        return original(self, task_id, *given, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Scheduler, "pause", pause)
        action = find_action(start(pages, "ada", "action=pause&status=ACTIVE"))
        pages.sim.advance(MINUTE)
    page = pages.read(f"/actions/{action}", "ada")
    assert "Done in part" in page
    assert "too &lt;b&gt;stubborn&lt;/b&gt;" in page
    again = page[page.index('action="../bulk"') :]
    form = dict(re.findall(r'name="(action|ids)" value="([^"]*)"', again))
    assert form == {"action": "PAUSE", "ids": bad.id}
    question = pages.post("ada", "/bulk", form)
    assert "<h1>Pause 1 task?</h1>" in question.text
    find_action(pages.post("ada", "/bulk", read_hidden(question.text)))
    pages.sim.advance(MINUTE)
    assert pages.sim.app.get(bad.id).status == "PAUSED"


def test_retrying_ends_on_a_page_and_not_on_json(pages: Pages, create: Create) -> None:
    """It says how many it retried, and how many of these have failed now, with their list."""
    tasks = [create(handler="breaks", schedule="in 1 minute") for _ in range(3)]
    pages.sim.advance(2 * MINUTE)
    form = read_hidden(pages.read("/retry?handler=breaks", "ada"))
    action = find_action(pages.post("ada", "/retry", form))
    pages.sim.advance(MINUTE)
    page = pages.read(f"/actions/{action}", "ada")
    assert re.search(r"<h1>Retry failed runs with [^<]*handler breaks", page)
    assert re.search(rf"Tried again</dt><dd>{len(tasks)}<", page)
    failed = re.search(r'Failed now</dt>\s*<dd><a href="\.\./(runs\?[^"]+)">(\d+)<', page)
    assert failed
    assert failed[2] == "3"
    assert pages.words(f"/{html.unescape(failed[1])}", "ada").count('data-key="') >= len(tasks)
    assert "refusals" not in page


@pytest.mark.parametrize("chosen", ["handler", "ticked"])
def test_a_retry_is_not_done_while_what_it_retried_is_open(pages: Pages, create: Create, chosen: str) -> None:
    """It says how many are, until they have ended, by whichever way they were chosen, and counts no others."""
    task = create(handler="sleeps", schedule="in 1 minute")
    pages.sim.advance(2 * MINUTE)
    [run] = pages.sim.executions(task.id)
    create(handler="sleeps", schedule="in 1 minute")  # it has not failed, and is open all the time
    pages.sim.advance(2 * MINUTE)
    path = "/retry?handler=sleeps" if chosen == "handler" else f"/retry?pick={task.id}/{run.id}"
    form = read_hidden(pages.read(path, "ada"))
    action = find_action(pages.post("ada", "/retry", form))
    pages.sim.advance(MINUTE)
    page = pages.read(f"/actions/{action}", "ada")
    assert "All tried again, and some are still open" in page
    assert re.search(r"Still open</dt>\s*<dd>1<", page)
    pages.sim.advance(2 * DAY)
    page = pages.read(f"/actions/{action}", "ada")
    assert re.search(r"Still open</dt>\s*<dd>0<", page)
    assert re.search(r"Failed now</dt>\s*<dd>(<a [^>]*>)?0<", page)
    assert "still open" not in page


@pytest.mark.parametrize("chosen", ["handler", "ticked"])
@pytest.mark.parametrize(
    ("bad", "good", "state"),
    [
        (0, 2, "Done"),
        (1, 0, "Done: it failed again"),
        (3, 0, "Done: all 3 failed again"),
        (1, 2, "Done: 1 of 3 failed again"),
    ],
)
def test_the_state_of_a_retry_says_what_has_come_of_it(
    pages: Pages, create: Create, chosen: str, bad: int, good: int, state: str
) -> None:
    """And the message that it was started is gone by then."""
    tasks = [create(title=f"bad {n}", handler="half", schedule="in 1 minute") for n in range(bad)]
    tasks += [create(title=f"good {n}", handler="half", schedule="in 1 minute") for n in range(good)]
    pages.sim.advance(2 * MINUTE)
    IS_MENDED.append(True)
    picked = "&".join(f"pick={task.id}/{pages.sim.executions(task.id)[0].id}" for task in tasks)
    form = read_hidden(pages.read(f"/retry?{'handler=half' if chosen == 'handler' else picked}", "ada"))
    answer = pages.post("ada", "/retry", form)
    action = find_action(answer)
    path = f"/actions/{action}?done={answer.headers['Location'].partition('done=')[2]}"
    assert "<p>Started.</p>" in pages.read(path, "ada")
    pages.sim.advance(MINUTE)
    page = pages.read(path, "ada")
    assert re.search(rf"</svg>\s*{state}\s*<", page), page
    assert "Started." not in page
    assert bad == 0 or "Done" not in pages.read("/actions", "ada")


def test_titles_of_actions_are_sentences(pages: Pages, create: Create) -> None:
    """With since and before, and with the action that another one takes back."""
    create(handler="breaks", schedule="in 1 minute")
    create(**DAILY)
    pages.sim.advance(2 * MINUTE)
    now = pages.sim.now
    query = urlencode({"handler": "breaks", "from": (now - HOUR).isoformat(), "until": now.isoformat()})
    action = find_action(pages.post("ada", "/retry", read_hidden(pages.read(f"/retry?{query}", "ada"))))
    title = re.search("<h1>([^<]+)", pages.read(f"/actions/{action}", "ada"))
    assert title
    assert re.fullmatch(r"Retry failed runs with owner ada, handler breaks since \w.+ before \w.+", title[1])

    paused = find_action(start(pages, "ada", "action=pause&status=ACTIVE"))
    pages.sim.advance(MINUTE)
    question = pages.read(f"/bulk?action=resume&pauseId={paused}", "ada")
    restored = find_action(start(pages, "ada", f"action=resume&pauseId={paused}"))
    text = pages.words(f"/actions/{restored}", "ada")
    assert re.search("<h1>Restore after “Pause everything[^<”]*”</h1>", text)
    for page in (question, text):
        assert re.search(rf'<a href="[^"]*/actions/{paused}">Pause everything[^<]*</a>', page)
        assert paused not in re.sub("<[^>]*>", "", page), "an id that says nothing is shown"


def test_any_run_to_come_can_be_moved(pages: Pages, create: Create) -> None:
    """From the task's page and from the calendar; the others stay, and what is no run of the task is refused."""
    task = create(**DAILY)
    first, second, third = pages.sim.app.upcoming(task.id, 3)
    path = f"/tasks/{task.id}"
    link = f"?move={second:%Y-%m-%dT%H}%3A00%3A00%2B00%3A00#acts"
    assert link in pages.read(path, "ada")
    assert link in pages.read(f"/calendar?day={second:%Y-%m-%d}", "ada")
    assert link not in pages.read(f"/calendar?day={second:%Y-%m-%d}", "viewer")
    page = pages.read(f"{path}{link}", "ada")
    assert "Move the run of " in page
    form = read_hidden(page[page.index("Move the run of ") :])
    assert pages.post("ada", f"{path}/verbs/move", {**form, "to": "an hour later"}).status_code == 303
    assert pages.sim.app.upcoming(task.id, 3) == [first, second + HOUR, third]
    refused = pages.post("ada", f"{path}/verbs/move", {"occurrence": f"{second.isoformat()}", "to": "17:00"})
    assert "is not one of its occurrences to come" in refused.text
    for text in ("yesterday", "2001-01-01T00:00:00Z", "2030-01-01", "<b>"):
        assert "Move the next run…" in pages.read(f"{path}?move={text}", "ada")


def test_a_move_is_told_from_when_to_when_and_that_it_was_taken_back(pages: Pages, create: Create) -> None:
    """In the history, in the question, and in what explains its day; no word of the API is in it."""
    task = create(**DAILY)
    due = pages.sim.app.upcoming(task.id, 1)[0]
    path = f"/tasks/{task.id}"
    assert pages.post("ada", f"{path}/verbs/move", {"occurrence": due.isoformat(), "to": "10:30"}).status_code == 303
    moved = pages.read(path, "ada")
    said = f"{due:%Y-%m-%d} 09:00 → 10:30"
    assert re.search(rf"Run: {said}", moved)
    [back] = re.findall(r'href="[^"]*(/tasks/[^"]+/back/\d+)"', moved)
    question = pages.read(back, "ada")
    assert "Take back the move of " in question
    assert pages.post("ada", back, read_hidden(question[question.index("What changes") :])).status_code == 303
    assert pages.sim.app.upcoming(task.id, 1) == [due]
    text = pages.read(path, "ada")
    assert re.search(rf"Run: {due:%Y-%m-%d} 10:30 → 09:00", text)
    assert back not in text, "what is taken back already is offered once more"

    found = pages.sim.app.explain(task.id, at=pages.sim.now).findings
    [sentence] = [each.sentence for each in found if each.reason == "MOVED"]
    assert said in sentence
    assert "That was taken back by key:ada on " in sentence
    assert "schedule" not in sentence


@pytest.mark.parametrize(
    ("name", "before", "after", "expected"),
    [
        ("labels", '["team=shop"]', '["team=ops", "x=1"]', ("Labels", "team=shop", "team=ops, x=1")),
        ("labels", '{"team": "ops"}', None, ("Labels", "team: ops", "")),
        ("title", '"The \\"old\\" one"', '"None"', ("Title", 'The "old" one', "None")),
        ("retry", '{"maxRetries": 3}', '{"maxRetries": 0}', ("Retries", "3", "0")),
        ("until", None, '"2028-01-01T00:00:00Z"', ("No run after", "", "Sat 01 Jan 2028 00:00 +0000")),
        ("delivery", '{"to": ["ada", {"firstName": "Bob"}]}', "{}", ("Delivery", "to: ada, first name: Bob", "none")),
        ("email", None, "verified", ("Email", "", "verified")),
    ],
)
def test_a_history_is_written_as_people_write(
    name: str, before: str | None, after: str | None, expected: tuple[str, str, str]
) -> None:
    """No brackets, no quotes, and no names of the API: a value that is not known is empty."""
    fields = [{"field": name, "before": before, "after": after}]
    [change] = build_entry({"action": "EDITED", "at": "2027-01-01T00:00:00Z", "fields": fields}, visit())["changes"]
    assert tuple(each.replace(BLANK, " ") for each in change) == expected


def test_a_note_is_quoted_in_the_history() -> None:
    """It does not run into the name of who did it, and what the scheduler says is a sentence of its own."""
    row = {"action": "APPROVED", "at": "2027-01-01T00:00:00Z", "reason": "Invoice checked with Grace"}
    by_person = build_entry({**row, "by": {"subject": "anybody"}}, visit())
    assert (by_person["what"], by_person["said"]) == ("Approved", "“Invoice checked with Grace”")
    by_itself = build_entry({**row, "action": "PAUSED", "reason": "It failed."}, visit())
    assert (by_itself["what"], by_itself["said"]) == ("Paused", "It failed.")


def test_changes_list_deletions_and_budgets(pages: Pages, create: Create) -> None:
    """A deleted task has its name and no link to a page that is gone; a budget leads to its form."""
    task = create(title="Quiet <b>plan</b>", **DAILY)
    pages.sim.app.delete(task.id)
    pages.post("admin", "/usage", {"owner": "ada", "queries": "100", "tokens": ""})
    pages.sim.app.container.store.records.write(
        AuditNote.of(HistoryEntry(at=pages.sim.now, action=Action.QUEUE_PAUSED), queue="cloudsched-low"), None
    )
    text = pages.read("/audit")
    assert "Quiet &lt;b&gt;plan&lt;/b&gt;" in text
    assert f'href="tasks/{task.id}"' not in text
    assert f"tasks/{task.id}" not in text
    assert "Budget set:" in text
    assert "usage?owner=ada" in text
    assert "Queue paused:" in text
    owners = pages.read("/audit", "ada")
    assert "Budget set:" in owners
    assert "cloudsched-low" not in owners
    assert "Quiet" in pages.read("/audit?action=deleted")
    assert "usage?owner=ada" not in pages.read("/audit?action=deleted")
