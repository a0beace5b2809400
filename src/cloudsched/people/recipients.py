"""The recipients that a channel reaches for an owner, by their contacts and preferences when something is sent."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import CALLBACKS, DeliveryChannel
from cloudsched.domain.documents.person import Person
from cloudsched.engine.ports.sender import Recipient, Suppress
from cloudsched.engine.state.record_changes import change_person
from cloudsched.people.people import WebhookSecrets
from cloudsched.people.reach import drop_address, find_obstacle, find_reach

if TYPE_CHECKING:
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore


class PeopleRecipients:
    """Knows how people want to be reached. One document is read, for a webhook also its secrets.

    It is asked when something is sent, so that a late change still counts.
    """

    def __init__(
        self,
        records: RecordStore,
        clock: Clock,
        make_unsubscribe: Callable[[str, Category], str | None],
        ping_hosts: Collection[str] = (),
    ) -> None:
        self._records = records
        self._make_unsubscribe = make_unsubscribe
        self._ping_hosts = ping_hosts
        self._clock = clock
        self._secrets = WebhookSecrets(records, clock)

    def find(self, owner: str, channel: str, category: str) -> tuple[Recipient, ...] | Suppress:
        """Return the recipients, or why nothing may be sent: one for most channels, one for each device for MOBILE."""
        way = DeliveryChannel(channel)
        if way is DeliveryChannel.OPERATOR:
            return (Recipient(address=""),)  # the sender has its own
        stored = self._records.load(Person, owner)
        person = None if stored is None else stored.record
        obstacle = find_obstacle(person, Category(category), way)
        if obstacle is not None or person is None:
            return Suppress(obstacle or "")
        name, secrets = person.name, tuple[str, ...]()
        if way.traits.is_signed:
            name, secrets = "", self._secrets.current(person.owner, person.verified_webhook)
        return tuple(Recipient(address=each, name=name, secrets=secrets) for each in find_reach(person, way).addresses)

    def callback(self, owner: str, url: str, *, is_users: bool) -> tuple[Recipient, ...] | Suppress:
        """Return the recipient of a task's own completion callback.

        A user's is signed like the owner's webhook. A server's is signed with a secret that no user gets, that of the
        webhook of ``system``: else its owner could sign what its endpoint takes for the server's.
        """
        own = self._find_own(owner, url) if is_users else None
        if is_users and own is None:
            return Suppress("The URL of onCompletion is not at the host of the person's own, verified webhook.")
        return (Recipient(address=url, secrets=self._secrets.current(owner if is_users else SYSTEM_OWNER, own)),)

    def switch(self, owner: str, url: str, *, is_users: bool) -> tuple[Recipient, ...] | Suppress:
        """Return the recipient of a ping: a user's is at the host of their webhook, or at one that is allowed."""
        is_allowed = _read_origin(url) in {("https", each, 443) for each in self._ping_hosts}
        if is_users and not is_allowed and self._find_own(owner, url) is None:
            where = "at the host of the person's own, verified webhook, nor at one of CLOUDSCHED_PING_HOSTS"
            return Suppress(f"The URL of the ping is neither {where}.")
        return (Recipient(address=url),)

    def _find_own(self, owner: str, url: str) -> str | None:
        """Return an owner's verified webhook if it is at the scheme, host and port of a URL."""
        stored = self._records.load(Person, owner)
        own = None if stored is None else stored.record.verified_webhook
        return own if own is not None and _read_origin(own) == _read_origin(url) else None

    def unsubscribe_url(self, owner: str, category: str) -> str | None:
        """Return where an owner can end mails of a category. The headers of mails take HTTPS only."""
        return self._make_unsubscribe(owner, Category(category))

    def remove(self, owner: str, channel: str, address: str) -> None:
        """Forget a device or a webhook that takes nothing any more."""
        if channel not in CALLBACKS:
            way = DeliveryChannel(channel)
            change_person(self._records, self._clock, owner, lambda person: drop_address(person, way, address))


def _read_origin(url: str) -> tuple[str, str | None, int | None] | None:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return None
