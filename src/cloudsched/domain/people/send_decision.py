"""Whether a message may be sent to a person, and by which channels.

It is asked right before sending, so that what the person has changed since counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.channel import DeliveryChannel
from cloudsched.domain.people.contacts import find_reach

if TYPE_CHECKING:
    from cloudsched.domain.documents.category import Category
    from cloudsched.domain.documents.person import Person


def find_obstacle(person: Person | None, category: Category, channel: DeliveryChannel) -> str | None:
    """Return why a person cannot or does not want to be reached by a channel; None if nothing stands in the way."""
    if person is None:
        return "No contacts are stored for the owner."
    if not is_wanted(person, category, channel):
        return f"The person does not want {category} by {channel}."
    return find_reach(person, channel).obstacle


def is_wanted(person: Person, category: Category, channel: DeliveryChannel) -> bool:
    """Return whether the person's preferences allow a channel for a category. The inbox always has everything."""
    allowed = person.channels.get(category)
    return allowed is None or not channel.traits.is_sent or channel in allowed


def default_channels(person: Person | None, category: Category) -> tuple[DeliveryChannel, ...]:
    """Return the delivery channels of a new task that names none."""
    return () if person is None else person.channels.get(category, ())


def without_channel(
    person: Person, category: Category, channel: DeliveryChannel
) -> dict[Category, tuple[DeliveryChannel, ...]]:
    """Return the preferences of a person who no longer wants a category by a channel."""
    allowed = person.channels.get(category, tuple(DeliveryChannel))
    return {**person.channels, category: tuple(each for each in allowed if each is not channel)}
