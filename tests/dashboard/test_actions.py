"""Actions on many tasks: named, followed, stopped, done again for what failed, and taken back."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from urllib.parse import urlencode

import pytest
from tests.dashboard.conftest import ATTACK, DAILY, read_hidden, visit
from tests.dashboard.role_pages import Pages
from tests.web.callers import DAY, HOUR, MINUTE
from werkzeug.test import TestResponse

from cloudsched import App, Context
from cloudsched.dashboard.routes import DONE
from cloudsched.dashboard.times import BLANK
from cloudsched.dashboard.views.task import build_entry
from cloudsched.domain.documents.audit_note import AuditNote
from cloudsched.domain.documents.task import HistoryEntry, Hold, Task, TaskStatus
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.tasks.scheduler import Scheduler
from cloudsched.errors import NotAllowed

Create = Callable[..., Task]


@pytest.fixture
def app(app: App) -> App:
    @app.handler("breaks", access="users", retry=0)
    def breaks(_: Context) -> None:
        raise ValueError("broken")

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
    assert "Nothing to delete" in page.text
    pages.post("bob", "/bulk", {"action": "delete", "ids": task.id, "count": "0", "typed": "0", "key": "k"})
    pages.sim.advance(MINUTE)
    assert pages.app.get(task.id).status == "ACTIVE"


@pytest.mark.parametrize("path", ["/actions/nope", "/actions/{task}"])
def test_only_actions_have_the_page_of_one(pages: Pages, create: Create, path: str) -> None:
    """An ordinary task is none, also for its owner: it cannot be stopped there."""
    task = create(**DAILY)
    assert pages.get("ada", path.format(task=task.id)).status_code == 404
    assert pages.post("ada", path.format(task=task.id), {"verb": "stop"}).status_code == 404
    assert pages.app.get(task.id).status == "ACTIVE"


def test_everything_is_paused_and_restored_from_the_pages(pages: Pages, create: Create) -> None:
    """The question names the tasks, and what goes on. Three pages lead back, until all is restored.

    Home says how many tasks are paused, to those who may only look as well, and Home and Tasks who paused them.
    """
    before, *others = (create(title=title, **DAILY) for title in ("Was paused", "Nightly", "Weekly"))
    pages.app.pause(before.id)
    question = pages.read("/bulk?action=pause&status=ACTIVE")
    assert "<h1>Pause 2 tasks?</h1>" in question
    assert "Nightly" in question
    assert "Was paused" not in question
    assert "Results that were made before are still delivered, and retried." in question
    assert ">Pause 2 tasks</button>" in question
    assert "Calls count, too" in question, "the list hides calls, and the number has them"
    action = find_action(start(pages, "admin", "action=pause&status=ACTIVE"))
    pages.sim.advance(MINUTE)
    page = pages.read(f"/actions/{action}")
    assert "<h1>Pause everything</h1>" in page
    assert "Restore 2 tasks…" in page
    assert "Results that were made before are still delivered, and retried." in page
    assert "Restore 2" not in pages.read(f"/actions/{action}", "viewer")
    for path in ("/", "/tasks"):
        assert "Restore these…" in pages.read(path)
        assert "Restore these" not in pages.read(path, "viewer")
        assert re.search("Pause everything has paused tasks *, by key:admin, ", pages.text(path))
    for who in ("admin", "viewer"):
        assert "Paused 3 " in pages.text("/", who)
        assert "Nothing is next." in pages.text("/", who)
    assert "Pause everything" in pages.read("/actions")
    assert action not in pages.read("/actions", "ada")

    undone = find_action(start(pages, "admin", f"action=resume&pauseId={action}"))
    pages.sim.advance(MINUTE)
    assert pages.app.get(before.id).status == "PAUSED"
    assert "Restore 2" not in pages.read(f"/actions/{undone}")
    for path in (f"/actions/{action}", "/", "/tasks"):
        assert not re.search("Restore (2|these)", pages.read(path))
    start(pages, "admin", "action=pause&status=ACTIVE")
    pages.sim.advance(MINUTE)
    for each in others:
        pages.app.resume(each.id)
    assert "Restore these" not in pages.read("/"), "one by one"


@pytest.mark.parametrize("typed", ["", "2", "30", "three", "-3"])
def test_deleting_asks_for_the_number(pages: Pages, create: Create, typed: str) -> None:
    """The list leads to the question, with its filters and each task to tick; anything else deletes nothing."""
    for _ in range(3):
        create(title=ATTACK, labels=["lot=1"], **DAILY)
    text = pages.read("/tasks?label=lot%3D1", "ada")
    bar = text[text.index('id="bulk"') :]
    assert 'name="label" value="lot=1"' in bar[: bar.index("</form>")]
    assert text.count('form="bulk" name="ids"') == 3
    page = start(pages, "ada", "action=delete&label=lot%3D1", typed)
    assert page.status_code == 400
    assert "Nothing was done." in page.text
    pages.sim.advance(MINUTE)
    assert {each.status for each in list_tasks(pages)} == {"ACTIVE"}


def prepare(pages: Pages, create: Create, chance: random.Random) -> dict[str, int]:
    """Create tasks that are active, held by a budget, paused until some time, and paused by hand."""
    numbers = {kind: chance.randint(1, 4) for kind in ("active", "held", "until", "paused")}
    for kind, number in numbers.items():
        for _ in range(number):
            task = create(**DAILY)
            now = pages.sim.now
            if kind in {"paused", "until"}:
                pages.app.pause(task.id, until=now + 40 * DAY if kind == "until" else None)
            elif kind == "held":
                store = pages.app.container.store
                stored = store.load(task.id)
                assert stored is not None
                held = {"status": TaskStatus.PAUSED, "status_changed_at": now, "hold": Hold(at=now, is_alone=True)}
                store.commit(
                    Commit(
                        stored.task.model_copy(update={**held, "next_execution_time": None, "wake_at": None}), stored
                    )
                )
    return numbers


def list_tasks(pages: Pages) -> Sequence[Task]:
    return pages.app.container.store.list_tasks(TaskQuery(), limit=100).items


@pytest.mark.parametrize("seed", range(3))
def test_question_result_and_restore_count_the_same_tasks(pages: Pages, create: Create, seed: int) -> None:
    """A task that would go on by itself is one of them, and is as it was afterwards."""
    numbers = prepare(pages, create, random.Random(seed))  # noqa: S311 - the same tasks in each run
    marked = numbers["held"] + numbers["until"]
    concerned = numbers["active"] + marked
    before = {each.id: each.status for each in list_tasks(pages)}
    question = pages.words("/bulk?action=pause&status=ACTIVE")
    assert f"<h1>Pause {concerned} tasks?</h1>" in question

    action = find_action(start(pages, "admin", "action=pause&status=ACTIVE"))
    pages.sim.advance(MINUTE)
    page = pages.text(f"/actions/{action}")
    assert f"Changed {concerned} tasks" in page
    assert f"Restore {concerned} tasks…" in page

    undone = find_action(start(pages, "admin", f"action=resume&pauseId={action}"))
    pages.sim.advance(MINUTE)
    page = pages.text(f"/actions/{undone}")
    assert f"Changed {concerned} tasks" in page
    assert re.search(rf"Pause again {numbers['active']} tasks?…", page)
    assert f"Of these, {marked} tasks cannot be taken back here" in page
    assert {each.id: each.status for each in list_tasks(pages) if each.id in before} == before

    end = {"pauseUntil": "2040-01-01T09:00"}
    answer = pages.post("admin", "/bulk", {**read_hidden(question), **end})
    assert f"The number is {numbers['active']} with this end, not {concerned}. Nothing was done." in answer.text
    assert f"<h1>Pause {numbers['active']} task" in answer.text
    assert f"{concerned} tasks" not in answer.text
    ends = find_action(pages.post("admin", "/bulk", {**read_hidden(answer.text), **end}))
    pages.sim.advance(MINUTE)
    assert f"Changed {numbers['active']} task" in pages.text(f"/actions/{ends}")


def test_a_count_that_stopped_is_the_least(pages: Pages, create: Create, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing found so far is not nothing to change: the change itself goes on to the end."""
    monkeypatch.setattr("cloudsched.engine.tasks.batch_changes.MAX_READ", 3)
    monkeypatch.setattr("cloudsched.engine.tasks.batch_changes._PREVIEW_SIZE", 3)
    for _ in range(9):
        create(**DAILY)
    assert "<h1>Pause at least 3 tasks?</h1>" in pages.read("/bulk?action=pause&status=ACTIVE")
    assert "<h1>Retry all tasks that match?</h1>" in pages.read("/bulk?action=retryFailed&handler=work")
    find_action(start(pages, "admin", "action=cancel&handler=work"))
    pages.sim.advance(MINUTE)
    assert {each.status for each in list_tasks(pages) if each.handler == "work"} == {"CANCELLED"}


