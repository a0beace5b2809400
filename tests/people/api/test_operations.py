"""People over HTTP: what is accepted and kept, who may see and change it, and what is never shown."""

from __future__ import annotations

import base64
import logging
from datetime import timedelta
from typing import Any

import pytest
from tests.cases import try_each
from tests.web.callers import RoleHarness
from tests.web.conftest import Call

from cloudsched.domain.documents.person import Person
from cloudsched.people.documents import ContactSecrets
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation

ADA: dict[str, Any] = {
    "name": "Ada Lovelace",
    "email": {"address": "ada@example.com"},
    "devices": [{"token": "dGhpcyBpcyBhIHRva2Vu:APA91b"}],
    "webhook": {"url": "https://example.com/hook"},
    "timezone": "Europe/Paris",
    "locale": "fr-FR",
    "channels": {"REMINDER": ["EMAIL", "WEB"], "REPORT": []},
}


def read_secrets(sim: Simulation) -> tuple[str, ...]:
    return PeopleWiring.of(sim.app.container).people.webhook_secrets.current("ada")


def test_what_was_put_is_returned(call: Call, sim: Simulation) -> None:
    """With all fields and no other of the person's; 201 at first, then 200; after a deletion there is nothing."""
    made = call("PUT", "/v1/people/ada", ADA)
    assert made.status_code == 201, made.text
    got = call("GET", "/v1/people/ada").get_json()
    assert {key: got[key] for key in ADA} == {
        **ADA,
        "email": {"address": "ada@example.com", "verified": False},
        "webhook": {"url": "https://example.com/hook", "verified": False},
    }
    assert set(got) - set(ADA) == {"owner", "createdAt", "updatedAt"}
    assert call("PUT", "/v1/people/ada?replace=true", {"name": "A"}).status_code == 200
    assert set(call("GET", "/v1/people/ada").get_json()) == {
        *("owner", "name", "devices", "channels", "timezone", "createdAt", "updatedAt")
    }
    assert call("DELETE", "/v1/people/ada").status_code == 204
    assert call("GET", "/v1/people/ada").status_code == 404
    assert call("DELETE", "/v1/people/ada").status_code == 404
    assert sim.app.container.store.records.load(ContactSecrets, "ada") is None


@try_each(
    "field, value",
    [
        *[
            ("email.address", {"email": {"address": address}})
            for address in (
                *("ada", "ada@", "@example.com", "a@b@c", "ada@exa mple.com", "ada@-x.com", "a..b@x.com", ".a@x.com"),
                *("ada@example.com\r\nBcc: eve@example.com", "=?utf-8?q?a=0ABcc:x?=@example.com", "ada@[127.0.0.1]"),
                *("ada\u202e@example.com", "Ada <ada@example.com>", "a@x.com,b@x.com", f"{'a' * 65}@x.com"),
                *(f"a@{'x' * 64}.com", f"a@{'.'.join(['x' * 60] * 5)}", "ada@example..com", "a\u200bda@example.com"),
            )
        ],
        ("name", {"name": "Ada\nBcc: eve@example.com"}),
        ("name", {"name": "a" * 201}),
        ("timezone", {"timezone": "Europe/Nowhere"}),
        ("timezone", {"timezone": "../../etc/passwd"}),
        ("locale", {"locale": "fr FR"}),
        ("locale", {"locale": "x\r\n"}),
        ("channels", {"channels": {"REMINDER": ["PIGEON"]}}),
        ("channels", {"channels": {"NOTHING": ["EMAIL"]}}),
        ("channels.REMINDER", {"channels": {"REMINDER": ["EMAIL", "EMAIL"]}}),
        ("devices.0.token", {"devices": [{"token": "a b"}]}),
        ("devices", {"devices": [{"token": f"t{number}"} for number in range(21)]}),
        ("devices", {"devices": [{"token": "t"}, {"token": "t"}]}),
        ("webhook.url", {"webhook": {"url": "file:///etc/passwd"}}),
        ("webhook.url", {"webhook": {"url": "https://user:password@example.com/"}}),
        ("webhook.url", {"webhook": {"url": "https://example.com:99999/"}}),
        ("isAdmin", {"isAdmin": True}),
        ("owner", {"owner": "bob"}),
    ],
)
def test_what_cannot_be_meant_is_refused(call: Call, field: str, value: dict[str, Any]) -> None:
    """Also what would become a header of its own, or leads elsewhere; the problem names the field."""
    refused = call("PUT", "/v1/people/ada", value)
    assert refused.status_code == 400, refused.text
    assert refused.get_json()["field"].startswith(field), refused.text
    assert call("GET", "/v1/people/ada").status_code == 404
    before = call("PUT", "/v1/people/ada", ADA).headers["ETag"]
    in_part = call("PATCH", "/v1/people/ada", value)
    assert (in_part.status_code, in_part.get_json()["field"]) == (400, refused.get_json()["field"])
    assert call("GET", "/v1/people/ada").headers["ETag"] == before
    call("DELETE", "/v1/people/ada")


