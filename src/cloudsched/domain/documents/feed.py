"""A feed: an owner's tasks as a calendar to subscribe to. ``feeds/{feedId}``.

Whoever knows the feed's secret may read it, as calendar programs cannot log in. The id is the secret's hash, so that
one read finds the feed, and nobody who can read the document learns the secret.
"""

from __future__ import annotations

import hashlib
from typing import ClassVar

from pydantic import Field

from cloudsched.domain.documents.category import Category, Labels
from cloudsched.domain.documents.record import Record


class Feed(Record):
    """What one feed shows."""

    collection: ClassVar[str] = "feeds"
    max_per_owner: ClassVar[int] = 20

    categories: tuple[Category, ...] = Field(default=(), max_length=len(Category))
    """Only tasks of these categories; all if there are none."""
    labels: Labels = ()
    """Only tasks that have all of these labels."""


def feed_id(secret: str) -> str:
    """Return the id of the feed with a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
