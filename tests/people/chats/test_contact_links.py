"""A chat is a person's own once somebody who reads it has pressed a button: until then nothing else is sent there."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from tests.web.callers import RoleHarness

ACCOUNTS = {"telegram": "4711", "slack": "U0EVE0EVE"}
CHATS = list(ACCOUNTS.items())
MINUTE = timedelta(minutes=1)


def put(roles: RoleHarness, who: str, chat: str, **contact: object) -> int:
    body = {chat: contact}
    return roles.ask(who, "PUT", "/v1/people/ada", body).status_code


def find_link(roles: RoleHarness, chat: str) -> str:
    text = roles.sim.sent(chat.upper())[-1].body
    return urlsplit(text[text.index("https://") :]).path


@pytest.mark.parametrize(("chat", "account"), CHATS)
def test_a_chat_is_asked_and_then_gets_messages(roles: RoleHarness, chat: str, account: str) -> None:
    """Looking at the page confirms nothing; the button does, as often as it is pressed."""
    assert put(roles, "ada", chat, id=account) == 201
    verify = f"/v1/people/ada/chats/{chat}/verify"
    assert roles.ask("ada", "POST", verify).get_json()[chat] == {"id": account, "verified": False}
    (sent,) = roles.sim.sent(chat.upper())
    assert (sent.address, "ada" in sent.body) == (account, True)
    link = find_link(roles, chat)
    for method in ("GET", "HEAD", "GET"):
        assert roles.ask(None, method, link).status_code == 200
    assert roles.ask("ada", "GET", "/v1/people/ada").get_json()[chat]["verified"] is False
    for _ in range(2):
        assert "Confirmed" in roles.ask(None, "POST", link).text
    assert roles.ask("ada", "GET", "/v1/people/ada").get_json()[chat]["verified"] is True
    assert roles.ask("ada", "POST", verify).status_code == 200
    assert len(roles.sim.sent(chat.upper())) == 1


@pytest.mark.parametrize(("chat", "account"), CHATS)
def test_nobody_may_say_so_for_themselves(roles: RoleHarness, chat: str, account: str) -> None:
    """An admin may. Another account is not confirmed, nor is the same one once it was given up."""
    assert put(roles, "ada", chat, id=account, verified=True) == 403
    assert put(roles, "admin", chat, id=account, verified=True) == 201
    assert put(roles, "ada", chat, id=account) == 200
    assert roles.ask("ada", "GET", "/v1/people/ada").get_json()[chat]["verified"] is True
    other = account[:-1] + "9"
    assert roles.ask("ada", "PATCH", "/v1/people/ada", {chat: {"id": other}}).get_json()[chat]["verified"] is False
    assert roles.ask("ada", "PATCH", "/v1/people/ada", {chat: {"id": account}}).get_json()[chat]["verified"] is False


def test_a_link_is_for_one_account_and_a_day(roles: RoleHarness) -> None:
    put(roles, "ada", "telegram", id="4711")
    roles.ask("ada", "POST", "/v1/people/ada/chats/telegram/verify")
    link = find_link(roles, "telegram")
    for forged in (link[:-2], link.replace("contact", "answer"), link + "x"):
        assert roles.ask(None, "POST", forged).status_code == 404
    roles.ask("ada", "PATCH", "/v1/people/ada", {"telegram": {"id": "4712"}})
    assert roles.ask(None, "POST", link).status_code == 410
    roles.ask("ada", "PATCH", "/v1/people/ada", {"telegram": {"id": "4711"}})
    roles.sim.advance(timedelta(days=1, minutes=1))
    assert roles.ask(None, "POST", link).status_code == roles.ask(None, "GET", link).status_code == 404
    assert roles.ask("ada", "GET", "/v1/people/ada").get_json()["telegram"]["verified"] is False


def test_a_stranger_is_not_pestered(roles: RoleHarness) -> None:
    """Once a minute, and five times a day, whoever names the account. Nobody asks for somebody else."""
    put(roles, "ada", "telegram", id="4711")
    verify = "/v1/people/ada/chats/telegram/verify"
    for who in ("bob", "reader", "viewer", "worker"):
        assert roles.ask(who, "POST", verify).status_code in {403, 404}
    assert roles.ask("ada", "POST", "/v1/people/ada/chats/slack/verify").status_code == 400
    assert roles.ask("ada", "POST", "/v1/people/ada/chats/fax/verify").status_code == 404
    assert not roles.sim.sent("TELEGRAM")
    statuses = []
    for _ in range(7):
        statuses += [roles.ask("ada", "POST", verify).status_code, roles.ask("ada", "POST", verify).status_code]
        roles.sim.advance(MINUTE)
    assert statuses.count(200) == 5
    assert set(statuses) == {200, 429}
    roles.ask("bob", "PATCH", "/v1/people/bob", {"telegram": {"id": "4711"}})
    assert roles.ask("bob", "POST", "/v1/people/bob/chats/telegram/verify").status_code == 429


@pytest.mark.parametrize(
    ("chat", "account"),
    [("telegram", "-100123"), ("telegram", "@ada"), ("telegram", "0"), ("slack", "C012AB3CD"), ("slack", "#general")],
)
def test_an_account_is_one_persons(roles: RoleHarness, chat: str, account: str) -> None:
    """Neither a group nor a channel: its members could answer in the name of the person."""
    assert put(roles, "admin", chat, id=account, verified=True) == 400
