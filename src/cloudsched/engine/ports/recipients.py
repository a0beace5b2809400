"""The port for recipients: whom a channel reaches for an owner, and whether it may now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.engine.ports.sender import Recipient


@dataclass(frozen=True, slots=True)
class Hold:
    """The person wants to be left alone for now."""

    until: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Suppress:
    """Nothing is sent, now or later."""

    reason: str


class Recipients(Protocol):
    """Knows how people want to be reached.

    * It is asked when something is sent, so that a change that comes late counts.
    """

    def find(
        self, owner: str, channel: str, category: str, now: datetime, held_until: datetime | None
    ) -> tuple[Recipient, ...] | Hold | Suppress:
        """Return whom to send to: one recipient for most channels, one for each device for MOBILE.

        `held_until` is when it was to be tried again, if it was held or has failed before.
        """
        ...

    def callback(self, owner: str, url: str, *, is_users: bool) -> tuple[Recipient, ...] | Suppress:
        """Return the recipient of a task's own completion callback, signed like its owner's webhook.

        If a user may have named the URL (`is_users`), it has to be at the host of the owner's webhook.
        """
        ...

    def unsubscribe_url(self, owner: str, category: str) -> str | None:
        """Return where an owner can end mails of a category without signing in; None if no address is known."""
        ...

    def remove(self, owner: str, channel: str, address: str) -> None:
        """Forget an address that takes no more messages. Safe to repeat."""
        ...
