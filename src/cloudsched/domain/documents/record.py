"""Documents that callers write as a whole: each has an id, an owner, and nothing that follows from it."""

from __future__ import annotations

import hashlib
from typing import Annotated, ClassVar

from pydantic import StringConstraints

from cloudsched.domain.documents.document import Document, Instant
from cloudsched.domain.documents.task import Owner

CountryCode = Annotated[str, StringConstraints(pattern=r"^[A-Z]{2,3}$")]


class Record(Document):
    """A document under its own id in a collection of its kind. ``{collection}/{id}``."""

    collection: ClassVar[str]
    """The collection of its kind."""
    max_per_owner: ClassVar[int] = 100
    """The most of its kind that an owner may have. Lists are not paged."""
    is_exported: ClassVar[bool] = False
    """True if it belongs to the personal data of its owner, which an export contains."""
    is_kept: ClassVar[bool] = False
    """True if it stays when all else that is stored of its owner is deleted."""
    is_listed_by_owner: ClassVar[bool] = True
    """True if an index has the owner. Those of a kind that are only loaded by their ids need none."""

    id: str
    owner: Owner
    created_at: Instant
    updated_at: Instant
    expire_at: Instant | None = None
    """The time from which the store may remove it, or None if never."""


def secret_hash(*parts: str) -> str:
    """Return the hash under which something secret is stored."""
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
