"""A person's contacts: where each channel reaches them, and what is learned of one of their addresses.

What is learned says nothing if the person has another address by now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, assert_never

from cloudsched.domain.documents.channel import DeliveryChannel
from cloudsched.domain.documents.person import WebhookContact

if TYPE_CHECKING:
    from cloudsched.domain.documents.person import Person

_EMAIL_OBSTACLE: Final = (
    "The person's e-mail address is not verified: neither their ID token nor a server has said that it is theirs."
)
_WEBHOOK_OBSTACLE: Final = "The person's webhook has not proven that it wants messages."


class Reach(NamedTuple):
    """Where a channel reaches a person, or why it does not."""

    addresses: tuple[str, ...]
    """None for a channel that sends to no address of the person's, such as the inbox."""
    obstacle: str | None


def find_reach(person: Person, channel: DeliveryChannel) -> Reach:
    """Return where a channel reaches a person now, or what is missing."""
    match channel:
        case DeliveryChannel.EMAIL:
            return _reach(
                person.verified_address, _EMAIL_OBSTACLE if person.email else "The person has no e-mail address."
            )
        case DeliveryChannel.MOBILE:
            tokens = tuple(each.token for each in person.devices)
            return Reach(tokens, None if tokens else "The person has no device.")
        case DeliveryChannel.WEBHOOK:
            return _reach(
                person.verified_webhook, _WEBHOOK_OBSTACLE if person.webhook else "The person has no webhook."
            )
        case DeliveryChannel.WEB | DeliveryChannel.OPERATOR:
            return Reach((), None)
        case unknown:
            assert_never(unknown)


def _reach(address: str | None, missing: str) -> Reach:
    return Reach((address,), None) if address else Reach((), missing)


def with_verified_webhook(person: Person, url: str) -> Person:
    """Return a person whose webhook has proven that it wants messages."""
    if person.webhook is None or person.webhook.url != url:
        return person
    return person.model_copy(update={"webhook": WebhookContact(url=url, verified=True)})


def without_address(person: Person, channel: DeliveryChannel, address: str) -> Person:
    """Return a person without a device or a webhook that is gone."""
    match channel:
        case DeliveryChannel.MOBILE:
            others = tuple(each for each in person.devices if each.token != address)
            return person.model_copy(update={"devices": others})
        case DeliveryChannel.WEBHOOK:
            is_gone = person.webhook is not None and person.webhook.url == address
            return person.model_copy(update={"webhook": None}) if is_gone else person
        case DeliveryChannel.EMAIL | DeliveryChannel.WEB | DeliveryChannel.OPERATOR:
            return person  # a mail server refuses a mail, which does not make the address another's
        case unknown:
            assert_never(unknown)
