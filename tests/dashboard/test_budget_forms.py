"""A budget on the pages: who may raise it, what a task without one offers, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from tests.dashboard.conftest import DAILY
from tests.dashboard.role_pages import Pages

from cloudsched.domain.documents.task import Task

API = "/v1/people/ada/budget"


@pytest.mark.parametrize("who", ["ada", "bob", "reader", "viewer", "worker"])
def test_only_an_admin_may_set_a_budget(pages: Pages, create: Callable[..., Task], who: str) -> None:
    """Nobody else has the form, and sending it is refused; a task that is held says who can."""
    task = create(**DAILY)
    assert pages.post("admin", "/usage", {"owner": "ada", "queries": "", "tokens": "0"}).status_code == 303
    assert pages.app.get(task.id).status == "PAUSED"
    for form in ({"owner": "ada", "tokens": "900"}, {"owner": "ada", "tokens": "900", "shown": ""}):
        assert pages.post(who, "/usage", form).status_code in {403, 404}, "others are told that there is none"
    assert pages.app.get(task.id).status == "PAUSED"
    assert 'name="tokens"' not in pages.read("/usage?owner=ada", who)
    page = pages.read(f"/tasks/{task.id}", "ada")
    assert "An admin can raise the budget of ada." in page
    assert not re.search(r"verbs/(resume|trigger)", page)


def test_the_main_button_of_a_task_without_budget_leads_to_the_budget(
    pages: Pages, create: Callable[..., Task]
) -> None:
    """Resume is dashed with its reason, since the next start would pause it again; raising the budget resumes it.

    A resume in vain is no success, from a page that was open before, or a script: it can be taken back as any other.
    """
    task = create(**DAILY)
    pages.post("admin", "/usage", {"owner": "ada", "queries": "0"})
    page = pages.read(f"/tasks/{task.id}")
    assert 'href="../usage?owner=ada#budget-ada"' in page
    assert not re.search(r"verbs/(resume|trigger)", page)
    assert "The budget is used up: the next start would pause it again." in page
    usage = pages.read("/usage?owner=ada")
    assert 'id="budget-ada"' in usage
    shown = re.search(r'name="shown" value="([^"]*)"', usage)
    assert shown
    form = {"owner": "ada", "queries": "1,000", "tokens": "", "shown": shown[1]}
    assert pages.post("admin", "/usage", form).status_code == 303
    assert pages.app.get(task.id).status == "ACTIVE"
    assert "verbs/pause" in pages.read(f"/tasks/{task.id}")
    stale = pages.post("admin", "/usage", {**form, "queries": "5"})
    assert stale.status_code == 412
    assert "Somebody has changed this budget" in stale.text
    assert "1,000 queries" in stale.text
    pages.post("admin", "/usage", {"owner": "ada", "queries": "0"})
    assert pages.app.get(task.id).status == "PAUSED"
    address = pages.post("admin", f"/tasks/{task.id}/verbs/resume", {}).headers["Location"]
    page = pages.read(f"/tasks/{task.id}?{urlsplit(address).query}")
    assert "its budget or limit is used up" in page
    assert "/verbs/pause" in page[page.index('id="said"') :].partition("Undo")[0]


@pytest.mark.parametrize(
    "form",
    [
        {"owner": "ada"},
        {"owner": "ada", "queries": "many"},
        {"owner": "ada", "tokens": "-1"},
        {"owner": "ada", "tokens": "9" * 14},
        {"owner": "ada", "tokens": "٣"},
        {"owner": "", "tokens": "5"},
        {"owner": "..", "tokens": "5"},
        {"owner": "a/b", "tokens": "5"},
    ],
)
def test_what_is_no_budget_is_refused(pages: Pages, form: dict[str, str]) -> None:
    """Nothing is set, and the page says what is wrong."""
    answer = pages.post("admin", "/usage", form)
    assert 400 <= answer.status_code < 500
    assert "budget-ada" not in pages.read("/usage")


@pytest.mark.parametrize(("path", "field", "words"), [("move", "to", "17:00"), ("pause", "until", "in 3 days")])
def test_the_next_run_is_moved_and_a_pause_has_an_end(
    pages: Pages, create: Callable[..., Task], path: str, field: str, words: str
) -> None:
    """Both forms stand on the task's page, take words, and refuse a stale page and what is no time."""
    task = create(**DAILY)
    page = pages.read(f"/tasks/{task.id}", "ada")
    at = f"/tasks/{task.id}/verbs/{path}"
    form = page[page.index(f'name="{field}"') - 500 :]
    etag = re.findall(r'name="etag" value="([^"]*)"', form)[0].replace("&#34;", '"')
    assert pages.post("viewer", at, {"etag": etag, field: words}).status_code == 403
    assert pages.post("ada", at, {"etag": etag, field: "whenever"}).status_code == 400
    assert pages.post("ada", at, {"etag": '"stale"', field: words}).status_code == 412
    before = pages.app.get(task.id)
    assert pages.post("ada", at, {"etag": etag, field: words}).status_code == 303
    after = pages.app.get(task.id)
    if path == "move":
        assert after.next_execution_time is not None
        assert after.next_execution_time.hour == 17
        assert after.next_execution_time != before.next_execution_time
        assert "Take it back…" in pages.read(f"/tasks/{task.id}?done=move", "ada")
    else:
        assert after.paused_until is not None
        assert "<small>until " in pages.read("/tasks", "ada")
        assert "Nothing is due" not in pages.read(f"/tasks/{task.id}", "ada")


def test_a_definition_has_all_that_decides_whether_a_run_starts(pages: Pages, create: Callable[..., Task]) -> None:
    """In words, with units."""
    options = {"jitter": "PT5M", "expiration": "PT1H", "priority": "LOW", "catch_up": {"window": "PT3H"}}
    page = pages.text(f"/tasks/{create(**DAILY, **options).id}", "ada")
    for words in ("Jitter 5 min", "Expiration 1 h", "Priority Low", "window: 3 h"):
        assert words in page
