"""Post to URLs that users have named.

A URL has to be HTTPS without a password in it, the session that is given decides which addresses may be
reached, redirects are not followed, and of the answer no more is read than is asked for.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from cloudsched.errors import DeliveryDelayed, DeliveryRefused, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import requests


TIMEOUT_SECONDS: Final = 15.0
"""The longest time of a whole request, from the lookup of the host's name to the headers of the answer."""


_LONGEST_WAIT: Final = timedelta(days=1)


MakeSession: TypeAlias = "Callable[..., requests.Session]"
"""Makes a session, given `max_seconds`, that reaches only what users may reach
(`adapters.safe_http.make_session`)."""


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
        if allows_http:
            self._schemes = {"https", "http"}
        else:
            self._schemes = {"https"}
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
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        reads: int = 0,
        refusals: Collection[int] = (),
    ) -> tuple[int, bytes]:
        """Post once to a URL that `require_url` has passed.

        Return the status, and the beginning of the answer.

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
                status = response.status_code
                retry_after = response.headers.get("Retry-After")
                answer = b""
                if reads:
                    answer = next(response.iter_content(reads), b"")
        except InvalidInput as error:
            raise DeliveryRefused(f"{self._what}'s address {error.problem}. {error.hint}") from error
        except (RequestException, OSError, ValueError) as error:
            raise DeliveryDelayed(self._what, f"it did not answer ({type(error).__name__})") from error
        if status not in refusals and not 200 <= status <= 299:  # noqa: PLR2004 - success, RFC 9110
            raise DeliveryDelayed(
                self._what,
                f"it answers {status}",
                parse_retry_after(retry_after, self._now()),
                has_answered=True,
            )
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
