"""On whose authority something is requested: users may ask for less than servers."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from cloudsched.domain.documents.document import WireModel


class Requesters(StrEnum):
    """Whose request it is; of a handler, whose requests may name it."""

    USERS = "users"
    """Users of the API, who see only their own tasks; servers may do whatever users may."""
    SERVERS = "servers"
    """The app's own code, service accounts and keys with the role ``admin``."""


class SenderRole(StrEnum):
    """What the sender of an event is to the task."""

    OWNER = "owner"
    """The user who owns the task."""
    ADMIN = "admin"
    """A caller with the role ``admin``, or the app's own code."""
    WORKER = "worker"
    """A worker, whose events count only where a handler says so."""


class EventSender(WireModel):
    """Who sent an event."""

    role: SenderRole
    subject: str | None = None
    """The caller as the log names them: ``user:…``, ``account:…`` or ``key:…``; None for the app's own code."""
    via: str | None = None
    """The server that acted for them, named likewise; None if they called the API themselves."""


DEFAULT_SENDERS: Final = (SenderRole.OWNER, SenderRole.ADMIN)
"""Whose events a handler takes if it does not say."""
TRUSTED_CODE: Final = EventSender.model_construct(role=SenderRole.ADMIN)
"""The sender of events that the app's own code sends."""
