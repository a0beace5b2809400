"""An address is verified by a link or a code that was sent to it, and mails end by a link; nothing else does it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from tests.authorities import A_USER
from tests.harness import LocalClient
from tests.web.auth.test_roles import RoleHarness, roles
from werkzeug.wrappers import Request

from cloudsched.config.access import Access
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.person import ContactSecrets, EmailContact, PersonSpec
from cloudsched.errors import DeliveryDelayed, DeliveryRefused
from cloudsched.web.api.operations import OPERATIONS
from cloudsched.web.auth.api_keys import create_key
from cloudsched.web.auth.roles import Role
from cloudsched.web.functions import serve_api, serve_links

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.ports.sender import Message, Recipient
    from cloudsched.testing import Simulation

__all__ = ["roles"]


@dataclass
class Mailbox:
    """A sender that keeps what it gets."""

    mails: list[tuple[Message, Recipient]] = field(default_factory=list)
    error: Exception | None = None

    def send(self, message: Message, recipient: Recipient) -> str:
        """Keep a message."""
        if self.error is not None:
            raise self.error
        self.mails.append((message, recipient))
        return message.id

    @property
    def code(self) -> str:
        """The code in the last mail."""
        found = re.search(r"code within one hour: (\d{8})$", self.mails[-1][0].body, re.MULTILINE)
        assert found is not None
        return found[1]

    @property
    def link(self) -> str:
        """The path of the link in the last mail."""
        found = re.search(r"https?://[^/]+(/v1/links/verify/\S+)", self.mails[-1][0].body)
        assert found is not None
        return found[1]


@pytest.fixture
def mailbox(roles: RoleHarness) -> Mailbox:
    """What the app sends by mail; Ada has an address that is not verified."""
    mailbox = Mailbox()
    roles.sim.app.container.replace(mail_sender=mailbox)
    put(roles, "ada@example.com")
    return mailbox


def put(roles: RoleHarness, address: str, owner: str = "ada") -> None:
    answer = roles.ask("admin", "PUT", f"/v1/people/{owner}", {"name": "Ada", "email": {"address": address}})
    assert answer.status_code < 300, answer.text


def is_verified(roles: RoleHarness, owner: str = "ada") -> bool:
    email: dict[str, Any] = roles.ask("admin", "GET", f"/v1/people/{owner}").get_json()["email"]
    return bool(email["verified"])


def start(roles: RoleHarness, who: str = "ada", owner: str = "ada") -> int:
    return roles.ask(who, "POST", f"/v1/people/{owner}/email/verify").status_code


def confirm(roles: RoleHarness, code: str, who: str = "ada") -> int:
    return roles.ask(who, "POST", "/v1/people/ada/email/confirm", {"code": code}).status_code


def test_the_code_from_the_mail_verifies_the_address(roles: RoleHarness, mailbox: Mailbox) -> None:
    """Once; the mail goes to that address only, and the response does not have the code."""
    answer = roles.ask("ada", "POST", "/v1/people/ada/email/verify")
    assert (answer.status_code, answer.get_json()) == (202, {"address": "ada@example.com", "verified": False})
    ((_, recipient),) = mailbox.mails
    assert (recipient.address, recipient.name) == ("ada@example.com", "Ada")
    assert not is_verified(roles)
    assert confirm(roles, mailbox.code) == 200
    assert is_verified(roles)
    assert confirm(roles, mailbox.code) == 400
    assert roles.ask("ada", "POST", "/v1/people/ada/email/verify").get_json()["verified"] is True
    assert len(mailbox.mails) == 1


def test_the_link_from_the_mail_verifies_the_address(roles: RoleHarness, mailbox: Mailbox) -> None:
    """By a POST without a credential; opening it, as link scanners do, shows a page and changes nothing."""
    start(roles)
    for _ in range(3):
        page = roles.ask(None, "GET", mailbox.link)
        assert page.status_code == 200
        assert '<form method="post">' in page.text
        assert "form-action 'self'" in page.headers["Content-Security-Policy"]
    assert not is_verified(roles)
    for _ in range(2):
        assert roles.ask(None, "POST", mailbox.link, Origin="null").status_code == 200
        assert is_verified(roles)


@pytest.mark.parametrize("owner", ["grace", "edsger", "margaret", "björk"])
def test_a_link_names_any_owner(roles: RoleHarness, mailbox: Mailbox, owner: str) -> None:
    """However many bytes the owner has."""
    put(roles, "somebody@example.com", owner)
    start(roles, "admin", owner)
    assert roles.ask(None, "POST", mailbox.link, Origin="null").status_code == 200
    assert is_verified(roles, owner)


@pytest.mark.parametrize("change", ["cut", "other", "owner", "no dot", "not base64"])
def test_a_link_that_was_made_up_verifies_nothing(roles: RoleHarness, mailbox: Mailbox, change: str) -> None:
    """Nor does one that was cut, or made for somebody else; all get the same page."""
    put(roles, "bob@example.com", "bob")
    start(roles)
    root, _, token = mailbox.link.rpartition("/")
    owner, _, secret = token.partition(".")
    forged = {
        "cut": token[:-1],
        "other": f"{owner}.{'A' * 43}",
        "owner": f"Ym9i.{secret}",
        "no dot": owner,
        "not base64": f"=é%.{secret}",
    }[change]
    answer = roles.ask(None, "POST", f"{root}/{forged}")
    assert answer.status_code == 404
    assert "over, or was not copied whole" in answer.text
    assert not is_verified(roles)
    assert not is_verified(roles, "bob")


def test_a_code_has_five_tries(roles: RoleHarness, mailbox: Mailbox) -> None:
    """After five wrong ones the right one is worth nothing; a new mail has a new code."""
    start(roles)
    wrong = f"{(int(mailbox.code) + 1) % 10**8:08}"
    for _ in range(5):
        assert confirm(roles, wrong) == 400
    assert confirm(roles, mailbox.code) == 400
    assert not is_verified(roles)
    roles.sim.advance(timedelta(minutes=1))
    start(roles)
    assert confirm(roles, wrong) == 400
    assert confirm(roles, mailbox.code) == 200


def test_code_and_link_are_over_in_time(roles: RoleHarness, mailbox: Mailbox) -> None:
    """The code after an hour, the link after a day; an earlier mail as soon as there is another one."""
    start(roles)
    first = mailbox.link, mailbox.code
    roles.sim.advance(timedelta(minutes=1))
    start(roles)
    assert roles.ask(None, "POST", first[0]).status_code == 404
    assert confirm(roles, first[1]) == 400
    roles.sim.advance(timedelta(hours=1))
    assert confirm(roles, mailbox.code) == 400
    roles.sim.advance(timedelta(hours=23))
    assert roles.ask(None, "POST", mailbox.link).status_code == 404
    assert not is_verified(roles)


def test_what_was_sent_to_one_address_verifies_no_other(roles: RoleHarness, mailbox: Mailbox) -> None:
    """Ada has a mail sent to herself, then enters Eve's address: neither code nor link make it hers."""
    start(roles)
    put(roles, "eve@example.com")
    assert roles.ask(None, "POST", mailbox.link).status_code == 404
    assert confirm(roles, mailbox.code) == 400
    assert not is_verified(roles)


