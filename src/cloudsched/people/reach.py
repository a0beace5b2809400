"""Whether and where a channel reaches a person, and what changes once an address is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, assert_never

from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.person import Person, SlackContact, TelegramContact, WebhookContact, is_wanted

if TYPE_CHECKING:
    from cloudsched.domain.documents.category import Category

_EMAIL_OBSTACLE: Final = (
    "The person's e-mail address is not verified: neither their ID token nor a server has said that it is theirs."
)
_WEBHOOK_OBSTACLE: Final = "The person's webhook has not proven that it wants messages."


class Reach(NamedTuple):
    """Where a channel reaches a person, or why it does not."""

    addresses: tuple[str, ...]
    """Empty for a channel that needs no address of the person, such as the inbox."""
    obstacle: str | None


def find_reach(person: Person, channel: DeliveryChannel) -> Reach:
    """Return the addresses at which a channel reaches a person now, or the obstacle."""
    match channel:
        case DeliveryChannel.EMAIL:
            obstacle = _EMAIL_OBSTACLE if person.email else "The person has no e-mail address."
            return _reach(person.verified_address, obstacle)
        case DeliveryChannel.MOBILE:
            tokens = tuple(each.token for each in person.devices)
            return Reach(tokens, None if tokens else "The person has no device.")
        case DeliveryChannel.WEBHOOK:
            obstacle = _WEBHOOK_OBSTACLE if person.webhook else "The person has no webhook."
            return _reach(person.verified_webhook, obstacle)
        case DeliveryChannel.TELEGRAM | DeliveryChannel.SLACK:
            contact = find_chat(person, channel)
            name = channel.title()
            obstacle = f"The person has no account of {name}."
            if contact is not None:
                obstacle = f"Nobody who reads the person's {name} has confirmed that they want messages there."
            return _reach(contact.id if contact is not None and contact.verified else None, obstacle)
        case DeliveryChannel.WEB | DeliveryChannel.OPERATOR:
            return Reach((), None)
        case unknown:
            assert_never(unknown)


def _reach(verified: str | None, obstacle: str) -> Reach:
    return Reach((verified,), None) if verified else Reach((), obstacle)


def find_chat(person: Person, channel: DeliveryChannel) -> TelegramContact | SlackContact | None:
    """Return a person's account of a chat."""
    return person.telegram if channel is DeliveryChannel.TELEGRAM else person.slack


def with_verified_chat(person: Person, channel: DeliveryChannel, account: str) -> Person:
    """Return a person one of whose chats wants messages, if that still is their account."""
    contact = find_chat(person, channel)
    if contact is None or contact.id != account:
        return person
    return person.model_copy(update={channel.lower(): contact.model_copy(update={"verified": True})})


def with_verified_webhook(person: Person, url: str) -> Person:
    """Return a person whose webhook has proven that it wants messages."""
    if person.webhook is None or person.webhook.url != url:
        return person
    return person.model_copy(update={"webhook": WebhookContact(url=url, verified=True)})


def drop_address(person: Person, channel: DeliveryChannel, address: str) -> Person:
    """Return a person without a device or a webhook that is gone."""
    match channel:
        case DeliveryChannel.MOBILE:
            others = tuple(each for each in person.devices if each.token != address)
            return person.model_copy(update={"devices": others})
        case DeliveryChannel.WEBHOOK:
            is_gone = person.webhook is not None and person.webhook.url == address
            return person.model_copy(update={"webhook": None}) if is_gone else person
        case DeliveryChannel.TELEGRAM | DeliveryChannel.SLACK:
            contact = find_chat(person, channel)
            is_gone = contact is not None and contact.id == address
            return person.model_copy(update={channel.lower(): None}) if is_gone else person
        case DeliveryChannel.EMAIL | DeliveryChannel.WEB | DeliveryChannel.OPERATOR:
            return person  # a mail server that refuses a mail does not say that the address is gone
        case unknown:
            assert_never(unknown)


def wants(person: Person | None, category: Category, channel: DeliveryChannel) -> bool:
    """Return whether a person takes a category by a channel, as far as they have said."""
    return person is None or is_wanted(person, category, channel)


def find_obstacle(person: Person | None, category: Category, channel: DeliveryChannel) -> str | None:
    """Return why a channel may not or cannot reach a person, or None if nothing stands in the way."""
    if person is None:
        return "No contacts are stored for the owner."
    if not wants(person, category, channel):
        return f"The person does not want {category} by {channel}."
    return find_reach(person, channel).obstacle


_THEN: Final = (
    (" is not ", " was not "),
    (" has said that it is theirs", " had said that it was theirs"),
    (" has not proven that it wants ", " had not proven that it wanted "),
    (" who reads ", " who read "),
    (" has confirmed that they want ", " had confirmed that they wanted "),
    ("The person has ", "The person had "),
    ("No contacts are ", "No contacts were "),
    (" does not want ", " did not want "),
    ("The URL of the ping is ", "The URL of the ping was "),
)


def say_then(obstacle: str) -> str:
    """Return an obstacle as the record of what it stopped tells it: the person may have removed it since."""
    for now, then in _THEN:
        obstacle = obstacle.replace(now, then)
    return obstacle


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
