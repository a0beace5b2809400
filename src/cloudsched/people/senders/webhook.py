"""Send messages as webhooks, signed as Standard Webhooks asks.

Only an endpoint that is asked whether it wants messages has some bytes of its answer read. They are
compared with what it was asked, and shown to nobody.

Source of webhooks: github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md.
From it:

* ``id.timestamp.body`` is signed. The timestamp is that of the try, by this machine's own clock: receivers
  allow a difference of five minutes, whatever a moved clock of tests says.
* Each of several secrets makes a signature, so that a receiver can change its secret without losing a message.
* Only 2xx is success. 410 ends all sending to that URL, and everything else is tried again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from datetime import UTC
from typing import TYPE_CHECKING, Final

from cloudsched.errors import AddressGone, DeliveryRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.adapters.safe_http.user_posts import MakeSession
    from cloudsched.engine.ports.sender import OutgoingMessage, Recipient


MAX_ANSWER: Final = 1_000
"""The number of bytes of an answer that are read."""
_GONE: Final = 410
_SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - says what follows


class WebhookSender:
    """Posts each message to a URL. Its arguments are those of `UserPosts`."""

    def __init__(
        self,
        make_session: MakeSession,
        *,
        allows_http: bool = False,
        timeout: float | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        from cloudsched.adapters.safe_http.user_posts import (  # noqa: PLC0415 - only when used
            TIMEOUT_SECONDS,
            UserPosts,
        )

        self._posts = UserPosts(
            "The webhook",
            "https://example.com/hook",
            make_session,
            allows_http=allows_http,
            timeout=timeout or TIMEOUT_SECONDS,
            now=now,
        )
        self._now = now

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:
        """Post a message, and return its id."""
        self._post(message, recipient)
        return message.id

    def ask(self, message: OutgoingMessage, recipient: Recipient) -> str:
        """Post a message, and return the beginning of the answer's body."""
        return self._post(message, recipient, reads=MAX_ANSWER).decode("utf-8", "replace")

    def _post(self, message: OutgoingMessage, recipient: Recipient, *, reads: int = 0) -> bytes:
        self._posts.require_url(recipient.address)
        body = write_body(message)
        timestamp = int(self._now())
        headers = {
            "Content-Type": "application/json",
            "webhook-id": message.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": sign(message.id, timestamp, body, recipient.secrets),
        }
        status, answer = self._posts.post(recipient.address, body, headers, reads=reads, refusals=(_GONE,))
        if status == _GONE:
            raise AddressGone("The webhook answers 410 Gone: it wants no more messages.")
        return answer


def write_body(message: OutgoingMessage) -> bytes:
    """Return what is posted. Tries differ at most in how late the message is."""
    data = {"title": message.title, "body": message.body, **message.data}
    body = {"type": message.kind, "timestamp": message.created_at.astimezone(UTC).isoformat(), "data": data}
    return json.dumps(body, separators=(",", ":")).encode()


def sign(message_id: str, timestamp: int, body: bytes, secrets: tuple[str, ...]) -> str:
    """Return the signatures of a try, one for each secret, separated by spaces."""
    if not secrets:
        raise DeliveryRefused("The webhook has no secret to sign with. Set its address again, which makes one.")
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    signatures = (hmac.new(_decode_secret(each), signed, hashlib.sha256).digest() for each in secrets)
    return " ".join(f"v1,{base64.b64encode(each).decode('ascii')}" for each in signatures)


def _decode_secret(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    except ValueError:
        key = b""
    if not key:
        raise DeliveryRefused("A secret of the webhook is not whsec_ and Base64. Set its address again.")
    return key
