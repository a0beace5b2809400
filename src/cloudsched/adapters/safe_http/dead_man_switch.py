"""Call a dead-man's switch, a service elsewhere that alerts when it has not been called for a while.

A task may name one for its deliveries, such as a check of healthchecks.io: the URL may be a user's
(`UserPosts`), and what is posted is a line that says which execution it is about, nothing of its payload or
its result. The operator may name others, which are called after each sweep.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cloudsched.adapters.safe_http.user_posts import MakeSession, UserPosts
from cloudsched.domain.own_logger import own_logger
from cloudsched.errors import CloudschedError, DeliveryRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    import requests

    from cloudsched.engine.ports.sender import OutgoingMessage, Recipient

_REFUSALS: Final = frozenset({404, 410})
"""The answers of a check that is gone: it will not come back by itself."""


class PingSender:
    """Posts a line to a URL. Its arguments are those of `UserPosts`."""

    def __init__(
        self, make_session: MakeSession, *, allows_http: bool = False, now: Callable[[], float] = time.time
    ) -> None:
        self._posts = UserPosts(
            "The ping",
            "https://hc-ping.com/ID",
            make_session,
            allows_http=allows_http,
            now=now,
        )

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:
        """Post a message's text, and return its id."""
        self._posts.require_url(recipient.address)
        headers = {"Content-Type": "text/plain"}
        status, _ = self._posts.post(recipient.address, message.body.encode(), headers, refusals=_REFUSALS)
        if status in _REFUSALS:
            raise DeliveryRefused(f"The ping is answered {status}: there is no such check.")
        return message.id


log: Final = own_logger(__name__)

WAIT: Final = 5.0
"""The seconds that a caller waits, and the longest time of a call, but for the lookup of a name."""
MAX_ANSWER: Final = 64_000
"""The most bytes of an answer that are received. None is looked at."""
PLACE: Final = "{overdue}"
_OWN_NETWORKS: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
"""The networks in which a switch of the operator's own may be, besides the internet. No metadata server is in
these."""
_OWN_MACHINE: Final = ("127.0.0.0/8", "::1/128")


def list_reachable(*, is_deployed: bool) -> tuple[str, ...]:
    """Return the networks that a switch may be in. In the cloud no service on this machine is of use."""
    if is_deployed:
        return _OWN_NETWORKS
    return (*_OWN_NETWORKS, *_OWN_MACHINE)


class SwitchCaller:
    """Calls addresses, one at a time, each in a thread of its own.

    An address with ``{overdue}`` in it is fetched with the seconds in that place. Any other one is posted a
    line of text. Redirects are not followed. No line of the log has an address: whoever knows it can silence
    the alarm.
    """

    def __init__(self, make_session: Callable[[], requests.Session]) -> None:
        self._make_session = make_session
        self._call: threading.Thread | None = None

    def call(self, address: str, overdue: float, text: str) -> None:
        """Call an address, and wait `WAIT` for that at most.

        Never raise. A call that still goes on is not joined.
        """
        if self._call is not None and self._call.is_alive():
            log.warning("the last call of the switch has not ended", extra={"action": "ping_failed"})
            return
        self._call = threading.Thread(
            target=self._send, args=(address, overdue, text), name="cloudsched-switch", daemon=True
        )
        self._call.start()
        self._call.join(WAIT)

    def _send(self, address: str, overdue: float, text: str) -> None:
        try:
            problem = self._request(address, overdue, text)
        except (OSError, ValueError, CloudschedError) as error:  # `requests` derives its errors from OSError
            problem = type(error).__name__
        except Exception as error:  # noqa: BLE001 - whatever it is, it is logged here and nowhere else
            problem = f"unexpected {type(error).__name__}"
        if problem:
            host = urlsplit(address).hostname
            log.warning("the switch at %s: %s", host, problem, extra={"action": "ping_failed"})

    def _request(self, address: str, overdue: float, text: str) -> str:
        """Call an address, and return what is wrong with the answer, if anything is."""
        method, data = ("GET", None) if PLACE in address else ("POST", text.encode())
        url = address.replace(PLACE, str(int(overdue)))
        headers = {"User-Agent": "cloudsched", **({} if data is None else {"Content-Type": "text/plain"})}
        with (
            self._make_session() as session,
            session.request(
                method, url, data=data, headers=headers, timeout=WAIT, allow_redirects=False, stream=True
            ) as response,
        ):
            is_success = 200 <= response.status_code <= 299  # noqa: PLR2004 - RFC 9110
            if is_success:
                return ""
            return f"it answers {response.status_code}"
