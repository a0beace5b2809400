"""A mail ends in a link by which its reader ends mails of its kind; it proves nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.web.callers import RoleHarness, open_api

from cloudsched.config.access import Access
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation
from cloudsched.web.api.operations import OPERATIONS
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role
from cloudsched.web.functions import serve_links


@pytest.fixture(autouse=True)
def _person(roles: RoleHarness) -> None:
    """Ada is somebody."""
    assert roles.ask("admin", "PUT", "/v1/people/ada", {"name": "Ada"}).status_code == 201


def make_link(roles: RoleHarness, category: Category = Category.REPORT) -> str:
    return PeopleWiring.of(roles.sim.app.container).unsubscribe_links.make("", "ada", category)


def test_an_unsubscribe_link_ends_mails_of_its_category(roles: RoleHarness) -> None:
    """One click, without a credential, as often as you like; opening it changes nothing; other channels stay."""
    path = make_link(roles, Category.REMINDER)
    assert "Unsubscribe" in roles.ask(None, "GET", path).text
    assert roles.ask("ada", "GET", "/v1/people/ada").get_json()["channels"] == {}
    for _ in range(2):
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert roles.ask(None, "POST", path, **form).status_code == 200
        assert roles.ask("ada", "GET", "/v1/people/ada").get_json()["channels"] == {
            "REMINDER": [str(each) for each in DeliveryChannel if each is not DeliveryChannel.EMAIL]
        }
    for forged in (path[:-1], path.replace(".", "x"), path.rpartition(".")[0] + "." + "A" * 43, path[:-2] + "é"):
        assert roles.ask(None, "POST", forged).status_code == 404


def test_the_link_of_somebody_who_was_erased_says_so(roles: RoleHarness) -> None:
    """Nothing is written for them: neither that they have unsubscribed, nor a record of them.

    Before, it outlives the secret: another process, with another one, makes and honours the same.
    """
    link = make_link(roles)
    PeopleWiring.of(roles.sim.app.container).__dict__.pop("unsubscribe_links")
    assert make_link(roles) == link
    answer = roles.ask(None, "POST", link)
    assert (answer.status_code, "Unsubscribed" in answer.text) == (200, True)
    assert roles.ask("admin", "DELETE", "/v1/people/ada").status_code < 300
    roles.sim.run_until_idle()
    answer = roles.ask(None, "POST", link)
    assert answer.status_code == 200
    assert "Unsubscribed" not in answer.text
    assert "no longer stored here" in answer.text
    assert roles.ask("admin", "GET", "/v1/people/ada").status_code == 404


def test_the_public_function_serves_links_and_nothing_else(roles: RoleHarness) -> None:
    """Beside a private API: unsubscribing and feeds; whatever the credential, all else is 404."""
    client = open_api(roles.sim.app, serve_links)
    feed = roles.ask("ada", "POST", "/v1/feeds", {}).get_json()["url"]
    assert client.get(urlsplit(feed).path).status_code == 200
    assert client.post(make_link(roles)).status_code == 200
    links = [each.name for each in OPERATIONS if each.is_link]
    kinds = ("unsubscribe_link", "question_link", "contact_link")
    taken = ("take_telegram_update", "take_slack_action", "get_feed")
    assert {*links} == {*(f"{verb}_{kind}" for kind in kinds for verb in ("show", "follow")), *taken}
    for each in OPERATIONS:
        if not each.is_link:
            path = re.sub(r"{\w+}", "ada", each.path)
            assert client.open(path, method=each.method, headers=roles.headers("admin")).status_code == 404, path


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "closed"])
def test_a_link_never_begins_with_what_a_request_says(simulate: Callable[..., Simulation], *, is_open: bool) -> None:
    """Without a public address, a feed has one only where the API is open, and so was called as this machine.

    Otherwise its link, and the secret in it, could lead to a host of whoever asks for it.
    """
    key, kept = create_key("server", Role.ADMIN)
    sim = simulate(access=Access(open=True) if is_open else Access(api_keys=(str(kept),)))
    client = open_api(sim.app)

    def ask(host: str) -> tuple[int, Any]:
        headers = {"Host": host} if is_open else {"Host": host, "X-Api-Key": key}
        answer = client.open("/v1/feeds", method="POST", json={"owner": "ada"}, headers=headers)
        return answer.status_code, answer.get_json()

    assert ask("evil.example")[0] == (403 if is_open else 503)
    status, feed = ask("localhost:1")
    assert status == (201 if is_open else 503)
    assert str(feed.get("url", "")).startswith("http://localhost:1/v1/feeds/" if is_open else "")
    assert len(PeopleWiring.of(sim.app.container).feeds.list("ada")) == is_open  # what is refused leaves none behind