def test_mails_are_limited(roles: RoleHarness, mailbox: Mailbox) -> None:
    """One a minute; five a day to an address, whoever asks; ten a day for an owner, whatever the address."""
    assert start(roles) == 202
    refused = roles.ask("ada", "POST", "/v1/people/ada/email/verify")
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    for number in range(6):
        put(roles, "ada@example.com" if number < 2 else "Ada@Example.com", f"owner-{number}")
        roles.sim.advance(timedelta(minutes=1))
        assert start(roles, "admin", f"owner-{number}") == (202 if number < 4 else 429)
    assert len(mailbox.mails) == 5
    for number in range(10):
        put(roles, f"ada-{number}@example.com")
        roles.sim.advance(timedelta(minutes=1))
        assert start(roles) == (202 if number < 9 else 429)
    roles.sim.advance(timedelta(hours=23))
    assert start(roles) == 429
    roles.sim.advance(timedelta(hours=1))
    assert start(roles) == 202


def test_nobody_else_has_mails_sent_or_confirms(roles: RoleHarness, mailbox: Mailbox) -> None:
    """A stranger learns nothing; readers, viewers and workers may not."""
    start(roles)
    assert start(roles, "bob") == start(roles, "bob", "eve") == 404
    assert confirm(roles, mailbox.code, "bob") == 404
    for who in ("reader", "viewer", "worker"):
        assert start(roles, who) == confirm(roles, mailbox.code, who) == 403
    assert not is_verified(roles)


