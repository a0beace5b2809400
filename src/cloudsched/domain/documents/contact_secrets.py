"""What proves things about a person's contacts, apart from the person's own document, which the owner may read.

``contactSecrets/{owner}``. No rule lets a client read it.
"""

from __future__ import annotations

from typing import ClassVar

from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.record import Record


class WebhookSecret(WireModel):
    """What messages to a webhook are signed with."""

    value: str
    """As the receiver has it: ``whsec_`` and Base64."""
    until: Instant | None = None
    """Until when it signs, if a newer one has replaced it."""


class ContactSecrets(Record):
    """A person's secrets. The id is the owner."""

    collection: ClassVar[str] = "contactSecrets"

    webhook_url: str | None = None
    """The webhook that the secrets are for."""
    webhook_secrets: tuple[WebhookSecret, ...] = ()
    """The newest first."""