def refuse_pause(patched: pytest.MonkeyPatch, task: Task) -> None:
    """Make a task refuse to be paused."""
    original = Scheduler.pause

    def pause(self: Scheduler, task_id: str, *given: object, **named: object) -> Task:
        if task_id == task.id:
            raise NotAllowed("pause", "too <b>stubborn</b>")
        return original(self, task_id, *given, **named)  # type: ignore[arg-type]

    patched.setattr(Scheduler, "pause", pause)


def test_an_action_that_is_stopped_half_way_says_so_in_the_list_and_on_its_page(
    pages: Pages, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it has come to, the list and the page show the one value that its record has."""
    bad, *_ = [create(**DAILY) for _ in range(3)]
    refuse_pause(monkeypatch, bad)
    action = find_action(start(pages, "admin", "action=pause&status=ACTIVE"))
    pages.sim.advance(MINUTE)
    for path in (f"/actions/{action}", "/actions"):
        assert re.search(r"</i>\s*Done in part\s*<", pages.read(path)), path
        assert "2 tasks" in pages.text(path), path
    assert "Refused 1 task" in pages.text(f"/actions/{action}")


def test_many_tasks_are_paused_until_a_time_of_the_page_s_zone(pages: Pages, create: Create) -> None:
    """A time that is none, or past, is refused, and pauses nothing. Each page has it in its zone. It is restored."""
    task, before, _ = (create(**DAILY) for _ in range(3))
    pages.app.pause(before.id)
    path = "/bulk?action=pause&handler=work&tz=Asia/Tokyo"
    form = read_hidden(pages.read(path))
    for text, words in (("soon", "is no time"), ("2001-01-01T09:00", "is in the past")):
        refused = pages.post("admin", path, {**form, "pauseUntil": text})
        assert refused.status_code == 400
        assert words in refused.text
    assert pages.post("admin", f"{path}&pauseUntil=soon", form).status_code == 400
    pages.sim.advance(MINUTE)
    assert pages.app.get(task.id).status == "ACTIVE"
    end = (pages.sim.now + 3 * DAY).replace(minute=0, second=0, microsecond=0)
    typed = f"{end + 9 * HOUR:%Y-%m-%dT%H:%M}"
    action = find_action(pages.post("admin", path, {**form, "pauseUntil": typed}))
    pages.sim.advance(MINUTE)
    assert pages.sim.app.get(task.id).paused_until == end
    for shown in ("/due?handler=work&tz=Asia/Tokyo", "/calendar?day=2027-03-01&tz=Asia/Tokyo"):
        kept = "left out of what is due, even if .* value=.Asia/Tokyo.* value=.(work|2027-03-01).*</form>"
        assert re.search(kept, pages.read(shown), re.DOTALL), shown
    said = re.compile(rf"Paused until:? (none → )?{end + 9 * HOUR:%a %d %b %Y %H:%M} \+0900")
    for shown in (f"/actions/{action}", "/actions", f"/tasks/{task.id}", "/audit"):
        text = pages.text(f"{shown}?tz=Asia/Tokyo")
        assert said.search(text), shown
        assert f"ntil {end:%Y}" not in text, shown
    assert "Restore these" in pages.read("/"), "whichever were paused"
    find_action(start(pages, "admin", f"action=resume&pauseId={action}"))
    pages.sim.advance(MINUTE)
    assert [pages.app.get(each.id).status for each in (task, before)] == ["ACTIVE", "PAUSED"]


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
        assert re.search(rf'actions/{one}">Cancel tasks that match</a></b> waits to start, ', text)
        assert one not in pages.read(path, "bob")
    etag = read_hidden(page.text)["etag"]
    assert pages.post("ada", f"/actions/{one}", {"verb": "stop", "etag": '"stale"'}).status_code == 412
    assert pages.post("ada", f"/actions/{one}", {"verb": "stop", "etag": etag}).status_code == 303
    pages.sim.advance(MINUTE)
    assert pages.app.get(task.id).status == "ACTIVE"
    assert "waits to start" not in pages.read("/", "ada")
    stopped = pages.read(f"/actions/{one}", "ada")
    assert "Stopped" in stopped
    assert "Stop it" not in stopped


def test_what_failed_is_listed_with_its_reason_and_tried_again(
    pages: Pages, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what failed is asked about again, and all of it."""
    *bad, _ = (create(title="Stubborn", **DAILY) for _ in range(3))
    with monkeypatch.context() as patched:
        for each in bad:
            refuse_pause(patched, each)
        action = find_action(start(pages, "ada", "action=pause&status=ACTIVE"))
        pages.sim.advance(MINUTE)
    page = pages.read(f"/actions/{action}", "ada")
    assert "too &lt;b&gt;stubborn&lt;/b&gt;" in page
    again = page[page.index('action="../bulk"') :]
    form = dict(re.findall(r'name="(action|ids)" value="([^"]*)"', again))
    assert form["action"] == "PAUSE"
    assert {*form["ids"].split()} == {each.id for each in bad}
    question = pages.post("ada", "/bulk", form)
    assert "<h1>Pause 2 tasks?</h1>" in question.text
    find_action(pages.post("ada", "/bulk", read_hidden(question.text)))
    pages.sim.advance(MINUTE)
    assert {pages.sim.app.get(each.id).status for each in bad} == {"PAUSED"}


@pytest.mark.parametrize("chosen", ["handler", "ticked", "tasks"])
def test_retrying_ends_on_a_page_that_leads_to_the_runs(pages: Pages, create: Create, chosen: str) -> None:
    """It says how many it has tried again, and not that they are done: they may fail once more, as all of these do.

    Neither a paused task nor a run that is open again is in the question, or refused.
    """
    tasks = [create(handler="breaks", schedule="in 1 minute") for _ in range(3)]
    paused = create(handler="breaks", schedule="every hour")
    pages.sim.advance(61 * MINUTE)
    pages.app.pause(paused.id)
    runs = [f"{task.id}/{pages.sim.executions(task.id)[0].id}" for task in tasks]
    picked = "&".join(f"pick={each}" for each in runs)
    if chosen == "tasks":
        pages.app.retry(tasks[0].id)
        assert "<h1>Retry 2 tasks?</h1>" in pages.read("/bulk?action=retryFailed&handler=breaks", "ada")
        action = find_action(start(pages, "ada", "action=retryFailed&handler=breaks"))
        pages.sim.advance(MINUTE)
        page = pages.text(f"/actions/{action}", "ada")
        assert "Tried again 2 tasks" in page
        assert "Refused 0 tasks" in page
        return
    question = pages.read(f"/retry?{'handler=breaks' if chosen == 'handler' else picked}", "ada")
    assert "The last" not in question, "all that failed are retried"
    form = read_hidden(question)
    action = find_action(pages.post("ada", "/retry", form))
    pages.sim.advance(MINUTE)
    page = pages.words(f"/actions/{action}", "ada")
    assert "<h1>Retry failed runs</h1>" in page
    assert "Tried again 3 runs" in pages.text(f"/actions/{action}", "ada")
    for path in (f"/actions/{action}", "/actions"):
        assert re.search(r"</i>\s*Tried again\s*<", pages.read(path, "ada")), path
        assert "Done" not in pages.read(path, "ada")
    if chosen == "ticked":
        assert all(f"tasks/{each.replace('/', '/executions/')}" in page for each in runs)
        return
    matching = re.search(r'href="\.\./(runs\?[^"]+)"', page)
    assert matching
    assert pages.words(f"/{matching[1]}", "ada").count('data-key="') >= len(tasks)


def test_an_action_has_its_filters_in_words(pages: Pages, create: Create) -> None:
    """Its page, the list and the question have them, and the action that another one takes back."""
    create(handler="breaks", schedule="in 1 minute")
    create(**DAILY)
    pages.sim.advance(2 * MINUTE)
    now = pages.sim.now
    query = urlencode({"handler": "breaks", "from": (now - HOUR).isoformat(), "until": now.isoformat()})
    action = find_action(pages.post("ada", "/retry", read_hidden(pages.read(f"/retry?{query}", "ada"))))
    for path in (f"/retry?{query}", f"/actions/{action}", "/actions"):
        text = pages.text(path, "ada")
        assert re.search(r"Handler:? breaks", text), path
        assert re.search(r"Before:? \w{3}", text), path

    paused = find_action(start(pages, "ada", "action=pause&status=ACTIVE&dueFrom=2029-01-01T00:00:00Z"))
    pages.sim.advance(MINUTE)
    for path in (f"/actions/{paused}", "/actions"):
        text = pages.text(path, "ada")
        assert re.search("Status:? Active", text), path
        assert "Mon 01 Jan 2029 00:00 +0000" in text
    pages.get("ada", "/tasks?tz=Asia/Tokyo")  # the viewer's zone, and not that of the task that runs it
    assert "Times in Asia/Tokyo " in pages.text(f"/actions/{paused}", "ada")
    question = pages.read(f"/bulk?action=resume&pauseId={paused}", "ada")
    assert f'actions/{paused}">Keep them as they are' in question
    restored = find_action(start(pages, "ada", f"action=resume&pauseId={paused}"))
    text = pages.words(f"/actions/{restored}", "ada")
    assert re.search("<h1>Restore after “Pause tasks that match[^<”]*”</h1>", text)
    assert re.search(rf'<a href="[^"]*/actions/{paused}">', text)
    assert paused not in re.sub("<[^>]*>", "", text), "an id that says nothing is shown"


def test_any_run_to_come_can_be_moved(pages: Pages, create: Create) -> None:
    """From the task's page and from what is due; the others stay, and what is no run of the task is refused."""
    task = create(**DAILY)
    first, second, third = pages.app.upcoming(task.id, 3)
    path = f"/tasks/{task.id}"
    link = f"?move={second:%Y-%m-%dT%H}%3A00%3A00%2B00%3A00#acts"
    assert link in pages.read(path, "ada")
    due = f"/due?from={second:%Y-%m-%d}T00:00&until={third:%Y-%m-%d}T00:00"
    shown = pages.read(due, "ada")
    assert (link in shown, " due from " in shown) == (True, True)
    assert link not in pages.read(due, "viewer")
    page = pages.read(f"{path}{link}", "ada")
    assert "Move the run of " in page
    form = read_hidden(page[page.index("Move the run of ") :])
    answer = pages.post("ada", f"{path}/verbs/move", {**form, "to": "5:00"})
    assert "Write a time as 05:00 or 5 pm, and a day by its date." in answer.text
    assert pages.post("ada", f"{path}/verbs/move", {**form, "to": "an hour later"}).status_code == 303
    assert "next run" not in DONE["move"]
    assert pages.app.upcoming(task.id, 3) == [first, second + HOUR, third]
    refused = pages.post("ada", f"{path}/verbs/move", {"occurrence": f"{second.isoformat()}", "to": "17:00"})
    assert "is not one of its occurrences to come" in refused.text
    refused = pages.post("ada", f"{path}/verbs/move", {"to": third.isoformat()})
    assert ">New time: is one of its occurrences already" in refused.text
    for text in ("yesterday", "2001-01-01T00:00:00Z", "2030-01-01", "<b>"):
        assert "Move the next run…" in pages.read(f"{path}?move={text}", "ada")


def test_a_move_is_told_from_when_to_when_and_that_it_was_taken_back(pages: Pages, create: Create) -> None:
    """In the history, in the question, and in what explains its day; no word of the API is in it."""
    task = create(**DAILY)
    due = pages.app.upcoming(task.id, 1)[0]
    path = f"/tasks/{task.id}"
    assert pages.post("ada", f"{path}/verbs/move", {"occurrence": due.isoformat(), "to": "10:30"}).status_code == 303
    moved = pages.read(path, "ada")
    said = f"{due:%Y-%m-%d} 09:00 → 10:30"
    assert re.search(rf"Run: {said}", moved)
    [back] = re.findall(r'href="[^"]*(/tasks/[^"]+/back/\d+)"', moved)
    question = pages.read(back, "ada")
    assert "Take back the move of " in question
    assert "Later changes of these fields go, too" in question
    assert pages.post("ada", back, read_hidden(question[question.index("What changes") :])).status_code == 303
    assert pages.app.upcoming(task.id, 1) == [due]
    text = pages.read(path, "ada")
    assert re.search(rf"Run: {due:%Y-%m-%d} 10:30 → 09:00", text)
    assert back not in text, "what is taken back already is offered once more"

    found = pages.app.explain(task.id, at=pages.sim.now).findings
    done, back = (each.sentence for each in found if each.reason in {"MOVED", "EDITED"})
    assert said in done
    assert f"{due:%Y-%m-%d} 10:30 → 09:00" in back


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
    pages.app.delete(task.id)
    pages.post("admin", "/usage", {"owner": "ada", "queries": "100", "tokens": ""})
    pages.app.container.store.records.write(
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
