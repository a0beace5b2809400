"""Whose request it is, in tests that call the engine without a door."""

from __future__ import annotations

from cloudsched import App
from cloudsched.domain.documents.authority import EventSender, Requesters, SenderRole
from cloudsched.engine.authority import OWN_CODE, Authority

A_USER = Authority(
    Requesters.USERS,
    EventSender(role=SenderRole.OWNER, subject="user:ada"),
    owner=None,
    is_valid=lambda: True,
    authorize=lambda _: None,
)
"""A user, whom nothing else limits than what users may name and start."""


def with_authority(requesters: Requesters) -> Authority:
    """Return a user's authority, or that of the app's own code."""
    return A_USER if requesters is Requesters.USERS else OWN_CODE


def as_user(app: App) -> App:
    return app.acting_with(A_USER)
