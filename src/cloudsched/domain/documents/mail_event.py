"""What a mail provider reports about a mail after it has taken it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from cloudsched.domain.documents.document import WireModel

MAX_EVENTS = 1_000
"""How many events one request may have: providers send some hundreds at most."""
MAX_REASON = 500


class MailEventType(StrEnum):
    """What has happened to a mail."""

    DELIVERED = "DELIVERED"
    """It is in the recipient's mailbox."""
    BOUNCED = "BOUNCED"
    """It will not arrive."""
    COMPLAINED = "COMPLAINED"
    """The recipient has called it spam."""


class MailEvent(WireModel):
    """One report of a mail provider."""

    type: MailEventType
    message_id: Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
    """The mail's `Message-ID`, with or without angle brackets."""
    address: Annotated[str, StringConstraints(max_length=1_000)] | None = None
    """The recipient's address. Only if it is given, a complaint or a permanent bounce ends mail to that address."""
    is_permanent: Annotated[bool, Field(strict=True)] = True
    """For a bounce: whether the address takes no mail at all, rather than not this one or not now."""
    reason: Annotated[str, StringConstraints(max_length=10_000)] | None = None
    """What the recipient's mail server has said."""


class MailEvents(WireModel):
    """What a provider reports in one request."""

    events: tuple[MailEvent, ...] = Field(max_length=MAX_EVENTS)
