"""Whether and where a channel reaches a person, and what changes once an address is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.person import Person, SlackContact, TelegramContact, is_wanted

if TYPE_CHECKING:
    from cloudsched.domain.documents.category import Category


class Reach(NamedTuple):
    """Where a channel reaches a person, or why it does not."""

    addresses: tuple[str, ...]
    """Empty for a channel that needs no address of the person, such as the inbox."""
    obstacle: str | None


def find_reach(person: Person, channel: DeliveryChannel) -> Reach:
    """Return the addresses at which a channel reaches a person now, or the obstacle."""
    match channel:
        case DeliveryChannel.EMAIL:
            return _reach(person.verified_address, person.email, "e-mail address")
        case DeliveryChannel.MOBILE:
            tokens = tuple(each.token for each in person.devices)
            return Reach(tokens, None if tokens else "No device of the person.")
        case DeliveryChannel.WEBHOOK:
            return _reach(person.verified_webhook, person.webhook, "webhook")
        case DeliveryChannel.TELEGRAM | DeliveryChannel.SLACK:
            contact = find_chat(person, channel)
            verified = contact.id if contact is not None and contact.verified else None
            return _reach(verified, contact, f"{channel.title()} account")
        case DeliveryChannel.WEB | DeliveryChannel.OPERATOR:
            return Reach((), None)


def _reach(verified: str | None, contact: object, name: str) -> Reach:
    """Return a verified address, or what is missing. It has no verb, so that a record may have it, too."""
    if verified:
        return Reach((verified,), None)
    return Reach((), f"No {'verified ' if contact else ''}{name} of the person.")


def find_chat(person: Person, channel: DeliveryChannel) -> TelegramContact | SlackContact | None:
    """Return a person's account of a chat."""
    return person.telegram if channel is DeliveryChannel.TELEGRAM else person.slack


def with_verified(person: Person, channel: DeliveryChannel, address: str) -> Person:
    """Return a person whose webhook or chat wants messages, if that still is their address."""
    found = _find_contact(person, channel, address)
    changed = {name: each.model_copy(update={"verified": True}) for name, each in found.items()}
    return person.model_copy(update=changed)


def _find_contact(person: Person, channel: DeliveryChannel, address: str) -> dict[str, Any]:
    """Return a webhook or an account of a chat, by its field, if a person has it at this address."""
    name = channel.lower()
    contact = getattr(person, name)
    has_it = contact is not None and address == getattr(contact, "url" if name == "webhook" else "id")
    return {name: contact} if has_it else {}


def drop_address(person: Person, channel: DeliveryChannel, address: str) -> Person:
    """Return a person without a device or a webhook that is gone."""
    match channel:
        case DeliveryChannel.MOBILE:
            others = tuple(each for each in person.devices if each.token != address)
            return person.model_copy(update={"devices": others})
        case DeliveryChannel.WEBHOOK | DeliveryChannel.TELEGRAM | DeliveryChannel.SLACK:
            return person.model_copy(update=dict.fromkeys(_find_contact(person, channel, address)))
        case DeliveryChannel.EMAIL | DeliveryChannel.WEB | DeliveryChannel.OPERATOR:
            return person  # a mail server that refuses a mail does not say that the address is gone


def wants(person: Person | None, category: Category, channel: DeliveryChannel) -> bool:
    """Return whether a person takes a category by a channel, as far as they have said."""
    return person is None or is_wanted(person, category, channel)


def find_obstacle(person: Person | None, category: Category, channel: DeliveryChannel) -> str | None:
    """Return why a channel may not or cannot reach a person, or None if nothing stands in the way."""
    if person is None:
        return "No contacts of the owner."
    if not wants(person, category, channel):
        return f"Not wanted by the person: {category} by {channel}."
    return find_reach(person, channel).obstacle


def say_not_set_up(channel: str) -> str:
    """Return that nothing here sends by a channel."""
    return f"{channel} is not set up here; see docs/guides/delivery.md."


def drop_channel(
    person: Person,
    category: Category,
    channel: DeliveryChannel,
) -> dict[Category, tuple[DeliveryChannel, ...]]:
    """Return the preferences of a person who no longer wants a category by a channel."""
    allowed = person.channels.get(category, tuple(DeliveryChannel))
    return {**person.channels, category: tuple(each for each in allowed if each is not channel)}
