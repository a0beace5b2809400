"""Post to a URL that a user has named.

It has to be HTTPS without a password in it, the session that is given decides which addresses may be reached, redirects
are not followed, and of the answer no more is read than is asked for.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from cloudsched.errors import DeliveryDelayed, DeliveryRefused, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import requests

TIMEOUT_SECONDS: Final = 15.0
"""How long a whole request may take, from the lookup of the host's name to the headers of the answer."""
_LONGEST_WAIT: Final = timedelta(days=1)


class MakeSession(Protocol):
    """Makes a session."""

    def __call__(self, *, max_seconds: float) -> requests.Session:
        """Return a session whose connections last no longer."""
        ...


class UserPosts:
    """Posts to URLs of users, for one purpose.

    Args:
        what: What is posted, as errors call it, such as "The webhook".
        example: A URL as it should be.
        make_session: Makes a session that reaches only what users may reach, and ends connections after `max_seconds`
            (`adapters.safe_http.make_session`).
        allows_http: Whether URLs without TLS are taken: for development on one machine.
        timeout: How many seconds a whole request may take.
        now: The system's clock, in seconds since 1970.
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
        """Check a URL.

        Raises:
            DeliveryRefused: It is none that may be posted to.
        """
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
        """Post once to a URL that `require_url` has passed; return the status, and so many bytes of the answer.

        Args:
            url: The URL.
            body: What is posted.
            headers: Its headers; the user agent is ours.
            reads: How many bytes of the answer are read.
            refusals: The statuses beside 2xx that are returned: for any other, the delivery is to be tried again.

        Raises:
            DeliveryRefused: The address may not be reached.
            DeliveryDelayed: Nobody answered, or not with one of these statuses.
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
    """Return how long to wait, at most a day; None for what is neither seconds nor a date.

    Args:
        text: The header, if there is one.
        now: The system's clock, in seconds since 1970: dates are the other side's.
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
