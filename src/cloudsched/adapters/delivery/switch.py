"""Ping a dead-man's switch that a task names, such as a check of healthchecks.io.

The URL may be a user's: it has to be HTTPS without a password in it, the session that is given decides which addresses
may be reached, redirects are not followed, and nothing of the answer is read but its status and ``Retry-After``. What
is posted is a line that says which execution it is about; nothing of its payload or its result.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cloudsched.adapters.delivery.webhook import TIMEOUT_SECONDS, MakeSession, parse_retry_after
from cloudsched.errors import DeliveryDelayed, DeliveryRefused, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.ports.sender import Message, Recipient

_SERVICE: Final = "The ping"
_REFUSALS: Final = frozenset({404, 410})
"""What a check that is gone answers: it will not come back by itself."""


class PingSender:
    """Posts a line to a URL.

    Args:
        make_session: Makes a session that reaches only what users may reach, and ends connections after `max_seconds`.
        allows_http: Whether URLs without TLS are taken: for development on one machine.
        now: The system's clock, in seconds since 1970.
    """

    def __init__(
        self, make_session: MakeSession, *, allows_http: bool = False, now: Callable[[], float] = time.time
    ) -> None:
        self._make_session = make_session
        self._schemes = {"https", "http"} if allows_http else {"https"}
        self._now = now

    def send(self, message: Message, recipient: Recipient) -> str:
        """Post a message's text, and return its id."""
        from requests import RequestException  # noqa: PLC0415 - imported when the first ping is sent

        self._require_url(recipient.address)
        headers = {"Content-Type": "text/plain", "User-Agent": "cloudsched"}
        try:
            with (
                self._make_session(max_seconds=TIMEOUT_SECONDS) as session,
                session.post(
                    recipient.address,
                    data=message.body.encode(),
                    headers=headers,
                    timeout=TIMEOUT_SECONDS,
                    allow_redirects=False,
                    stream=True,  # the body of the answer is not read
                ) as response,
            ):
                status, retry_after = response.status_code, response.headers.get("Retry-After")
        except InvalidInput as error:
            raise DeliveryRefused(f"The ping's address {error.problem}. {error.hint}") from error
        except (RequestException, OSError, ValueError) as error:
            raise DeliveryDelayed(_SERVICE, f"it was not answered ({type(error).__name__})") from error
        if status in _REFUSALS:
            raise DeliveryRefused(f"The ping is answered {status}: there is no such check.")
        if not 200 <= status <= 299:  # noqa: PLR2004 - success, RFC 9110
            raise DeliveryDelayed(_SERVICE, f"it is answered {status}", parse_retry_after(retry_after, self._now()))
        return message.id

    def _require_url(self, url: str) -> None:
        hint = "Give one as https://hc-ping.com/ID."
        try:
            parts = urlsplit(url)
        except ValueError:
            raise DeliveryRefused(f"The ping's address is not a URL. {hint}") from None
        if parts.scheme not in self._schemes or not parts.hostname:
            raise DeliveryRefused(f"The ping's address is not an https URL. {hint}")
        if parts.username is not None or parts.password is not None:
            raise DeliveryRefused(f"The ping's address contains a user or a password. {hint}")
