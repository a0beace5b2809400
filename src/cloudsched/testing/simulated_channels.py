"""The channels to people in a simulation: they keep what they are sent, and fail if the test says so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from cloudsched.domain.documents.delivery_channels import COMPLETION, PING
from cloudsched.engine.delivery.recipients import PeopleRecipients
from cloudsched.errors import DeliveryDelayed

if TYPE_CHECKING:
    from cloudsched.domain.documents.category import Category
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.sender import Message, Recipient, Suppress
    from cloudsched.engine.ports.store import RecordStore


@dataclass(frozen=True, slots=True)
class SentMessage:
    """One message that a channel has taken."""

    at: datetime
    channel: str
    owner: str
    """The owner to whom it was sent."""
    address: str
    title: str
    body: str
    message: Message
    """The complete message that the sender got."""
    id: str
    """The channel's name for it, which its record has. The same message has another name when it is sent
    again."""


class SimulatedChannel:
    """A channel to people. It takes every message, unless the test says otherwise."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.is_down = False
        """Set it to True to let every message fail until it is False again."""
        self.sent: list[SentMessage] = []
        """The messages that it has taken, in order."""
        self.owners: dict[str, str] = {}
        """The owners by their known addresses."""
        self._failures = 0
        self._dropped_answers = 0
        self._clock = clock

    def fails(self, times: int) -> None:
        """Let the next messages fail, so that they are tried again."""
        self._failures += times

    def drops_answers(self, times: int) -> None:
        """Let the next messages be taken without an answer, so that they are sent twice."""
        self._dropped_answers += times

    def send(self, message: Message, recipient: Recipient) -> str:
        """Take a message, and give it a name of the channel's own, as mail servers and push services do.

        Raises:
            DeliveryDelayed: The test lets it fail.
        """
        if self.is_down or self._failures:
            if not self.is_down:
                self._failures -= 1
            raise DeliveryDelayed(f"The simulated channel {self.name}", "the test lets it fail")

        name = f"{self.name.lower()}/{len(self.sent) + 1}"
        self.sent.append(
            SentMessage(
                at=self._clock.now(),
                channel=self.name,
                owner=self.owners.get(recipient.address, ""),
                address=recipient.address,
                title=message.title,
                body=message.body,
                message=message,
                id=name,
            )
        )
        if self._dropped_answers:
            self._dropped_answers -= 1
            raise DeliveryDelayed(f"The simulated channel {self.name}", "the test drops its answer")
        return name


class SimulatedRecipients(PeopleRecipients):
    """The stored people, as in production.

    It notes the owner of each address for the channels' sent messages.
    """

    def __init__(
        self,
        records: RecordStore,
        clock: Clock,
        channels: Mapping[str, SimulatedChannel],
        make_unsubscribe: Callable[[str, Category], str | None],
        ping_hosts: Collection[str] = (),
    ) -> None:
        super().__init__(records, clock, make_unsubscribe, ping_hosts)
        self._channels = channels

    def find(self, owner: str, channel: str, category: str) -> tuple[Recipient, ...] | Suppress:
        """Return the recipients, or the reason why nothing may be sent."""
        found = super().find(owner, channel, category)
        if isinstance(found, tuple):
            self._channels[channel].owners.update({each.address: owner for each in found})
        return found

    def callback(self, owner: str, url: str, *, is_users: bool) -> tuple[Recipient, ...] | Suppress:
        """Return the recipient of a completion callback."""
        self._channels[COMPLETION].owners[url] = owner
        return super().callback(owner, url, is_users=is_users)

    def switch(self, owner: str, url: str, *, is_users: bool) -> tuple[Recipient, ...] | Suppress:
        """Return the recipient of a ping."""
        self._channels[PING].owners[url] = owner
        return super().switch(owner, url, is_users=is_users)
