"""A link in a mail snoozes what the mail is about: once, for its person, its task and its run, for a day."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.authorities import A_USER
from tests.harness import LocalClient
from tests.instants import about
from werkzeug.wrappers import Request

from cloudsched import App, Settings
from cloudsched.config.access import Access
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import Trigger
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.engine.ports.authority import OWN_CODE
from cloudsched.engine.state.commits import Committer
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api, serve_links

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cloudsched import Task

ROOT = "https://api.example"
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
DAILY = {"rrule": "FREQ=DAILY", "dtstart": "2027-01-02T09:00:00"}
REMINDER: dict[str, Any] = {"handler": "remind", "payload": {"text": "Plants"}, "delivery_channels": ["EMAIL"]}


@pytest.fixture
def app() -> App:
    """A handler for users, and one for servers."""
    app = App(Settings())
    app.handler("remind", access="users")(_say)
    app.handler("closed")(_say)
    return app


def _say(payload: dict[str, str]) -> str:
    return payload["text"]


@pytest.fixture
def sim(app: App) -> Iterator[Simulation]:
    """It is midnight in UTC; Ada and Bob have addresses."""
    with Simulation(app, public_url=ROOT, access=Access(open=True, max_active_tasks=2)) as simulation:
        for owner in ("ada", "bob"):
            spec = PersonSpec.model_validate({"email": {"address": f"{owner}@example.com", "verified": True}})
            app.container.people.put(owner, spec, by=OWN_CODE)
        yield simulation


@pytest.fixture
def browser(sim: Simulation) -> LocalClient:
    """Somebody who has no credential."""
    return LocalClient(Request.application(lambda request: serve_api(sim.app, request)))


def remind(sim: Simulation, owner: str = "ada", after: timedelta = HOUR, **fields: Any) -> Task:
    """Create a task of a user's own."""
    user = sim.app.acting_with(replace(A_USER, owner=owner))
    return user.create(**{**REMINDER, "owner": owner, "title": "Plants", "schedule": sim.now + after, **fields})


def link_of(sim: Simulation, owner: str = "ada") -> str:
    """Return the path of the link in the latest mail to somebody."""
    url = sim.sent("EMAIL", to=owner)[-1].message.snooze_url
    assert url is not None
    return url.removeprefix(ROOT)


def count_snoozes(sim: Simulation, task: Task) -> int:
    return sum(each.trigger is Trigger.SNOOZE for each in sim.executions(task.id))


def test_it_snoozes_once(sim: Simulation, browser: LocalClient) -> None:
    """Looking changes nothing, as mail scanners do; a second click neither. It comes again in ten minutes, by mail."""
    task = remind(sim)
    sim.advance(HOUR)
    path, writes = link_of(sim), sim.counts.writes
    for _ in range(3):
        page = browser.get(path)
        assert page.status_code == 200
        assert '<form method="post"><button>Again in ten minutes</button></form>' in page.text
        assert browser.open(path, method="HEAD").status_code == 200
    assert sim.counts.writes == writes
    done = browser.post(path)
    assert (done.status_code, "01:10 (UTC)" in done.text) == (200, True), done.text
    entry = sim.app.get(task.id).history[-1]
    assert entry.by is not None
    assert (entry.action, entry.by.subject, entry.by.via) == ("SNOOZED", "user:ada", "link:mail")
    sim.advance(5 * MINUTE)
    writes = sim.counts.writes
    assert browser.post(path).status_code == 200
    assert sim.counts.writes == writes
    sim.advance(5 * MINUTE)
    assert len(sim.sent("EMAIL", to="ada")) == 2
    assert count_snoozes(sim, task) == 1
    again = browser.post(path)
    assert (again.status_code, again.text.count("It was snoozed before")) == (200, 1)
    sim.advance(HOUR)
    assert count_snoozes(sim, task) == 1
    assert link_of(sim) != path
    assert browser.post(link_of(sim)).status_code == 200


@pytest.mark.parametrize(
    "forge",
    [
        lambda path, _: path[:-1],
        lambda path, _: path.rpartition(".")[0],
        lambda path, _: path.rpartition(".")[0] + "." + "A" * 43,
        lambda path, other: other.rpartition(".")[0] + "." + path.rpartition(".")[2],
        lambda *_: "/v1/links/snooze/é.é",
        lambda *_: "/v1/links/snooze/" + "A" * 5000,
        lambda path, _: path.replace("/snooze/", "/unsubscribe/"),
    ],
)
def test_a_forged_link_does_nothing(sim: Simulation, browser: LocalClient, forge: Callable[[str, str], str]) -> None:
    """One that was cut, whose proof is another's, or that is for something else."""
    task, _ = remind(sim), remind(sim, "bob")
    sim.advance(HOUR)
    path = forge(link_of(sim), link_of(sim, "bob"))
    writes = sim.counts.writes
    answer = browser.post(path)
    assert (answer.status_code, "over, or was not copied whole" in answer.text) == (404, True)
    assert sim.counts.writes == writes
    assert count_snoozes(sim, task) == 0


def test_a_link_for_something_else_does_not_snooze(sim: Simulation, browser: LocalClient) -> None:
    """The links have one key, and a purpose each."""
    remind(sim)
    sim.advance(HOUR)
    other = sim.app.container.unsubscribe_links.make("", "ada", Category.REMINDER)
    assert browser.post(other.replace("/unsubscribe/", "/snooze/")).status_code == 404


