"""What is learned of a person's contacts: that they are verified, or take no messages any more.

Each is about one address, and says nothing if the person has another one by now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from cloudsched.domain.documents.channel import DeliveryChannel
from cloudsched.domain.documents.person import EmailContact, WebhookContact

if TYPE_CHECKING:
    from cloudsched.domain.documents.person import AddressProblem, Person


def with_verified_email(person: Person, address: str) -> Person:
    """Return a person whose address is known to be theirs."""
    if person.email is None or person.email.address != address:
        return person
    return person.model_copy(update={"email": EmailContact(address=address, verified=True)})


def with_rejected_email(person: Person, address: str, problem: AddressProblem) -> Person:
    """Return a person to whose address nothing is sent until it is verified again."""
    if person.email is None or person.email.address.casefold() != address.casefold():
        return person
    rejected = EmailContact(address=person.email.address, verified=False, problem=problem)
    return person.model_copy(update={"email": rejected})


def with_verified_webhook(person: Person, url: str) -> Person:
    """Return a person whose webhook has proven that it wants messages."""
    if person.webhook is None or person.webhook.url != url:
        return person
    return person.model_copy(update={"webhook": WebhookContact(url=url, verified=True)})


def without_address(person: Person, channel: DeliveryChannel, address: str, problem: AddressProblem) -> Person:
    """Return a person without a device or a webhook that is gone; an e-mail address is rejected instead."""
    match channel:
        case DeliveryChannel.MOBILE:
            others = tuple(each for each in person.devices if each.token != address)
            return person.model_copy(update={"devices": others})
        case DeliveryChannel.WEBHOOK:
            is_gone = person.webhook is not None and person.webhook.url == address
            return person.model_copy(update={"webhook": None}) if is_gone else person
        case DeliveryChannel.EMAIL:
            return with_rejected_email(person, address, problem)
        case DeliveryChannel.WEB | DeliveryChannel.OPERATOR:
            return person  # neither is an address of the person's
        case unknown:
            assert_never(unknown)
