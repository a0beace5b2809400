"""Telegram: a bot sends messages, and its webhook tells of taps (core.telegram.org/bots/api).

* Telegram posts with the header ``X-Telegram-Bot-Api-Secret-Token``, which `setWebhook` was given.
* What a button tells has at most 64 bytes, so it names the delivery of the question.
* The answer to a post may itself be a call of a method, which saves a request.
* 403 means that the person has blocked the bot, or never wrote to it.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Any, Final

from cloudsched.errors import AddressGone, DeliveryDelayed, DeliveryRefused, InvalidInput, Unauthenticated
from cloudsched.people.senders.chat_app import ChatPosts, Tap, read_path, write_text

if TYPE_CHECKING:
    from datetime import datetime

    from werkzeug.datastructures import Headers

    from cloudsched.adapters.safe_http.user_posts import MakeSession
    from cloudsched.engine.ports.sender import OutgoingMessage, Recipient

ROOT: Final = "https://api.telegram.org"
_SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a header's name
_MAX_TOAST: Final = 200
_OK: Final = 200
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403


class TelegramBot:
    """A `ChatApp` for Telegram. Its secret is what Telegram shows when it posts."""

    def __init__(self, token: str, secret: str, make_session: MakeSession, root: str = ROOT) -> None:
        self._root = f"{root}/bot{token}"
        self._secret = secret
        self._posts = ChatPosts("Telegram", make_session, {})

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:
        """Send a message to a chat, with buttons below a question. Return its number there."""
        content: dict[str, Any] = {
            "chat_id": recipient.address,
            "text": write_text(message),
            "link_preview_options": {"is_disabled": True},
        }
        if message.question_id:
            buttons = (("Approve", "y"), ("Reject", "n"))
            row = [{"text": text, "callback_data": f"{mark} {message.question_id}"} for text, mark in buttons]
            content["reply_markup"] = {"inline_keyboard": [row]}

        status, answer = self._posts.post(f"{self._root}/sendMessage", content)
        if status == _OK:
            return str(read_path(answer, "result", "message_id"))
        reason = f"{status} {str(read_path(answer, 'description'))[:200]}"
        if status == _FORBIDDEN:
            raise AddressGone(f"Telegram lets the bot write to this person no more: {reason}.")
        if status == _UNAUTHORIZED:
            raise DeliveryDelayed("Telegram", f"it does not accept the bot's token: {reason}", has_answered=True)
        raise DeliveryRefused(f"Telegram refuses the message: {reason}.")

    def read(self, headers: Headers, body: bytes, now: datetime) -> Tap | dict[str, Any]:  # noqa: ARG002 - Slack's has a time
        """Return a tap. Whoever writes to the bot is told the number of their chat."""
        given = headers.get(_SECRET_HEADER, "").encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(given, self._secret.encode()):
            raise Unauthenticated(f"{_SECRET_HEADER} is not the secret that setWebhook was given.")
        try:
            update: Any = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InvalidInput("(body)", "is not JSON") from error

        mark, _, delivery_id = str(read_path(update, "callback_query", "data")).partition(" ")
        user = read_path(update, "callback_query", "from", "id")
        if isinstance(user, int) and mark in {"y", "n"} and delivery_id:
            message = read_path(update, "callback_query", "message")
            return Tap(
                user=str(user),
                delivery_id=delivery_id,
                approved=mark == "y",
                place=(str(read_path(message, "chat", "id")), str(read_path(message, "message_id"))),
                query=str(read_path(update, "callback_query", "id")),
            )
        chat = read_path(update, "message", "chat", "id")
        if not isinstance(chat, int) or chat <= 0:  # a group, or something else than a message
            return {}
        text = f"This chat is {chat}. Enter that number where you want to be reached here."
        return {"method": "sendMessage", "chat_id": chat, "text": text}

    def show(self, tap: Tap, text: str) -> None:
        """Put a text in the place of a question and its buttons."""
        chat, message = tap.place
        self._posts.post(f"{self._root}/editMessageText", {"chat_id": chat, "message_id": message, "text": text})

    def answer(self, tap: Tap, text: str) -> dict[str, Any]:
        """Return the call that shows a text above the chat."""
        return {"method": "answerCallbackQuery", "callback_query_id": tap.query, "text": text[:_MAX_TOAST]}
