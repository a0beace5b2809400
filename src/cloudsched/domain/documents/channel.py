"""The channels by which a result is delivered, and what is true of each: one table, used wherever channels differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.domain.closed_sets import complete_table
from cloudsched.domain.documents.document import StoredEnum

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPLETION: Final = "COMPLETION"
"""The channel of a task's own completion callback, beside those of `DeliveryChannel`."""
PING: Final = "PING"
"""The channel of the pings of a task's dead-man's switch, likewise."""
CALLBACKS: Final = frozenset({COMPLETION, PING})
"""The channels of what a task itself names the address of."""


class DeliveryChannel(StoredEnum):
    """A way to deliver a result."""

    EMAIL = "EMAIL"
    WEB = "WEB"
    """The owner's inbox."""
    MOBILE = "MOBILE"
    WEBHOOK = "WEBHOOK"
    """The owner's own endpoint."""
    OPERATOR = "OPERATOR"
    """The operator's channels, such as a room for alerts. Users may not name it."""

    @property
    def traits(self) -> ChannelTraits:
        """Its row of the table."""
        return _TRAITS[self]


@dataclass(frozen=True, slots=True)
class ChannelTraits:
    """What is true of a channel."""

    is_sent: bool
    """Whether a task of its own carries each result there. What the inbox gets is written with the result."""
    words: str | None
    """What people call it, as a regular expression; None if users may not ask for it, nor prefer it."""
    has_unsubscribe: bool
    """Whether its messages carry a link that ends those of their category."""
    is_signed: bool
    """Whether its messages are signed with secrets of the person's."""

    @property
    def may_users_name(self) -> bool:
        """Return whether users may ask for it, and prefer it."""
        return self.words is not None


_TRAITS: Final[Mapping[str, ChannelTraits]] = complete_table(
    DeliveryChannel,
    {
        DeliveryChannel.EMAIL: ChannelTraits(
            is_sent=True, words=r"e-?mails?|mail", has_unsubscribe=True, is_signed=False
        ),
        DeliveryChannel.WEB: ChannelTraits(is_sent=False, words=r"inbox", has_unsubscribe=False, is_signed=False),
        DeliveryChannel.MOBILE: ChannelTraits(
            is_sent=True,
            words=r"push(?:\s+notifications?|\s+messages?)?|phone|mobile",
            has_unsubscribe=False,
            is_signed=False,
        ),
        DeliveryChannel.WEBHOOK: ChannelTraits(is_sent=True, words=r"webhook", has_unsubscribe=False, is_signed=True),
        DeliveryChannel.OPERATOR: ChannelTraits(is_sent=True, words=None, has_unsubscribe=False, is_signed=False),
    },
)
SENT_CHANNELS: Final = tuple(each for each in DeliveryChannel if each.traits.is_sent)
"""The channels that have a sender, and a queue."""
SENDER_NAMES: Final = (*(str(each) for each in SENT_CHANNELS), COMPLETION, PING)
"""What senders are found by."""
USERS_CHANNELS: Final = tuple(each for each in DeliveryChannel if each.traits.may_users_name)
