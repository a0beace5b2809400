"""Proof that a chat is a person's own: the chat gets a link, whose page asks whether it wants the messages.

A person may name a stranger's account. So nothing else is sent there until somebody who reads that chat has
pressed the button. Looking at the page changes nothing.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.record import secret_hash
from cloudsched.engine.ports.sender import OutgoingMessage, Recipient
from cloudsched.engine.state.record_changes import change_person, count_recent
from cloudsched.errors import DeliveryDelayed, DeliveryRefused, InvalidInput, NotFound
from cloudsched.people.reach import find_chat, say_not_set_up, with_verified

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.domain.documents.person import Person
    from cloudsched.engine.authority import Authority
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore
    from cloudsched.engine.ports.sender import Sender
    from cloudsched.people.people import People
    from cloudsched.people.signed_links import SignedLinks

MAX_A_DAY: Final = 5
"""The most links to one account, or for one person, within a day."""
INTERVAL: Final = timedelta(minutes=1)
VALIDITY: Final = timedelta(days=1)
_PURPOSE: Final = "contact"


class ContactLinks:
    """Sends such links, and records which accounts want messages."""

    def __init__(
        self, records: RecordStore, clock: Clock, people: People, links: SignedLinks, senders: Mapping[str, Sender]
    ) -> None:
        self._records = records
        self._clock = clock
        self._people = people
        self._links = links
        self._senders = senders

    def send(self, root: str, owner: str, channel: DeliveryChannel, *, by: Authority) -> None:
        """Send a person's chat the link. Raises NotFound, InvalidInput, QuotaExceeded or DeliveryDelayed."""
        by.require_owner(owner)
        field = channel.lower()
        contact = find_chat(self._people.get(owner), channel)
        if contact is None:
            raise InvalidInput(field, "is not set", "Set it first.")
        if contact.verified:
            return
        if channel not in self._senders or not root:
            raise InvalidInput(field, "cannot be asked", f"{say_not_set_up(channel)} It needs CLOUDSCHED_PUBLIC_URL.")
        for kind, name in (("owner", owner), ("account", contact.id)):
            self._count(f"{field} {kind}", name)

        until = self._clock.now() + VALIDITY
        token = self._links.sign(_PURPOSE, [owner, channel, contact.id, until.isoformat()])
        url = f"{root}/v1/links/contact/{token}"
        message = OutgoingMessage(
            id=secrets.token_urlsafe(24),
            thread=secrets.token_urlsafe(24),
            title="Do you want messages here?",
            body=f"Somebody who signs in as {owner} wants the messages of their tasks in this chat. "
            f"If it is you, confirm it within a day: {url}",
            created_at=self._clock.now(),
        )
        try:
            self._senders[channel].send(message, Recipient(address=contact.id))
        except (DeliveryDelayed, DeliveryRefused) as error:
            raise InvalidInput(f"{field}.id", f"cannot be asked: {error}") from error

    def _count(self, kind: str, name: str) -> None:
        count_recent(
            self._records,
            self._clock,
            secret_hash(kind, name),
            limit=MAX_A_DAY,
            span=timedelta(days=1),
            quota="questions to chats a day",
            hint="Each is asked a minute after the last at the earliest.",
            interval=INTERVAL,
        )

    def read(self, token: str) -> tuple[str, DeliveryChannel, str]:
        """Return the person, the channel and the account of a link. Raises NotFound, also if it is too old."""
        owner, channel, account, until = self._links.read(_PURPOSE, token)
        if datetime.fromisoformat(until) <= self._clock.now():
            raise NotFound("link", "…")
        return owner, DeliveryChannel(channel), account

    def follow(self, token: str) -> bool:
        """Record that an account wants messages. Return False if the person has another one by now.

        Raises NotFound.
        """
        owner, channel, account = self.read(token)

        def verify(person: Person) -> Person:
            return with_verified(person, channel, account)

        person = change_person(self._records, self._clock, owner, verify)
        contact = None if person is None else find_chat(person, channel)
        return contact is not None and contact.verified is True and contact.id == account
