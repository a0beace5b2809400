"""Who may act, and who may only look: the page offers what the key may do. `tests/doors` has what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.dashboard.conftest import DAILY
from tests.dashboard.role_pages import Pages
from tests.web.callers import MINUTE

from cloudsched import App, Context
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.domain.documents.task import Task
from cloudsched.engine.authority import OWN_CODE
from cloudsched.people.wiring import PeopleWiring

LOOKERS = ("reader", "viewer")
NEW = {"handler": "work", "title": "Forged", "schedule": "every day at 9", "timezone": "UTC", "verb": "create"}


@pytest.fixture
def app(app: App) -> App:
    @app.handler("breaks", retry=0)
    def breaks() -> None:
        raise ValueError("broken")

    @app.handler("asks")
    def asks(ctx: Context) -> None:
        ctx.wait_for("approved")

    return app


@pytest.mark.parametrize("who", LOOKERS)
def test_who_may_only_look_is_offered_nothing(pages: Pages, create: Callable[..., Task], who: str) -> None:
    """No form that changes something, no link to one, and the page says why: whatever waits for somebody."""
    task, paused, *ran = create(deliveryChannels=["WEB"]), create(), create(handler="breaks"), create(handler="asks")
    pages.app.pause(paused.id)
    pages.sim.advance(MINUTE)
    runs = [(each.id, run.id) for each in ran for run in pages.sim.executions(each.id)]
    assert len(runs) == 2
    for path in (
        *(f"/tasks/{each.id}{query}" for each in (paused, *ran) for query in ("", "?done=pause")),
        *(f"/tasks/{task_id}/executions/{run_id}?step=1" for task_id, run_id in runs),
        "/",
        "/tasks",
        "/tasks?handler=work",
        f"/tasks/{task.id}",
        "/deliveries?owner=ada",
        "/queues",
        "/runs",
        "/usage",
    ):
        page = pages.get(who, path)
        assert page.status_code == 200, path
        assert not re.search(r'method="post"|/edit"|/run"|\./new|id="bulk"|type="checkbox" form', page.text), path
    for path in ("/new", f"/tasks/{task.id}/edit", f"/tasks/{task.id}/run", "/bulk?action=pause&handler=work"):
        assert pages.get(who, path).status_code == 403, path
    assert "You can look, but not change anything." in pages.read(f"/tasks/{task.id}", who)


@pytest.mark.parametrize("who", ["ada", "admin"])
def test_who_may_act_is_offered_it_and_can(pages: Pages, create: Callable[..., Task], who: str) -> None:
    """Create a task, and run it with another payload: a dry run stores nothing, and sending it twice is one run."""
    task = create(**DAILY)
    at = f"/tasks/{task.id}"
    dry = pages.post(who, f"{at}/run", {"payload": '{"n": 2}', "verb": "check"})
    assert "This is valid." in dry.text
    for _ in range(2):
        sent = pages.post(who, f"{at}/run", {"payload": '{"n": 2}', "key": "k1", "verb": "run"})
        assert sent.status_code == 303, sent.text
    found = pages.app.get(task.id)
    assert [run.payload for run in found.runs] == [{"n": 2}], "the key makes the second sending find the first"
    assert found.payload == task.payload
    pages.sim.advance(MINUTE)
    own = next(each.id for each in pages.sim.executions(task.id) if each.payload)
    assert "It had its own payload." in pages.read(f"{at}/executions/{own}", who)
    new = pages.post(who, "/new", {**NEW, "title": "Own"})
    assert new.status_code == 303
    made = pages.app.get(new.location.split("/")[-1].partition("?")[0])
    assert made.owner == ("ada" if who == "ada" else "system")


def test_only_who_sees_all_tasks_names_an_owner(pages: Pages) -> None:
    """A user's form has no field for the owner; a forged one is refused alike, whether that person is known or not."""
    assert 'name="owner"' in pages.read("/new?handler=work")
    assert 'name="owner"' not in pages.read("/new?handler=work", "ada")
    PeopleWiring.of(pages.app.container).people.put("bob", PersonSpec(timezone="Asia/Tokyo"), by=OWN_CODE)
    pages.sim.clock.each_look = timedelta(0)  # the two answers show when they were given
    for form in (NEW, {**NEW, "verb": "check"}, {**NEW, "timezone": "owner"}):
        answers = [pages.post("ada", "/new", {**form, "key": "k", "owner": owner}) for owner in ("bob", "bab")]
        assert [answer.status_code for answer in answers] == [403, 403]
        assert answers[0].text.replace("bob", "bab") == answers[1].text
        assert "Tokyo" not in answers[0].text
    assert not pages.app.tasks().items


def test_a_message_is_marked_as_read_once(pages: Pages, create: Callable[..., Task]) -> None:
    """By its owner or an admin, with a form of its own."""
    task = create(deliveryChannels=["WEB"])
    pages.sim.run_until_idle()
    text = pages.read("/deliveries", "ada")
    assert text.count("Mark as read") == 1
    [message] = re.findall(r'name="message" value="([^"]+)"', text)
    assert pages.post("ada", "/deliveries", {"owner": "ada", "message": message}).status_code == 303
    assert "Mark as read" not in pages.read("/deliveries", "ada")
    assert pages.post("ada", "/deliveries", {"owner": "bob", "message": message}).status_code == 404
    assert pages.post("ada", "/deliveries", {"owner": "ada", "message": ".."}).status_code == 404
    assert task.id in text
