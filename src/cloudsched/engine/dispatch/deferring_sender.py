"""Sends nothing: for a service that has neither the queue nor the secret, such as the public one for links."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from cloudsched.engine.dispatch.sender import DispatchSender
from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.policy import Priority
    from cloudsched.domain.transitions.planning import Dispatch


class DeferringSender(DispatchSender):
    """Leaves every dispatch to the sweep, which sends it within a minute."""

    def __init__(self) -> None: ...

    def send_body(self, name: str, body: bytes, at: datetime, priority: Priority) -> NoReturn:
        """Send nothing. Raises QueueUnavailable."""
        del name, body, at, priority
        _leave()

    def send_dispatch(self, dispatch: Dispatch, priority: Priority, channel: str | None = None) -> NoReturn:
        """Send nothing. Raises QueueUnavailable."""
        del dispatch, priority, channel
        _leave()


def _leave() -> NoReturn:
    raise QueueUnavailable("The queue", "this service has no secret to sign dispatches with; the sweep sends them")