def test_it_is_over_after_a_day(sim: Simulation, browser: LocalClient) -> None:
    """To the second, and its page says so before anybody clicks."""
    remind(sim)
    sim.advance(HOUR)
    path = link_of(sim)
    sim.advance(DAY - MINUTE)
    assert browser.get(path).status_code == 200
    sim.advance(MINUTE)
    assert browser.get(path).status_code == browser.post(path).status_code == 404
    assert len(sim.sent("EMAIL")) == 1


def test_it_is_over_once_the_task_has_run_again(sim: Simulation, browser: LocalClient) -> None:
    """The newer mail has a link of its own, which works, also after an edit."""
    task = remind(sim, schedule="every hour", timezone="UTC")
    sim.advance(HOUR + MINUTE)
    old = link_of(sim)
    sim.advance(HOUR)
    assert browser.post(old).status_code == 409
    sim.app.update(task.id, title="Flowers")
    assert browser.post(link_of(sim)).status_code == 200
    sim.advance(15 * MINUTE)
    assert count_snoozes(sim, task) == 1


def _delete_and_create(sim: Simulation, task: Task) -> None:
    sim.app.delete(task.id)
    remind(sim, id=task.id)
    sim.advance(HOUR)


def _fill_quota(sim: Simulation, _: Task) -> None:
    for _each in range(2):
        remind(sim, after=DAY)


STATES: dict[str, tuple[int, Callable[[Simulation, Task], object]]] = {
    "paused": (409, lambda sim, task: (sim.app.update(task.id, schedule=DAILY), sim.app.pause(task.id))),
    "cancelled": (
        409,
        lambda sim, task: (sim.app.update(task.id, schedule=DAILY), sim.app.cancel(task.id)),
    ),
    "deleted": (404, lambda sim, task: sim.app.delete(task.id)),
    "created again": (404, _delete_and_create),
    "for servers by now": (403, lambda sim, task: sim.app.update(task.id, handler="closed")),
    "beyond the quota": (429, _fill_quota),
}


@pytest.mark.parametrize("state", STATES)
def test_it_does_what_its_owner_could_do(sim: Simulation, browser: LocalClient, state: str) -> None:
    """What the task is by then decides; the page says why not."""
    task = remind(sim)
    sim.advance(HOUR)
    path = link_of(sim)
    status, change = STATES[state]
    change(sim, task)
    answer = browser.post(path)
    assert answer.status_code == status, answer.text
    assert "Not snoozed" in answer.text
    with suppress(Exception):
        assert not any(run.trigger is Trigger.SNOOZE for run in sim.app.get(task.id).runs)


def test_it_starts_nothing_beyond_the_budget(sim: Simulation, browser: LocalClient) -> None:
    """A task that is paused because its owner's budget is used up stays so."""
    task = remind(sim, schedule="every hour", timezone="UTC")
    sim.advance(HOUR + MINUTE)
    path = link_of(sim)
    sim.app.container.many_tasks.budgets.put("ada", 0, by=OWN_CODE)
    assert sim.app.get(task.id).status == "PAUSED"
    assert browser.post(path).status_code == 409


def test_mails_offer_it_only_where_it_may_be_done(sim: Simulation) -> None:
    """Not of a server's task that its owner could not start, nor where the API has no address with TLS."""
    sim.app.create(**{**REMINDER, "handler": "closed", "owner": "ada", "schedule": sim.now + MINUTE})
    sim.advance(MINUTE)
    (mail,) = sim.sent("EMAIL")
    assert (mail.message.snooze_url, mail.message.unsubscribe_url is not None) == (None, True)
    with Simulation(sim.app, public_url="http://api.example") as other:
        other.add_person("ada")
        remind(other, after=MINUTE)
        other.advance(MINUTE)
        assert [each.message.snooze_url for each in other.sent("EMAIL")] == [None]


@pytest.mark.parametrize("is_killed", [False, True], ids=["", "killed after the commit"])
@pytest.mark.parametrize("recurs", [False, True])
def test_the_public_service_leaves_the_dispatch_to_the_sweep(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool, recurs: bool
) -> None:
    """It has neither queue nor secret. The sweep sends what it has stored, so that it comes on time.

    Killed between the commit and the mark for the sweep, that finds it once it is due, and it comes within two minutes.
    """
    schedule: dict[str, Any] = {"schedule": "every day at 01:00", "timezone": "UTC"} if recurs else {}
    task = remind(sim, **schedule)
    sim.advance(HOUR)
    path, store = link_of(sim), sim.app.container.store
    settings = replace(sim.app.container.settings, secret="", previous_secret=None)
    public = App(settings, store=store, clock=sim.clock)
    public.handler("remind", access="users")(_say)
    browser = LocalClient(Request.application(lambda request: serve_links(public, request)))
    assert browser.get("/v1/tasks").status_code == 404
    with monkeypatch.context() as patch:
        if is_killed:
            patch.setattr(Committer, "try_to_change", _die)
        assert browser.get(path).status_code == 200
        assert browser.post(path).status_code == (500 if is_killed else 200)
    sim.app.sweep()
    sim.advance(10 * MINUTE)
    if not is_killed:
        assert count_snoozes(sim, task) == 1
        assert sim.executions(task.id)[-1].finished_at == about(sim.now)
    sim.advance(2 * MINUTE)
    sim.app.sweep()
    sim.advance(MINUTE)
    assert browser.post(path).status_code == 200
    assert count_snoozes(sim, task) == 1


def _die(*_: object, **__: object) -> None:
    raise SystemError("it is killed")