def test_a_replacement_depends_on_what_was_seen(call: Call) -> None:
    """`If-Match` with the ETag permits what it removes; `*` says that somebody is there, and not what was seen."""
    assert call("PUT", "/v1/people/ada", ADA, headers={"If-Match": "*"}).status_code == 412
    tag = call("PUT", "/v1/people/ada", ADA).headers["ETag"]
    assert call("GET", "/v1/people/ada", headers={"If-None-Match": tag}).status_code == 304
    refused = call("PUT", "/v1/people/ada", {"name": "A"}, headers={"If-Match": "*"})
    assert {each["pointer"] for each in refused.get_json()["errors"]} == {f"#/{name}" for name in ADA if name != "name"}
    assert call("PATCH", "/v1/people/ada", {"name": "A"}, headers={"If-Match": '"other"'}).status_code == 412
    changed = call("PATCH", "/v1/people/ada", {"name": "A"}, headers={"If-Match": tag})
    assert (changed.status_code, changed.get_json()["email"]["address"]) == (200, "ada@example.com")
    assert call("PUT", "/v1/people/ada", {"name": "A"}, headers={"If-Match": tag}).status_code == 412
    seen = {"If-Match": changed.headers["ETag"]}
    assert call("PUT", "/v1/people/ada", {"name": "A"}, headers=seen).status_code == 200
    assert "email" not in call("GET", "/v1/people/ada").get_json()


@pytest.mark.parametrize(
    "url",
    ["http://example.com/", "https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/", "https://10.0.0.1"],
)
def test_a_webhook_leads_to_the_public_internet(roles: RoleHarness, url: str) -> None:
    """By TLS, and to no address within the network; whatever name it has is checked at each connection."""
    refused = roles.ask("ada", "PUT", "/v1/people/ada", {"webhook": {"url": url}})
    assert refused.status_code == 400
    assert refused.get_json()["field"] == "webhook.url"


def test_users_see_and_change_themselves(roles: RoleHarness) -> None:
    """Another person is answered like one that does not exist, byte for byte."""
    assert roles.ask("ada", "PUT", "/v1/people/ada", ADA).status_code == 201
    for method, path, body in (
        ("GET", "/v1/people/{}", None),
        ("PUT", "/v1/people/{}", {}),
        ("PATCH", "/v1/people/{}", {"name": "B"}),
        ("DELETE", "/v1/people/{}", None),
        ("POST", "/v1/people/{}/webhook/rotate", None),
    ):
        taken, nobody = (roles.ask("bob", method, path.format(who), body) for who in ("ada", "eve"))
        assert taken.status_code == nobody.status_code == 404
        assert taken.text.replace("ada", "eve") == nobody.text
    for who in ("reader", "viewer", "admin"):
        assert roles.ask(who, "GET", "/v1/people/ada").status_code == 200


def test_a_webhooks_secret_is_shown_once(call: Call, sim: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    """In the response to what makes it; not in the person's document, which its owner may read, nor in the log.

    A rotated one signs for a day beside the new one, so that a receiver can change it without losing a message; two are
    the most.
    """
    caplog.set_level(logging.DEBUG)
    secret = call("PUT", "/v1/people/ada", ADA).get_json()["webhookSecret"]
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert "webhookSecret" not in call("PUT", "/v1/people/ada", {**ADA, "name": "A"}).get_json()
    assert secret not in call("GET", "/v1/people/ada").text
    stored = sim.app.container.store.records.load(Person, "ada")
    assert stored is not None
    assert secret not in stored.record.to_stored_json()
    assert secret not in caplog.text
    assert read_secrets(sim) == (secret,)
    other = call("PUT", "/v1/people/ada", {**ADA, "webhook": {"url": "https://example.org/"}}).get_json()
    old = other["webhookSecret"]
    assert read_secrets(sim) == (old,) != (secret,)
    new = call("POST", "/v1/people/ada/webhook/rotate").get_json()["webhookSecret"]
    assert read_secrets(sim) == (new, old)
    newest = call("POST", "/v1/people/ada/webhook/rotate").get_json()["webhookSecret"]
    assert read_secrets(sim) == (newest, new)
    sim.advance(timedelta(days=1))
    assert read_secrets(sim) == (newest,)
    call("PATCH", "/v1/people/ada", {"webhook": None})
    assert call("POST", "/v1/people/ada/webhook/rotate").status_code == 400


def test_what_senders_find_out_is_recorded(call: Call, sim: Simulation) -> None:
    """A dead token or webhook is dropped, and only if the person has not changed it meanwhile."""
    call("PUT", "/v1/people/ada", {**ADA, "email": {"address": "ada@example.com", "verified": True}})
    people, recipients = PeopleWiring.of(sim.app.container).people, PeopleWiring.of(sim.app.container).recipients
    recipients.remove("ada", "MOBILE", "other")
    recipients.remove("ada", "WEBHOOK", "https://example.org/")
    kept = people.get("ada")
    assert (len(kept.devices), kept.webhook is not None, kept.verified_address) == (1, True, "ada@example.com")
    recipients.remove("ada", "MOBILE", ADA["devices"][0]["token"])
    recipients.remove("ada", "WEBHOOK", "https://example.com/hook")
    left = people.get("ada")
    assert (left.devices, left.webhook, left.verified_address) == ((), None, "ada@example.com")
    recipients.remove("nobody", "MOBILE", "t")
