"""Telegram: messages go out as text, questions with two buttons, and a tap counts if it is the person's own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.people.chats.conftest import SECRET, TOKEN, Service, ask, find_account, find_question, find_result
from tests.people.senders.messages import make_message
from tests.web.callers import RoleHarness
from werkzeug.test import TestResponse

from cloudsched.engine.ports.sender import Recipient
from cloudsched.errors import AddressGone, DeliveryDelayed, DeliveryRefused
from cloudsched.people.senders.telegram import TelegramBot

CHAT = Recipient(address="4711")
HEADER = {"X-Telegram-Bot-Api-Secret-Token": SECRET}


def tap(roles: RoleHarness, user: int, data: str, **headers: str) -> TestResponse:
    message = {"chat": {"id": user}, "message_id": 7}
    query = {"id": "q1", "from": {"id": user}, "message": message, "data": data}
    return roles.ask(None, "POST", "/v1/links/telegram", {"callback_query": query}, **(headers or HEADER))


def test_a_message_is_text_and_a_question_has_two_buttons(bot: TelegramBot, service: Service) -> None:
    """No markup is read in it. What a button says fits Telegram's 64 bytes. A long one is cut to what it takes."""
    assert bot.send(make_message(title="<b>Tea</b>", body="*Now*\u202e!"), CHAT) == "7"
    assert bot.send(make_message(title="Tea?", body="Tea?", question_id="d" + "0" * 31), CHAT) == "7"
    (path, plain), (_, asking) = service.calls
    assert path == f"/bot{TOKEN}/sendMessage"
    assert (plain["chat_id"], plain["text"]) == ("4711", "<b>Tea</b>\n\n*Now*!")
    assert "parse_mode" not in plain
    assert "reply_markup" not in plain
    ((approve, reject),) = asking["reply_markup"]["inline_keyboard"]
    assert (approve["text"], reject["text"], asking["text"]) == ("Approve", "Reject", "Tea?")
    assert max(len(each["callback_data"].encode()) for each in (approve, reject)) <= 64
    bot.send(make_message(title="", body="ä" * 10_000), CHAT)
    bot.send(make_message(title="", body=""), CHAT)
    assert 0 < len(service.calls[2][1]["text"]) <= 4096
    assert service.calls[3][1]["text"], "Telegram refuses an empty text"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, DeliveryRefused),
        (401, DeliveryDelayed),
        (403, AddressGone),
        (429, DeliveryDelayed),
        (502, DeliveryDelayed),
    ],
)
def test_an_error_says_whether_to_try_again(
    bot: TelegramBot, service: Service, status: int, error: type[Exception]
) -> None:
    """Never with the token, which is part of the address. 429 says when."""
    service.status, service.answer = status, {"ok": False, "description": "no"}
    service.answer_headers = {"Retry-After": "30"}
    with pytest.raises(error) as raised:
        bot.send(make_message(), CHAT)
    assert TOKEN not in str(raised.value)
    if status == 429:
        assert getattr(raised.value, "retry_after", None) == timedelta(seconds=30)


def test_a_service_that_is_away_is_tried_again_and_shows_no_token() -> None:
    away = TelegramBot(TOKEN, SECRET, lambda **_: (_ for _ in ()).throw(OSError(TOKEN)))
    with pytest.raises(DeliveryDelayed) as raised:
        away.send(make_message(), CHAT)
    assert TOKEN not in str(raised.value)


@pytest.mark.parametrize(("mark", "approved"), [("y", True), ("n", False)])
def test_a_tap_answers_and_the_message_shows_it(
    roles: RoleHarness, service: Service, mark: str, *, approved: bool
) -> None:
    """As that person's answer by Telegram. The buttons are gone. A second tap shows the first."""
    task_id = ask(roles)
    user, question = int(find_account(roles, "bob", "TELEGRAM")), find_question(roles, "TELEGRAM")
    said = {True: "Approved by bob", False: "Rejected by bob"}[approved]
    for again in (mark, "y", "n"):
        answer = tap(roles, user, f"{again} {question}").get_json()
        assert (answer["method"], answer["callback_query_id"]) == ("answerCallbackQuery", "q1")
        assert answer["text"].startswith(said)
        path, shown = service.calls[-1]
        assert path.endswith("/editMessageText")
        assert (shown["chat_id"], shown["message_id"]) == (str(user), "7")
        assert "Renew <it>?" in shown["text"]
        assert said in shown["text"]
        assert "reply_markup" not in shown
        assert find_result(roles, task_id) == [approved, "user:bob", "telegram"]


def test_a_tap_of_somebody_else_counts_for_nothing(roles: RoleHarness, service: Service) -> None:
    """A message may be forwarded, or its buttons be made up. Only Telegram may post: it shows the secret it was given.

    A tap that comes when nobody waits any more says so.
    """
    task_id = ask(roles)
    question = find_question(roles, "TELEGRAM")
    eve = int(find_account(roles, "eve", "TELEGRAM"))
    assert tap(roles, eve, f"y {question}").get_json()["text"] == "This was not asked of you."
    bob = int(find_account(roles, "bob", "TELEGRAM"))
    for data in (f"y {find_question(roles, 'SLACK')}", f"y {task_id}", "y nothing", "y ../x", "y ", question, "y"):
        tap(roles, bob, data)
    name = "X-Telegram-Bot-Api-Secret-Token"
    for headers in ({"X-Other": "1"}, {name: ""}, {name: SECRET[:-1]}, {name: SECRET + "x"}, {name: "é"}):
        assert tap(roles, bob, f"y {question}", **headers).status_code == 401
    assert not service.calls
    assert find_result(roles, task_id) == "SUSPENDED"
    roles.sim.app.cancel(task_id)
    roles.sim.advance(timedelta(minutes=1))
    assert "Nobody waits" in tap(roles, bob, f"y {question}").get_json()["text"]


def test_what_is_no_tap_is_taken_and_changes_nothing(roles: RoleHarness) -> None:
    """Telegram repeats what is not taken. What is too large, or no JSON, is refused."""
    queries: list[dict[str, Any]] = [{"data": 1}, {"from": {"id": "1"}}]
    updates: list[dict[str, Any]] = [{}, {"message": []}, {"message": None}]
    for update in (*updates, *({"callback_query": each} for each in queries)):
        answer = roles.ask(None, "POST", "/v1/links/telegram", update, **HEADER)
        assert (answer.status_code, answer.get_json()) == (200, {})
    large = roles.ask(None, "POST", "/v1/links/telegram", {"a": "x" * 30_000_000}, **HEADER)
    assert large.status_code == 413
    assert roles.ask(None, "POST", "/v1/links/telegram", **HEADER).status_code == 400


def test_whoever_writes_to_the_bot_is_told_the_number_of_the_chat(roles: RoleHarness) -> None:
    """A group is told nothing: its members are several people."""
    for chat, told in ((4711, "4711"), (-100, "")):
        update = {"message": {"chat": {"id": chat}, "text": "/start"}}
        answer = roles.ask(None, "POST", "/v1/links/telegram", update, **HEADER).get_json()
        assert told in answer.get("text", "")
        assert bool(answer) == bool(told)


def test_an_answer_counts_also_if_it_cannot_be_shown(roles: RoleHarness, service: Service) -> None:
    task_id = ask(roles)
    service.status = 502
    bob, question = int(find_account(roles, "bob", "TELEGRAM")), find_question(roles, "TELEGRAM")
    assert "Approved" in tap(roles, bob, f"y {question}").get_json()["text"]
    assert find_result(roles, task_id) == [True, "user:bob", "telegram"]
