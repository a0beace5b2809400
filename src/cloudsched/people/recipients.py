"""The recipients of a message, by the owner's contacts and preferences at the time it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import CALLBACKS, COMPLETION, PING, Delivery, DeliveryChannel
from cloudsched.domain.documents.person import Person
from cloudsched.engine.ports.sender import Recipient, Suppress
from cloudsched.engine.state.record_changes import change_person, find_record
from cloudsched.people.reach import drop_address, find_obstacle, find_reach, wants
from cloudsched.people.webhook_secrets import WebhookSecrets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore


class PeopleRecipients:
    """Finds recipients. Each look reads one document, and for a webhook also its secrets."""

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

    def find_for(self, owner: str, delivery: Delivery) -> tuple[Recipient, ...] | Suppress:
        """Return the recipients of a delivery, or why nothing may be sent."""
        url = delivery.url or ""
        if delivery.channel == COMPLETION:
            return self.callback(owner, url, is_users=delivery.is_users_url)
        if delivery.channel == PING:
            return self.switch(owner, url, is_users=delivery.is_users_url)
        return self.find(owner, delivery.channel, delivery.category)

    def find(self, owner: str, channel: str, category: str) -> tuple[Recipient, ...] | Suppress:
        """Return the recipients, or why nothing may be sent. MOBILE has one for each device."""
        way = DeliveryChannel(channel)
        if way is DeliveryChannel.OPERATOR:
            return (Recipient(address=""),)  # the sender has its own

        person = find_record(self._records, Person, owner)
        obstacle = find_obstacle(person, Category(category), way)
        if obstacle is not None or person is None:
            return Suppress(obstacle or "", is_unreached=wants(person, Category(category), way))
        addresses = find_reach(person, way).addresses
        if way.traits.is_signed:
            secrets = self._secrets.current(person.owner, person.verified_webhook)
            return tuple(Recipient(address=each, secrets=secrets) for each in addresses)
        return tuple(Recipient(address=each, name=person.name) for each in addresses)

    def callback(self, owner: str, url: str, *, is_users: bool) -> tuple[Recipient, ...] | Suppress:
        """Return the recipient of a task's own completion callback.

        A user's is signed like the owner's webhook. A server's is signed with a secret that no user gets,
        that of the webhook of ``system``. Otherwise the owner could sign what the endpoint takes for the
        server's.
        """
        if not is_users:
            return (Recipient(address=url, secrets=self._secrets.current(SYSTEM_OWNER)),)
        webhook = self._find_webhook_at(owner, url)
        if webhook is None:
            return Suppress("No verified webhook of the person at the host of onCompletion.", is_unreached=True)
        return (Recipient(address=url, secrets=self._secrets.current(owner, webhook)),)

    def switch(self, owner: str, url: str, *, is_users: bool) -> tuple[Recipient, ...] | Suppress:
        """Return the recipient of a ping. A user's has to be at the host of their webhook, or at an allowed one."""
        is_allowed = _read_origin(url) in {("https", each, 443) for each in self._ping_hosts}
        if is_users and not is_allowed and self._find_webhook_at(owner, url) is None:
            why = "No verified webhook of the person at the host of the ping, nor that host in CLOUDSCHED_PING_HOSTS."
            return Suppress(why, is_unreached=True)
        return (Recipient(address=url),)

    def _find_webhook_at(self, owner: str, url: str) -> str | None:
        """Return an owner's verified webhook if it has the scheme, host and port of a URL."""
        person = find_record(self._records, Person, owner)
        if person is None or person.verified_webhook is None:
            return None
        if _read_origin(person.verified_webhook) != _read_origin(url):
            return None
        return person.verified_webhook

    def unsubscribe_url(self, owner: str, category: str) -> str | None:
        """Return where an owner can end mails of a category. The headers of mails take HTTPS only."""
        return self._make_unsubscribe(owner, Category(category))

    def remove(self, owner: str, channel: str, address: str) -> None:
        """Forget a device or a webhook that is gone."""
        if channel in CALLBACKS:
            return
        way = DeliveryChannel(channel)
        change_person(self._records, self._clock, owner, lambda person: drop_address(person, way, address))


def _read_origin(url: str) -> tuple[str, str | None, int | None] | None:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return None
