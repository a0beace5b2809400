"""Post to URLs that users have named, and send messages as webhooks, signed as Standard Webhooks asks.

A URL has to be HTTPS without a password in it, the session that is given decides which addresses may be reached,
redirects are not followed, and of the answer no more is read than is asked for. Only an endpoint that is asked whether
it wants messages has some bytes of its answer read, which are compared and shown to nobody.

Source of webhooks: github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md. From it:

* ``id.timestamp.body`` is signed. The timestamp is that of the try, on this machine's own clock, because receivers
  allow five minutes, whatever a moved clock of tests says.
* With several secrets there are several signatures, so that a receiver can change its secret without losing a message.
* Only 2xx is success. 410 ends all sending to that URL, and everything else is tried again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from cloudsched.errors import AddressGone, DeliveryDelayed, DeliveryRefused, InvalidInput

if TYPE_CHECKING:
    import requests

    from cloudsched.engine.ports.sender import Message, Recipient

TIMEOUT_SECONDS: Final = 15.0
"""The longest time of a whole request, from the lookup of the host's name to the headers of the answer."""
_LONGEST_WAIT: Final = timedelta(days=1)

MakeSession: TypeAlias = "Callable[..., requests.Session]"
"""Makes a session, given `max_seconds`, that reaches only what users may reach (`adapters.safe_http.make_session`)."""


class UserPosts:
    """Posts to URLs of users, for one purpose.

    `what` names the posts in errors, and `allows_http` is for development on one machine.
    """

    def __init__(
        self,
        what: str,
        example: str,
        make_session: MakeSession,
        *,
        allows_http: bool = False,
        timeout: float = TIMEOUT_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._what = what
        self._hint = f"Give one as {example}."
        self._make_session = make_session
        self._schemes = {"https", "http"} if allows_http else {"https"}
        self._timeout = timeout
        self._now = now

    def require_url(self, url: str) -> None:
        """Check a URL. Raises DeliveryRefused if it is none that may be posted to."""
        try:
            parts = urlsplit(url)
        except ValueError:
            raise DeliveryRefused(f"{self._what}'s address is not a URL. {self._hint}") from None
        if parts.scheme not in self._schemes or not parts.hostname:
            raise DeliveryRefused(f"{self._what}'s address is not an https URL. {self._hint}")
        if parts.username is not None or parts.password is not None:
            raise DeliveryRefused(f"{self._what}'s address contains a user or a password. {self._hint}")

    def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, reads: int = 0, refusals: Collection[int] = ()
    ) -> tuple[int, bytes]:
        """Post once to a URL that `require_url` has passed. Return the status, and so many bytes of the answer.

        Any status but 2xx and the `refusals` is to be tried again: DeliveryDelayed.
        """
        from requests import RequestException  # noqa: PLC0415 - imported when the first one is sent

        try:
            with (
                self._make_session(max_seconds=self._timeout) as session,
                session.post(
                    url,
                    data=body,
                    headers={"User-Agent": "cloudsched", **headers},
                    timeout=self._timeout,
                    allow_redirects=False,
                    stream=True,  # the body of the answer is not read to its end: it can have none
                ) as response,
            ):
                status, retry_after = response.status_code, response.headers.get("Retry-After")
                answer = next(response.iter_content(reads), b"") if reads else b""
        except InvalidInput as error:
            raise DeliveryRefused(f"{self._what}'s address {error.problem}. {error.hint}") from error
        except (RequestException, OSError, ValueError) as error:
            raise DeliveryDelayed(self._what, f"it did not answer ({type(error).__name__})") from error
        if status not in refusals and not 200 <= status <= 299:  # noqa: PLR2004 - success, RFC 9110
            raise DeliveryDelayed(self._what, f"it answers {status}", parse_retry_after(retry_after, self._now()))
        return status, answer


def parse_retry_after(text: str | None, now: float) -> timedelta | None:
    """Return the time to wait, at most a day, None for what is neither seconds nor a date.

    Dates are the other side's, so `now` is the system's clock.
    """
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=min(int(text[:9]), 86_400)), _LONGEST_WAIT)
    try:
        wait = parsedate_to_datetime(text).astimezone(UTC) - datetime.fromtimestamp(now, UTC)
    except (ValueError, OverflowError):
        return None
    return min(max(wait, timedelta(0)), _LONGEST_WAIT)


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
        timeout: float = TIMEOUT_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        example = "https://example.com/hook"
        self._posts = UserPosts("The webhook", example, make_session, allows_http=allows_http, timeout=timeout, now=now)
        self._now = now

    def send(self, message: Message, recipient: Recipient) -> str:
        """Post a message, and return its id."""
        self._post(message, recipient)
        return message.id

    def ask(self, message: Message, recipient: Recipient) -> str:
        """Post a message, and return the beginning of the answer's body."""
        return self._post(message, recipient, reads=MAX_ANSWER).decode("utf-8", "replace")

    def _post(self, message: Message, recipient: Recipient, *, reads: int = 0) -> bytes:
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


def write_body(message: Message) -> bytes:
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
