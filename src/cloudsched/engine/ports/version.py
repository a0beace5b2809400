"""Versions of stored documents: what a precondition of a commit names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.domain.documents.pull import OfferEntry


@dataclass(frozen=True, slots=True)
class Version:
    """The version of a document that was read. The value is private to the adapter; compare it only for equality."""

    value: object
    offer: OfferEntry | None = None
    """The offer that is stored with this version of a task, so that a commit knows whether to write or delete it."""
