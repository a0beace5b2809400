"""Slack: messages go out as blocks of text, questions with two buttons, and only what Slack has signed counts."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.people.chats.conftest import SECRET, Service, ask, find_account, find_question, find_result
from tests.people.senders.messages import make_message
from tests.web.callers import RoleHarness, open_api
from werkzeug.test import TestResponse

from cloudsched.engine.ports.sender import Recipient
from cloudsched.errors import AddressGone, DeliveryDelayed, DeliveryRefused
from cloudsched.people.senders.slack import SlackApp
from cloudsched.web.functions import serve_links

MEMBER = Recipient(address="U012AB3CD")


def sign(body: str, at: str, secret: str = SECRET) -> dict[str, str]:
    proof = hmac.new(secret.encode(), f"v0:{at}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={proof}"}


def write(user: object, question: str, action: str = "approve") -> str:
    actions = [{"action_id": action, "value": question}]
    payload = {"type": "block_actions", "user": {"id": user}, "actions": actions, "channel": {"id": "D1"}}
    return urlencode({"payload": json.dumps({**payload, "message": {"ts": "17.5"}})})


def post(roles: RoleHarness, body: str, headers: dict[str, str] | None = None) -> TestResponse:
    client = open_api(roles.sim.app, serve_links)
    signed = sign(body, str(int(roles.sim.now.timestamp()))) if headers is None else headers
    kind = "application/x-www-form-urlencoded"
    return client.post("/v1/links/slack", data=body, headers=signed, content_type=kind)


def test_a_message_is_text_and_a_question_has_two_buttons(slack: SlackApp, service: Service) -> None:
    """Nothing in it is markup: no text calls a whole channel. A long one is cut to what Slack takes."""
    assert slack.send(make_message(title="<!channel>", body="*Now* & here"), MEMBER) == "17.5"
    slack.send(make_message(title="Tea?", body="Tea?", question_id="d1"), MEMBER)
    (path, plain), (_, asking) = service.calls
    assert path == "/chat.postMessage"
    assert service.headers[0]["Authorization"] == "Bearer xoxb-made-up-token"
    assert (plain["channel"], plain["mrkdwn"]) == ("U012AB3CD", False)
    assert plain["text"].startswith("&lt;!channel&gt;")
    assert plain["blocks"][0]["text"]["type"] == "plain_text"
    buttons = asking["blocks"][1]["elements"]
    assert [(each["text"]["text"], each["value"]) for each in buttons] == [("Approve", "d1"), ("Reject", "d1")]
    assert buttons[0]["action_id"] != buttons[1]["action_id"]
    slack.send(make_message(title="", body="ä" * 10_000), MEMBER)
    assert len(service.calls[2][1]["blocks"][0]["text"]["text"]) <= 3000


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (200, {"ok": False, "error": "channel_not_found"}, AddressGone),
        (200, {"ok": False, "error": "account_inactive"}, AddressGone),
        (200, {"ok": False, "error": "invalid_auth"}, DeliveryDelayed),
        (200, {"ok": False, "error": "ratelimited"}, DeliveryDelayed),
        (200, {"ok": False, "error": "msg_too_long"}, DeliveryRefused),
        (200, ["a proxy"], DeliveryDelayed),
        (429, {}, DeliveryDelayed),
        (500, {}, DeliveryDelayed),
    ],
)
def test_an_error_says_whether_to_try_again(
    slack: SlackApp, service: Service, status: int, answer: object, error: type[Exception]
) -> None:
    service.status, service.answer = status, answer
    with pytest.raises(error) as raised:
        slack.send(make_message(), MEMBER)
    assert "xoxb" not in str(raised.value)


@pytest.mark.parametrize(("action", "approved"), [("approve", True), ("reject", False)])
def test_a_tap_answers_and_the_message_shows_it(
    roles: RoleHarness, service: Service, action: str, *, approved: bool
) -> None:
    """As that person's answer by Slack. The buttons are gone. A second tap shows the first."""
    task_id = ask(roles)
    user, question = find_account(roles, "bob", "SLACK"), find_question(roles, "SLACK")
    said = {True: "Approved by bob", False: "Rejected by bob"}[approved]
    for again in (action, "approve", "reject"):
        assert post(roles, write(user, question, again)).status_code == 200
        path, shown = service.calls[-1]
        assert path == "/chat.update"
        assert (shown["channel"], shown["ts"], len(shown["blocks"])) == ("D1", "17.5", 1)
        assert said in shown["blocks"][0]["text"]["text"]
        assert find_result(roles, task_id) == [approved, "user:bob", "slack"]


def test_a_tap_of_somebody_else_counts_for_nothing(roles: RoleHarness, service: Service) -> None:
    """Only what Slack has signed lately counts: a post that somebody has kept, or changed, is refused.

    A tap after the end says so.
    """
    task_id = ask(roles)
    bob, question = find_account(roles, "bob", "SLACK"), find_question(roles, "SLACK")
    for user in (find_account(roles, "eve", "SLACK"), "", None, {"id": bob}, find_account(roles, "bob", "TELEGRAM")):
        assert post(roles, write(user, question)).status_code == 200
    for wrong in (find_question(roles, "TELEGRAM"), task_id, ""):
        assert post(roles, write(bob, wrong)).status_code == 200
    body = write(bob, question)
    now = int(roles.sim.now.timestamp())
    good = sign(body, str(now))
    unsigned: list[dict[str, str]] = [
        {},
        sign(body, str(now - 301)),
        sign(body, str(now + 301)),
        sign(body, str(now), "another-secret-of-theirs"),
        sign(body + "&", str(now)),
        sign(body, ""),
        sign(body, "9" * 400),
        {**good, "X-Slack-Request-Timestamp": str(now + 1)},
        {**good, "X-Slack-Signature": good["X-Slack-Signature"].replace("v0=", "v1=")},
    ]
    for headers in unsigned:
        assert post(roles, body, headers).status_code == 401, headers
    assert not service.calls
    assert find_result(roles, task_id) == "SUSPENDED"
    roles.sim.advance(timedelta(days=2))
    post(roles, body)
    assert "too late" in service.calls[-1][1]["blocks"][0]["text"]["text"]
    assert find_result(roles, task_id) == "FAILED"


def test_what_is_no_tap_changes_nothing(roles: RoleHarness) -> None:
    """Nor what is too large. A chat that is not set up is not there."""
    from cloudsched.people.wiring import PeopleWiring  # noqa: PLC0415 - for this alone

    for body in ("", "payload=", "payload={", "payload=1", "payload=[]", "x=1", "payload=" + "[" * 9_999):
        assert post(roles, body).status_code in {200, 400}
    assert post(roles, "payload=" + "x" * 30_000_000).status_code == 413
    apps: dict[str, Any] = {}
    PeopleWiring.of(roles.sim.app.container).replace(chat_apps=apps)
    assert post(roles, "").status_code == 404