def test_the_store_has_hashes(roles: RoleHarness, mailbox: Mailbox) -> None:
    """Neither the code nor the link can be read in it."""
    start(roles)
    stored = roles.sim.app.container.store.records.load(ContactSecrets, "ada")
    assert stored is not None
    text = stored.record.to_stored_json() + roles.ask("ada", "GET", "/v1/people/ada").text
    assert mailbox.code not in text
    assert mailbox.link.rpartition(".")[2] not in text


def test_a_mail_that_cannot_be_sent(roles: RoleHarness, mailbox: Mailbox) -> None:
    """An address that takes none is the caller's to correct; a server that is down, or missing, to wait for."""
    mailbox.error = DeliveryRefused("550 no such user")
    refused = roles.ask("ada", "POST", "/v1/people/ada/email/verify")
    assert (refused.status_code, refused.get_json()["field"]) == (400, "email.address")
    roles.sim.advance(timedelta(minutes=1))
    mailbox.error = DeliveryDelayed("The mail server", "it does not answer")
    assert start(roles) == 503
    roles.sim.app.container.replace(mail_sender=None)
    roles.sim.advance(timedelta(minutes=1))
    assert start(roles) == 503
    assert start(roles, "admin", "nobody") == 404


@pytest.mark.usefixtures("mailbox")
def test_an_unsubscribe_link_ends_mails_of_its_category(roles: RoleHarness) -> None:
    """One click, without a credential, as often as you like; opening it changes nothing; other channels stay."""
    url = roles.sim.app.container.unsubscribe_links.make("https://x.example", "ada", Category.REMINDER)
    path = url.removeprefix("https://x.example")
    assert "Unsubscribe" in roles.ask(None, "GET", path).text
    assert roles.ask("ada", "GET", "/v1/people/ada").get_json()["channels"] == {}
    for _ in range(2):
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert roles.ask(None, "POST", path, **form).status_code == 200
        assert roles.ask("ada", "GET", "/v1/people/ada").get_json()["channels"] == {
            "REMINDER": ["WEB", "MOBILE", "WEBHOOK", "OPERATOR"]
        }
    for forged in (path[:-1], path.replace(".", "x"), path.rpartition(".")[0] + "." + "A" * 43, path[:-2] + "é"):
        assert roles.ask(None, "POST", forged).status_code == 404
    nobody = roles.sim.app.container.unsubscribe_links.make("", "nobody", Category.REPORT)
    assert roles.ask(None, "POST", nobody).status_code == 200


def test_links_outlive_the_secret(roles: RoleHarness, mailbox: Mailbox) -> None:
    """Another process, with another secret, honours links of both kinds."""
    app = roles.sim.app
    start(roles)
    link = app.container.unsubscribe_links.make("", "ada", Category.REPORT)
    app.container.__dict__.pop("unsubscribe_links")
    app.container.__dict__.pop("email_verification", None)
    assert app.container.unsubscribe_links.make("", "ada", Category.REPORT) == link
    assert roles.ask(None, "POST", link).status_code == 200
    assert roles.ask(None, "POST", mailbox.link).status_code == 200


