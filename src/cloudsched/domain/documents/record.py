"""Documents that callers write as a whole: each has an id, an owner, and nothing that follows from it."""

from __future__ import annotations

from typing import ClassVar

from cloudsched.domain.documents.document import Document, Instant
from cloudsched.domain.documents.task import Owner


class Record(Document):
    """A document under its own id in a collection of its kind. ``{collection}/{id}``."""

    collection: ClassVar[str]
    """Where its kind is stored."""
    max_per_owner: ClassVar[int] = 100
    """How many of its kind an owner may have: lists are not paged."""
    is_listed_by_owner: ClassVar[bool] = True
    """Whether an index has the owner. Those of a kind that are only loaded by their ids need none."""

    id: str
    owner: Owner
    created_at: Instant
    updated_at: Instant
    expire_at: Instant | None = None
    """When the store may remove it; None: never."""
