"""Send to the operator's own channels by Apprise: Slack, Telegram, Teams and others (github.com/caronc/apprise).

The addresses contain the operator's secrets, so no error shows one. Apprise does not say why a channel
failed, so every failure is tried again. This process does not repeat a message to channels that took it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from cloudsched.errors import DeliveryDelayed, Misconfigured, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.engine.ports.sender import OutgoingMessage, Recipient

_MAX_REMEMBERED: Final = 1_000
"""The number of messages of which this process remembers the channels that have taken them."""


class AppriseSender:
    """Sends each message to all of the operator's channels."""

    def __init__(self, urls: Sequence[str]) -> None:
        try:
            from apprise import Apprise, NotifyFormat  # noqa: PLC0415 - imported only if it is set up
        except ModuleNotFoundError as error:
            raise MissingExtra("The channel OPERATOR", "apprise", "apprise") from error
        self._format = NotifyFormat.TEXT
        self._channels = []
        for number, url in enumerate(urls, 1):
            channel = Apprise()
            if not channel.add(url):
                raise Misconfigured(f"Address {number} in CLOUDSCHED_APPRISE_URLS is none that Apprise knows.")
            self._channels.append(channel)
        self._taken: OrderedDict[str, set[int]] = OrderedDict()

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:  # noqa: ARG002 - the channels are its own
        """Send a message, and return its id."""
        taken = self._taken.setdefault(message.id, set())
        while len(self._taken) > _MAX_REMEMBERED:
            self._taken.popitem(last=False)
        for number, channel in enumerate(self._channels):
            if number in taken:
                continue
            body = message.body or message.title
            if channel.notify(title=message.title, body=body, body_format=self._format):
                taken.add(number)
        failed = len(self._channels) - len(taken)
        if failed:
            raise DeliveryDelayed(
                "Apprise", f"{failed} of the operator's {len(self._channels)} channels did not take it"
            )
        return message.id