def test_the_public_function_serves_links_and_nothing_else(roles: RoleHarness, mailbox: Mailbox) -> None:
    """Beside a private API: confirming, unsubscribing and feeds; whatever the credential, all else is 404."""
    start(roles)
    client = LocalClient(Request.application(lambda request: serve_links(roles.sim.app, request)))
    feed = roles.ask("ada", "POST", "/v1/feeds", {}).get_json()["url"]
    assert client.get(urlsplit(feed).path).status_code == 200
    assert client.get(mailbox.link).status_code == 200
    assert client.post(mailbox.link).status_code == 200
    assert client.post(roles.sim.app.container.unsubscribe_links.make("", "ada", Category.REPORT)).status_code == 200
    links = [each.name for each in OPERATIONS if each.is_link]
    assert links == [
        *("show_verify_link", "follow_verify_link", "show_unsubscribe_link", "follow_unsubscribe_link"),
        "get_feed",
    ]
    for each in OPERATIONS:
        if not each.is_link:
            path = re.sub(r"{\w+}", "ada", each.path)
            assert client.open(path, method=each.method, headers=roles.headers("admin")).status_code == 404, path


def test_what_firebase_has_verified_is_verified(simulate: Callable[..., Simulation]) -> None:
    """Where that is configured: it is the default of a user's own address, and needs no mail; nobody else's is."""
    sim = simulate(access=Access(open=True))
    people = sim.app.container.people
    spec = PersonSpec(email=EmailContact(address="Ada@example.com"))
    assert (
        people.put("ada", spec, proven_address="ada@example.com", by=A_USER).person.verified_address
        == "Ada@example.com"
    )
    other = PersonSpec(email=EmailContact(address="eve@example.com"))
    assert people.put("ada", other, proven_address="ada@example.com", by=A_USER).person.verified_address is None


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "closed"])
def test_a_link_never_begins_with_what_a_request_says(simulate: Callable[..., Simulation], *, is_open: bool) -> None:
    """Without a public address, a mail has a link only where the API is open, and so was called as this machine.

    Otherwise whoever asks for the mail could have the link, and the secret in it, lead to a host of theirs.
    """
    key, kept = create_key("server", Role.ADMIN)
    sim = simulate(access=Access(open=True) if is_open else Access(api_keys=(str(kept),)))
    box = Mailbox()
    sim.app.container.replace(mail_sender=box)
    client = LocalClient(Request.application(lambda request: serve_api(sim.app, request)))

    def ask(host: str, method: str, path: str, body: object) -> tuple[int, Any]:
        headers = {"Host": host} if is_open else {"Host": host, "X-Api-Key": key}
        answer = client.open(path, method=method, json=body, headers=headers)
        return answer.status_code, answer.get_json()

    ada = {"name": "Ada", "email": {"address": "ada@example.com"}}
    assert ask("localhost:1", "PUT", "/v1/people/ada", ada)[0] == 201
    expected = 403 if is_open else 202
    assert ask("evil.example", "POST", "/v1/people/ada/email/verify", {})[0] == expected
    assert ask("evil.example", "POST", "/v1/feeds", {"owner": "ada"})[0] == (403 if is_open else 503)
    sim.advance(timedelta(minutes=1))
    assert ask("localhost:1", "POST", "/v1/people/ada/email/verify", {})[0] == 202
    status, feed = ask("localhost:1", "POST", "/v1/feeds", {"owner": "ada"})
    assert status == (201 if is_open else 503)
    bodies = [message.body for message, _ in box.mails]
    assert not any("evil.example" in body for body in bodies)
    assert ["http" in body for body in bodies] == ([True] if is_open else [False, False])
    assert str(feed.get("url", "")).startswith("http://localhost:1/v1/feeds/" if is_open else "")
    assert len(sim.app.container.many_tasks.feeds.list("ada")) == is_open  # what is refused leaves none behind
