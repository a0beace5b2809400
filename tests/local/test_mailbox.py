"""The local stack keeps what it would send, and shows it without letting a mail do anything."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import requests
from tests.cases import try_each
from tests.harness import wait_until
from tests.people.senders.mail_server import serve_mail
from tests.people.senders.messages import ADA, make_message
from werkzeug.test import Client
from werkzeug.wrappers import Request, Response

from cloudsched import App, Settings
from cloudsched.adapters.clocks import SystemClock
from cloudsched.config.access import Access
from cloudsched.engine.ports.sender import Recipient
from cloudsched.local.mailbox import Mailbox
from cloudsched.local.mailbox_page import show_mailbox
from cloudsched.local.stack import run_stack
from cloudsched.people.senders.channel_senders import Senders
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import OWNER_ROLES, Role

DEVICE = "phone:1"
EVIL = '<script>alert(1)</script><img src="https://evil.example/x.png">'


def open_mailbox(**settings: Any) -> tuple[Mailbox, Client]:
    made = Settings(**{"access": Access(open=True), **settings})
    mailbox = Mailbox(made, SystemClock(), lambda: None)

    @Request.application
    def answer(request: Request) -> Response:
        return show_mailbox(request, mailbox, made)

    return mailbox, Client(answer)


def test_a_task_reaches_the_mailbox_of_the_local_stack(app: App) -> None:
    """The mail is there as it would be sent, and nothing was sent."""
    app.handler("say")(lambda: "Water the plants")
    with run_stack(app, base=Settings(default_lead=timedelta(0)), store="sqlite") as stack:
        ada = {"email": {"address": "ada@example.com", "verified": True}}
        requests.put(f"{stack.url}/v1/people/ada", json=ada, timeout=60).raise_for_status()
        task = {"owner": "ada", "title": "Plänts", "handler": "say", "deliveryChannels": ["EMAIL"]}
        requests.post(f"{stack.url}/v1/tasks", json=task, timeout=60).raise_for_status()

        def read() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = requests.get(f"{stack.url}/dev/mailbox.json", timeout=60).json()["messages"]
            return found

        wait_until(read, "the mail is there")
        (mail,) = read()
        assert (mail["channel"], mail["to"], mail["subject"], mail["isSent"]) == (
            "EMAIL",
            "ada@example.com",
            "Plänts",
            False,
        )
        assert "Water the plants" in mail["text"]


def test_a_mail_is_shown_in_a_frame_that_loads_and_runs_nothing() -> None:
    """Its HTML is nowhere but in that frame; its source is there, too."""
    mailbox, client = open_mailbox()
    mailbox._template = lambda: lambda _message: EVIL  # noqa: SLF001 - as an app's own template might be
    mailbox.senders["EMAIL"].send(make_message(title=EVIL, body=EVIL), ADA)
    page = client.get("/dev/mailbox")
    assert page.status_code == 200
    assert "<script" not in page.text
    assert "<img" not in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert '<iframe sandbox=""' in page.text
    frame = client.get("/dev/mailbox/1.html")
    assert frame.text.strip() == EVIL
    policy = frame.headers["Content-Security-Policy"].split("; ")
    assert {"sandbox", "default-src 'none'", "img-src data:"} <= set(policy)


def test_pushes_and_webhooks_are_shown_as_json() -> None:
    """As the other side would get them."""
    mailbox, client = open_mailbox()
    mailbox.senders["MOBILE"].send(make_message(), Recipient(address=DEVICE))
    mailbox.senders["WEBHOOK"].send(make_message(), Recipient(address="https://example.com/hook", secrets=("whsec_x",)))
    webhook, push = client.get("/dev/mailbox.json").get_json()["messages"]
    assert push["content"]["message"]["token"] == DEVICE
    assert webhook["content"]["data"]["title"] == "Water the plants"
    assert "whsec_x" not in client.get("/dev/mailbox.json").text
    assert DEVICE in client.get("/dev/mailbox").text
    assert client.get("/dev/mailbox/1.html").status_code == 404


@pytest.mark.parametrize("path", ["", ".json", "/1.html"])
@try_each(
    "headers",
    [
        {"Host": "evil.example:8080"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Host": "localhost.evil.example"},
        {"Host": "10.0.0.7:8080"},
        {"X-Forwarded-For": "10.0.0.7"},
        {"CF-Connecting-IP": "10.0.0.7"},
    ],
)
def test_pages_of_other_places_read_nothing(headers: dict[str, str], path: str) -> None:
    """By their origin, by a name that leads to this machine or through a proxy: links and codes are in mails."""
    mailbox, client = open_mailbox()
    mailbox.senders["EMAIL"].send(make_message(body="code 123456"), ADA)
    refused = client.get(f"/dev/mailbox{path}", headers=headers)
    assert refused.status_code == 403
    assert "123456" not in refused.text


@pytest.mark.parametrize("path", ["", ".json", "/1.html"])
def test_where_there_are_keys_only_an_admin_reads_it(path: str) -> None:
    """Mails are everybody's, and their codes prove addresses; other users of this machine reach the port, too."""
    made = {role: create_key(role, role, "bob" if role in OWNER_ROLES else None) for role in Role}
    mailbox, client = open_mailbox(access=Access(open=True, api_keys=tuple(str(entry) for _, entry in made.values())))
    mailbox.senders["EMAIL"].send(make_message(body="code 123456"), ADA)
    asked = {"nobody": client.get(f"/dev/mailbox{path}"), "wrong": client.get(f"/dev/mailbox{path}", auth=("x", "x"))}
    assert [each.status_code for each in asked.values()] == [401, 401]
    assert asked["nobody"].headers["WWW-Authenticate"].startswith("Basic ")
    for role, (key, _) in made.items():
        for answer in (
            client.get(f"/dev/mailbox{path}", headers={"X-Api-Key": key}),
            client.get(f"/dev/mailbox{path}", auth=("", key)),
        ):
            assert answer.status_code == (200 if role is Role.ADMIN else 403), role
            assert role is Role.ADMIN or "123456" not in answer.text


def test_with_a_mail_server_it_sends_for_real() -> None:
    """And shows what was sent."""
    with serve_mail() as server:
        settings: dict[str, Any] = {
            "smtp_url": f"smtp://127.0.0.1:{server.port}",
            "mail_from": "cloudsched@example.com",
        }
        mailbox, client = open_mailbox(**settings)
        mailbox.pass_on(Senders(Settings(**settings)))
        mailbox.senders["EMAIL"].send(make_message(), ADA)
        (mail,) = server.mails
    (kept,) = client.get("/dev/mailbox.json").get_json()["messages"]
    assert kept["isSent"] is True
    assert kept["messageId"] == mail["Message-ID"]
