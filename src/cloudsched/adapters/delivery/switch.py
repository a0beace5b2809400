"""Ping a dead-man's switch that a task names, such as a check of healthchecks.io.

The URL may be a user's (`UserPosts`). What is posted is a line that says which execution it is about; nothing of its
payload or its result.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from cloudsched.adapters.delivery.user_posts import UserPosts
from cloudsched.errors import DeliveryRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.adapters.delivery.user_posts import MakeSession
    from cloudsched.engine.ports.sender import Message, Recipient

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
        self._posts = UserPosts("The ping", "https://hc-ping.com/ID", make_session, allows_http=allows_http, now=now)

    def send(self, message: Message, recipient: Recipient) -> str:
        """Post a message's text, and return its id."""
        self._posts.require_url(recipient.address)
        headers = {"Content-Type": "text/plain"}
        status, _ = self._posts.post(recipient.address, message.body.encode(), headers, refusals=_REFUSALS)
        if status in _REFUSALS:
            raise DeliveryRefused(f"The ping is answered {status}: there is no such check.")
        return message.id
