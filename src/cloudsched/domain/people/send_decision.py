"""Whether a message may be sent to a person now: yes, later, or not at all.

It is asked right before sending, so that what the person has changed since counts. What comes in quiet hours, or for a
digest, is held until one instant, which is the same for all that is held then; so it can be sent in one piece.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.channel import DeliveryChannel
from cloudsched.domain.people.contacts import find_reach
from cloudsched.domain.recurrence.time_zones import EPOCH, load_zone

if TYPE_CHECKING:
    from cloudsched.domain.documents.category import Category
    from cloudsched.domain.documents.person import Person, QuietHours


_DAY: Final = 86_400
_SECOND: Final = timedelta(seconds=1)


def quiet_until(hours: QuietHours, timezone: str, at: datetime) -> datetime:
    """Return the first instant, not before `at`, that is not quiet: `at` itself, or the end of the quiet hours."""
    zone = load_zone(timezone)
    start, until = _to_seconds(hours.start), _to_seconds(hours.until)
    length = (until - start) % _DAY
    seconds = first = (at - EPOCH) // _SECOND
    while True:
        table = zone.table_for(seconds)
        number = bisect_right(table.changes, seconds)
        wall = (seconds + table.offsets[number]) % _DAY
        since_start = (wall - start) % _DAY
        if since_start >= length:
            return at if seconds == first else datetime.fromtimestamp(seconds, UTC)
        end = seconds + length - since_start
        change = table.changes[number] if number < len(table.changes) else table.end
        if end < change:
            return datetime.fromtimestamp(end, UTC)
        seconds = int(change)


def _to_seconds(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return int(hours) * 3600 + int(minutes) * 60


@dataclass(frozen=True, slots=True)
class SendNow:
    """It may be sent."""


@dataclass(frozen=True, slots=True)
class Hold:
    """It has to wait."""

    until: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Suppress:
    """It must not be sent."""

    reason: str


Decision = SendNow | Hold | Suppress


def decide_sending(
    person: Person | None,
    category: Category,
    channel: DeliveryChannel,
    now: datetime,
    *,
    held_until: datetime | None = None,
) -> Decision:
    """Return whether a message may be sent now.

    Args:
        person: The owner's contacts and preferences as they are now; None if there are none.
        category: The category of the task.
        channel: How it is to be sent.
        now: The current time.
        held_until: Until when it was held before, if it was.
    """
    if not channel.traits.is_sent:
        return SendNow()
    obstacle = find_obstacle(person, category, channel)
    if obstacle is not None or person is None:
        return Suppress(obstacle or "")
    until, reason = now, ""
    has_waited = held_until is not None and held_until <= now
    if channel.traits.has_digest and person.digest_schedule is not None and not has_waited:
        next_digest = person.digest_schedule.next_after(now)
        if next_digest is not None:
            until, reason = next_digest, "It waits for the digest."
    if channel.traits.is_held and person.quiet_hours is not None:
        quiet_end = quiet_until(person.quiet_hours, person.timezone, until)
        if quiet_end != until:
            until, reason = quiet_end, reason or "It waits for the end of the quiet hours."
    return SendNow() if until <= now else Hold(until, reason)


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
