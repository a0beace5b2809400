"""The built-in handlers of people: deliveries, and the export and the deletion of a person's data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.delivery_channels import DELIVERY_HANDLER
from cloudsched.errors import InvalidInput
from cloudsched.people.wiring import PeopleWiring

if TYPE_CHECKING:
    from cloudsched.domain.transitions.outcome import Outcome
    from cloudsched.engine.handlers.context import Context
    from cloudsched.runtime.container import Container


def deliver(container: Container, ctx: Context, payload: dict[str, Any]) -> Outcome:
    """Send a delivery."""
    return PeopleWiring.of(container).delivery_handler.run(ctx, payload)


def refuse_deliveries(*_: object) -> None:
    """Refuse a task that claims to be a delivery. Raises InvalidInput."""
    hint = "Name the channels in a task's deliveryChannels; a success then creates its deliveries."
    raise InvalidInput("handler", f"is {DELIVERY_HANDLER!r}, whose tasks only the system makes", hint)


def erase(container: Container, ctx: Context, _payload: dict[str, Any]) -> Outcome:
    """Delete all that is stored of the task's owner."""
    return PeopleWiring.of(container).person_erasure.run(ctx)


def export(container: Container, ctx: Context, _payload: dict[str, Any]) -> Outcome:
    """Write down all that is stored of the task's owner."""
    return PeopleWiring.of(container).person_export.run(ctx)
