"""The people of a simulation, whose addresses its channels know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.delivery_channels import COMPLETION, PING
from cloudsched.people.recipients import PeopleRecipients

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from cloudsched.domain.documents.category import Category
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore
    from cloudsched.engine.ports.sender import Recipient, Suppress
    from cloudsched.testing.simulated_channel import SimulatedChannel


class SimulatedRecipients(PeopleRecipients):
    """The stored people, as in production.

    It notes the owner of each address for the channels' sent messages.
    """

    def __init__(
        self,
        records: RecordStore,
        clock: Clock,
        channels: Mapping[str, SimulatedChannel],
        make_unsubscribe: Callable[[str, Category], str | None],
        ping_hosts: Collection[str] = (),
    ) -> None:
        super().__init__(records, clock, make_unsubscribe, ping_hosts)
        self._channels = channels

    def find(self, owner: str, channel: str, category: str) -> tuple[Recipient, ...] | Suppress:
        """Return the recipients, or the reason why nothing may be sent."""
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
