"""The channels of a simulation: what would be sent is kept, and a test makes a channel fail."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.domain.documents.delivery import COMPLETION, PING, SENDER_NAMES
from cloudsched.engine.delivery.people import PeopleRecipients
from cloudsched.errors import DeliveryDelayed

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

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
    """Whose message it is."""
    address: str
    title: str
    body: str
    message: Message
    """All that the sender was given."""
    id: str
    """What the channel calls it, and what its record says. The same message has another name when it is sent again."""


class SimulatedChannel:
    """One way to people: it takes every message, unless the test says otherwise."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.is_down = False
        """Set it to True to let every message fail until it is False again."""
        self.sent: list[SentMessage] = []
        """What it has taken, in order."""
        self.owners: dict[str, str] = {}
        """Whose addresses are known."""
        self._failures = 0
        self._dropped_answers = 0
        self._clock = clock

    def fails(self, times: int) -> None:
        """Let the next messages fail, so that they are tried again."""
        self._failures += times

    def drops_answers(self, times: int) -> None:
        """Let the next messages be taken without anybody's learning of it, so that they are sent twice."""
        self._dropped_answers += times

    def send(self, message: Message, recipient: Recipient) -> str:
        """Take a message, and give it a name of the channel's own, as mail servers and push services do.

        Raises:
            DeliveryDelayed: The test says so.
        """
        if self.is_down or self._failures:
            self._failures = max(0, self._failures - 1) if not self.is_down else self._failures
            raise DeliveryDelayed(f"The simulated channel {self.name}", "the test lets it fail")
        owner = self.owners.get(recipient.address, "")
        now = self._clock.now()
        name = f"{self.name.lower()}/{len(self.sent) + 1}"
        sent = SentMessage(now, self.name, owner, recipient.address, message.title, message.body, message, name)
        self.sent.append(sent)
        if self._dropped_answers:
            self._dropped_answers -= 1
            raise DeliveryDelayed(f"The simulated channel {self.name}", "the test drops its answer")
        return name


class SimulatedChannels(Mapping[str, SimulatedChannel]):
    """All channels, by name: nothing has to be set up."""

    def __init__(self, clock: Clock) -> None:
        self._channels = {name: SimulatedChannel(name, clock) for name in SENDER_NAMES}

    def __getitem__(self, channel: str) -> SimulatedChannel:
        """Return a channel."""
        return self._channels[channel]

    def __iter__(self) -> Iterator[str]:
        """Return the names."""
        return iter(self._channels)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._channels)

    def find_sent(self, channel: str, to: str | None) -> list[SentMessage]:
        """Return what a channel has taken, all of it or that for an owner or an address."""
        return [each for each in self[channel].sent if to is None or to in {each.owner, each.address}]


class SimulatedRecipients(PeopleRecipients):
    """The stored people, as in production; whose an address is, is noted for what a channel has sent."""

    def __init__(
        self,
        records: RecordStore,
        clock: Clock,
        channels: SimulatedChannels,
        make_unsubscribe: Callable[[str, Category], str | None],
        ping_hosts: Collection[str] = (),
    ) -> None:
        super().__init__(records, clock, make_unsubscribe, ping_hosts)
        self._channels = channels

    def find(self, owner: str, channel: str, category: str) -> tuple[Recipient, ...] | Suppress:
        """Return whom to send to, or why nothing may be sent."""
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
