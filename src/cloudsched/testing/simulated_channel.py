"""A channel to people in a simulation: it keeps what it is sent, and fails if the test says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.errors import DeliveryDelayed

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.sender import OutgoingMessage, Recipient


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

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:
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
    message: OutgoingMessage
    """The complete message that the sender got."""
    id: str
    """The channel's name for it, which its record has. The same message has another name when it is sent
    again."""
