"""Links by which a recipient ends mails of one category without signing in (RFC 8058)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.channel import DeliveryChannel
from cloudsched.domain.people.send_decision import without_channel
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from cloudsched.domain.documents.person import Person
    from cloudsched.engine.people.link_tokens import LinkTokens
    from cloudsched.engine.people.people import People

_PURPOSE: Final = "unsubscribe"


class UnsubscribeLinks:
    """Makes such links, and does what they say."""

    def __init__(self, tokens: LinkTokens, people: People) -> None:
        self._tokens = tokens
        self._people = people

    def make(self, root: str, owner: str, category: Category) -> str:
        """Return the address of a link."""
        return f"{root}/v1/links/unsubscribe/{self._tokens.write(_PURPOSE, [owner, category])}"

    def read(self, token: str) -> tuple[str, Category]:
        """Return whom a link is for, by the last part of its path, and which category. Raises NotFound."""
        try:
            owner, category = self._tokens.read(_PURPOSE, token)
            return owner, Category(category)
        except ValueError:
            raise NotFound("link", "…") from None

    def follow(self, token: str) -> Category:
        """End mails of a link's category; return it. Safe to repeat. Raises NotFound."""
        owner, category = self.read(token)

        def drop(person: Person) -> Person:
            channels = without_channel(person, category, DeliveryChannel.EMAIL)
            return person.model_copy(update={"channels": channels})

        self._people.change(owner, drop)
        return category
