"""Several messages as one: its title and its body."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.held_batch import HeldItem

_MAX_TITLES = 3


class DigestText(NamedTuple):
    """What one message that stands for several says."""

    title: str
    body: str


def compose_digest(items: Sequence[HeldItem]) -> DigestText:
    """Return one message for several, in the order in which they came; a single one stays as it is."""
    ordered = sorted(items, key=lambda item: (item.created_at, item.delivery_id))
    if len(ordered) == 1:
        return DigestText(ordered[0].title, ordered[0].body)
    shown = ", ".join(item.title for item in ordered[:_MAX_TITLES])
    rest = f" and {len(ordered) - _MAX_TITLES} more" if len(ordered) > _MAX_TITLES else ""
    body = "\n\n\n".join(f"{item.title}\n\n{item.body}".strip() for item in ordered)
    return DigestText(f"{len(ordered)} messages: {shown}{rest}", body)
