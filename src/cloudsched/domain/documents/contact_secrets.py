"""What proves things about a person's contacts, apart from the person's own document, which the owner may read.

``contactSecrets/{owner}``. No rule lets a client read it.
"""

from __future__ import annotations

import hashlib
from typing import ClassVar

from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.record import Record


class WebhookSecret(WireModel):
    """What messages to a webhook are signed with."""

    value: str
    """As the receiver has it: ``whsec_`` and Base64."""
    until: Instant | None = None
    """Until when it signs, if a newer one has replaced it."""


class Verification(WireModel):
    """A mail that asks a person to confirm an address. What it says is stored as hashes."""

    address: str
    link_hash: str
    code_hash: str
    code_tries_left: int
    code_until: Instant
    link_until: Instant


class ContactSecrets(Record):
    """A person's secrets. The id is the owner."""

    collection: ClassVar[str] = "contactSecrets"

    verification: Verification | None = None
    """The latest one, if it is not over."""
    webhook_url: str | None = None
    """The webhook that the secrets are for."""
    webhook_secrets: tuple[WebhookSecret, ...] = ()
    """The newest first."""


class MailLimit(Record):
    """When mails that anybody may cause were sent to an address, or for an owner. ``mailLimits/{id}``."""

    collection: ClassVar[str] = "mailLimits"

    sent_at: tuple[Instant, ...] = ()


class LinkKey(Record):
    """What the links in mails are signed with. ``linkKeys/current``.

    It is made once and stays: links have to work for as long as people keep mails. So it is not the secret that signs
    dispatches, which is rotated.
    """

    collection: ClassVar[str] = "linkKeys"
    is_listed_by_owner: ClassVar[bool] = False

    value: str


def secret_hash(*parts: str) -> str:
    """Return the hash under which something secret is stored."""
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
