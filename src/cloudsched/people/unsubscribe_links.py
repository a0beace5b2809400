"""Links in mails by which a person ends mails of one category, without signing in (RFC 8058)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.engine.state.record_changes import change_person
from cloudsched.errors import NotFound
from cloudsched.people.reach import drop_channel

if TYPE_CHECKING:
    from cloudsched.domain.documents.person import Person
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore
    from cloudsched.people.signed_links import SignedLinks

_PURPOSE: Final = "unsubscribe"


class UnsubscribeLinks:
    """Makes such links, and does what they say."""

    def __init__(self, links: SignedLinks, records: RecordStore, clock: Clock) -> None:
        self._links = links
        self._records = records
        self._clock = clock

    def make(self, root: str, owner: str, category: Category) -> str:
        """Return the address of a link."""
        return f"{root}/v1/links/unsubscribe/{self._links.sign(_PURPOSE, [owner, category])}"

    def read(self, token: str) -> tuple[str, Category]:
        """Return the owner and the category of a link, by the last part of its path. Raises NotFound."""
        owner, category = self._links.read(_PURPOSE, token)
        try:
            return owner, Category(category)
        except ValueError:
            raise NotFound("link", "…") from None

    def follow(self, token: str) -> Category | None:
        """End mails of a link's category, and return it. Safe to repeat. Raises NotFound.

        None if its person has been erased, so that nothing can be stored for them.
        """
        owner, category = self.read(token)

        def drop(person: Person) -> Person:
            channels = drop_channel(person, category, DeliveryChannel.EMAIL)
            return person.model_copy(update={"channels": channels})

        known = change_person(self._records, self._clock, owner, drop)
        return None if known is None else category
