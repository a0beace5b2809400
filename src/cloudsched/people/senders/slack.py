"""Slack: an app sends direct messages, and its interactivity URL is told of taps (docs.slack.dev).

* Slack signs what it posts: ``v0=`` and the HMAC-SHA256 of ``v0:timestamp:body``, with a timestamp of the
  last five minutes.
* Slack answers 200 also to a message that it refuses, with ``"ok": false`` and the error.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from cloudsched.errors import AddressGone, DeliveryDelayed, DeliveryRefused, InvalidInput, Unauthenticated
from cloudsched.people.senders.chat_app import ChatPosts, Tap, read_path, write_text

if TYPE_CHECKING:
    from datetime import datetime

    from werkzeug.datastructures import Headers

    from cloudsched.adapters.safe_http.user_posts import MakeSession
    from cloudsched.engine.ports.sender import OutgoingMessage, Recipient

ROOT: Final = "https://slack.com/api"
MAX_AGE: Final = timedelta(minutes=5)
"""The age from which a post of Slack's counts as one that somebody has kept."""
_GONE: Final = frozenset({"channel_not_found", "user_not_found", "account_inactive", "is_archived"})
_OPERATORS: Final = frozenset(
    {
        "invalid_auth",
        "not_authed",
        "token_revoked",
        "token_expired",
        "missing_scope",
    }
)
"""The errors that the operator can mend: the message waits."""
_LATER: Final = frozenset(
    {
        "ratelimited",
        "internal_error",
        "fatal_error",
        "service_unavailable",
        "request_timeout",
    }
)


class SlackApp:
    """A `ChatApp` for Slack."""

    def __init__(self, token: str, secret: str, make_session: MakeSession, root: str = ROOT) -> None:
        self._root = root
        self._secret = secret
        self._posts = ChatPosts("Slack", make_session, {"Authorization": f"Bearer {token}"})

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:
        """Send a message to a member, with buttons below a question. Return its time, its name there."""
        content = {"channel": recipient.address, "unfurl_links": False, **_write(write_text(message))}
        if message.question_id:
            buttons = (("Approve", "approve"), ("Reject", "reject"))
            elements = [
                {
                    "type": "button",
                    "text": {"type": "plain_text", "text": text},
                    "action_id": action,
                    "value": message.question_id,
                }
                for text, action in buttons
            ]
            content["blocks"].append({"type": "actions", "elements": elements})
        return str(self._call("chat.postMessage", content).get("ts"))

    def read(self, headers: Headers, body: bytes, now: datetime) -> Tap | dict[str, Any]:
        """Return a tap."""
        self._require_signature(headers, body, now)
        try:
            payload: Any = json.loads(parse_qs(body.decode())["payload"][0])
        except (LookupError, ValueError, RecursionError) as error:
            raise InvalidInput("(body)", "has no payload in JSON") from error

        action = read_path(payload, "actions", 0, "action_id")
        user = read_path(payload, "user", "id")
        if not isinstance(user, str) or action not in {"approve", "reject"}:
            return {}
        return Tap(
            user=user,
            delivery_id=str(read_path(payload, "actions", 0, "value")),
            approved=action == "approve",
            place=(str(read_path(payload, "channel", "id")), str(read_path(payload, "message", "ts"))),
        )

    def _require_signature(self, headers: Headers, body: bytes, now: datetime) -> None:
        timestamp = headers.get("X-Slack-Request-Timestamp", "")
        is_number = timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 12  # noqa: PLR2004 - the year 5138
        age = abs(int(timestamp) - now.astimezone(UTC).timestamp()) if is_number else MAX_AGE.total_seconds() + 1
        signed = b"v0:" + timestamp.encode("utf-8", "surrogatepass") + b":" + body
        proof = "v0=" + hmac.new(self._secret.encode(), signed, hashlib.sha256).hexdigest()
        given = headers.get("X-Slack-Signature", "").encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(given, proof.encode()) or age > MAX_AGE.total_seconds():
            raise Unauthenticated("X-Slack-Signature is none of Slack's for this body, or too old.")

    def show(self, tap: Tap, text: str) -> None:
        """Put a text in the place of a question and its buttons."""
        channel, at = tap.place
        self._call("chat.update", {"channel": channel, "ts": at, **_write(text)})

    def answer(self, tap: Tap, text: str) -> dict[str, Any]:  # noqa: ARG002 - Slack shows none
        """Return nothing: Slack takes any answer as received."""
        return {}

    def _call(self, method: str, content: dict[str, Any]) -> dict[str, Any]:
        status, answer = self._posts.post(f"{self._root}/{method}", content)
        if answer.get("ok") is True:
            return answer
        error = str(answer.get("error", status))[:200]
        if error in _GONE:
            raise AddressGone(f"Slack does not reach this person any more: {error}.")
        if error in _OPERATORS or error in _LATER or "error" not in answer:
            raise DeliveryDelayed("Slack", error, has_answered=True)
        raise DeliveryRefused(f"Slack refuses the message: {error}.")


def _write(text: str) -> dict[str, Any]:
    """Return a text as blocks, and for notifications. Neither has markup, which could call a channel."""
    fallback = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {
        "text": fallback,
        "mrkdwn": False,
        "blocks": [{"type": "section", "text": {"type": "plain_text", "text": text, "emoji": False}}],
    }
