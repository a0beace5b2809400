"""One person's page, and the deliveries: what is theirs, and what was sent to them with what result."""

from __future__ import annotations

import re

import pytest
from tests.dashboard.role_pages import Pages
from tests.dashboard.test_unreached import remind, store
from tests.web.callers import DAY, HOUR, MINUTE

from cloudsched import App, Context, Schedule
from cloudsched.errors import Forbidden


def test_a_delivery_that_fails_is_listed_until_it_is_sent(pages: Pages, app: App) -> None:
    """With its channel, its result and its next attempt; without an owner, those of all people that have failed."""
    pages.sim.add_person("ada")
    pages.sim.channel("EMAIL").is_down = True
    remind(pages, app, "ada", channels=["EMAIL", "WEB"])
    for path in ("/deliveries", "/deliveries?owner=ada"):
        text = pages.text(path)
        assert "Plants" in text
        assert "Email for ada" in text
        assert "Retrying" in text
        assert "2 tries, the last" in text
        assert "next in" in text
        assert "Send again" not in text
    assert "Nothing needs attention." not in pages.text("/people/ada")
    home = pages.text("/")
    assert "Plants 0 has not been delivered. Since" in home
    assert "Created." not in home
    assert "Plants" not in pages.text("/deliveries", "bob")
    pages.sim.channel("EMAIL").is_down = False
    pages.sim.advance(HOUR)
    assert "Plants" not in pages.text("/deliveries")
    assert "Sent Its tries of EMAIL: Plants" in pages.text("/deliveries?owner=ada")
    assert "Inbox of ada" in pages.text("/deliveries?owner=ada&channel=WEB")
    assert "Email for" not in pages.text("/deliveries?owner=ada&channel=WEB")


def test_a_wrong_address_is_corrected_on_the_page(pages: Pages, app: App) -> None:
    """By its form, once for two clicks. Who may only look is shown none, and is refused."""
    store(app, "ada", email={"address": "wrong@example.com"})
    remind(pages, app, "ada", channels=["EMAIL", "WEB"])
    page = pages.read("/deliveries?unreached=TRUE")
    [delivery] = set(re.findall('name="delivery" value="(.+?)"', page))
    form = {"delivery": delivery, "owner": "ada", "address": "ada@example.com"}
    for path in ("/deliveries?owner=ada", "/people/ada"):
        assert f'value="{delivery}"' in pages.read(path)
        assert f'value="{delivery}"' not in pages.read(path, "viewer")
    assert pages.post("viewer", "/deliveries", form).status_code == 403
    assert pages.post("ada", "/deliveries", form).status_code == 403  # nothing proves that it is theirs
    for _ in range(2):
        assert pages.post("admin", "/deliveries", form).status_code == 303
    pages.sim.advance(MINUTE)
    assert [each.address for each in pages.sim.channel("EMAIL").sent] == ["ada@example.com"]
    assert "Sent Its tries of EMAIL: Plants" in pages.text("/deliveries?owner=ada")
    assert pages.post("admin", "/deliveries", {**form, "delivery": f"{delivery}0"}).status_code == 409


def test_the_page_of_a_failed_run_says_who_was_told(pages: Pages, app: App) -> None:
    """To whom, by which channel, and whether it arrived; or nobody, and why. No owner reads the error there."""

    @app.handler("break")
    def break_down() -> None:
        raise ValueError("secret")

    pages.sim.add_person("ada")
    daily = Schedule.every(DAY, start=pages.sim.now + MINUTE)
    task = app.create(title="Plants", owner="ada", handler="break", delivery_channels=["EMAIL"], schedule=daily)
    quiet = app.create(title="Quiet", owner="ada", handler="break", tell_failures="NEVER", schedule=daily)
    pages.sim.advance(DAY + 2 * MINUTE)
    first, second = (f"/tasks/{task.id}/executions/{each.id}" for each in pages.sim.executions(task.id))
    told = pages.text(first, "ada").partition("Who was told")[2]
    assert "Sent Its tries of EMAIL: Plants" in told
    assert "Web for ada" in told
    assert "nobody" not in told
    assert "secret" not in told
    told = pages.text(second).partition("Who was told")[2]
    assert "Nobody was told of the failure. Its owner was told" in told
    [run, _] = pages.sim.executions(quiet.id)
    told = pages.text(f"/tasks/{quiet.id}/executions/{run.id}").partition("Who was told")[2]
    assert "Nobody was told of the failure. The task tells of no failures" in told


def test_a_page_of_nobody_leads_back_to_where_people_are(pages: Pages) -> None:
    """Not to the tasks."""
    page = pages.read("/people/nobody")
    assert re.search(r'href="[^"]*deliveries"[^>]*>See Deliveries', page)


def test_a_question_in_the_inbox_leads_to_its_page(pages: Pages, app: App) -> None:
    """For the person who is asked. An admin who looks is shown the question only."""

    @app.handler("ask")
    def ask(ctx: Context) -> object:
        return ctx.wait_for("decision", timeout=DAY, by=("user:ada",), question="Shall I?")

    app.create(title="Plants", owner="bob", handler="ask")
    pages.sim.advance(MINUTE)
    for who, is_linked in (("ada", True), ("admin", False)):
        page = pages.read("/deliveries?owner=ada", who)
        assert ("Shall I?" in page, "/v1/links/answer/" in page) == (True, is_linked)


def test_what_waits_in_a_queue_is_listed_in_its_order(pages: Pages, app: App) -> None:
    """With whose it is and since when; users see their own."""
    for owner in ("ada", "bob"):
        app.create(title=f"Render of {owner}", owner=owner, handler="render", pull="gpu")
        pages.sim.advance(MINUTE)
    text = pages.text("/queues?queue=gpu")
    assert text.index("Render of ada") < text.index("Render of bob")
    assert "For workers 2 runs wait." in text
    own = pages.text("/queues?queue=gpu", "ada")
    assert "Render of ada" in own
    assert "Render of bob" not in own
    assert "Nothing waits in other." in pages.text("/queues?queue=other")


def test_a_person_s_page_has_what_is_theirs(pages: Pages, app: App) -> None:
    """Tasks, how they are reached, their budget, what was sent to them; nobody else's page opens for a user."""
    store(app, "ada", name="Ada Lovelace", timezone="Europe/Paris", channels={"OTHERS": ()})
    remind(pages, app, "ada", channels=["EMAIL", "WEB"])
    for who in ("admin", "viewer", "ada"):
        text = pages.text("/people/ada", who)
        assert "Ada Lovelace" in text
        assert "Nothing needs attention." in text
        assert "ada@example.com (not verified, so nothing is sent there)" in text
        assert "Agreed to, others inbox only" in text
        assert "Europe/Paris" in text
    assert pages.get("bob", "/people/ada").status_code in {403, 404}
    assert pages.get("admin", "/people/nobody").status_code == 404


def test_where_queues_are_not_administered_the_page_offers_nothing_of_them(
    pages: Pages, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API refuses then. What waits for workers is shown all the same, and no button that could only fail."""

    def refuse(_: object) -> None:
        raise Forbidden("It is switched off.")

    monkeypatch.setattr(type(app.container), "queue_admin", property(refuse))
    app.create(title="Render", owner="ada", handler="render", pull="gpu")
    pages.sim.advance(MINUTE)
    text = pages.text("/queues")
    assert "gpu" in text
    assert "Pause" not in text
