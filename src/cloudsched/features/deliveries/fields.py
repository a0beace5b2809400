"""What a task says of callbacks and pings, which the ends of its runs send."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypedDict

from cloudsched.domain.documents.delivery_channels import CallbackUrl
from cloudsched.domain.documents.document import (
    InputModel,
    WireModel,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class OnCompletion(InputModel):
    """The receiver of a message when an execution of a task has ended."""

    webhook: CallbackUrl
    """The URL that a webhook is posted to, signed with the owner's webhook secret.

    Users may name only addresses at the host of their own webhook.
    """


class PingEvent(StrEnum):
    """An event of an execution that a dead-man's switch is told."""

    START = "start"
    SUCCESS = "success"
    FAILURE = "fail"
    """It failed, timed out or expired."""


class Ping(InputModel):
    """The dead-man's switch, such as a check of healthchecks.io, that is told when executions begin and end.

    Users may name only addresses at the host of their own webhook, and at hosts that the operator allows.
    """

    url: CallbackUrl
    """Posted to when an execution has succeeded.

    If it has no query, ``/start`` and ``/fail`` are added to it when one begins, and when one has failed,
    timed out or expired, unless `startUrl` and `failureUrl` say otherwise.
    """
    start_url: CallbackUrl | None = None
    """Posted to when an execution begins."""
    failure_url: CallbackUrl | None = None
    """Posted to when an execution has failed, timed out or expired."""

    def address(self, event: PingEvent) -> str | None:
        """Return the URL that an event is posted to, or None if it is not posted."""
        own = {
            PingEvent.START: self.start_url,
            PingEvent.SUCCESS: self.url,
            PingEvent.FAILURE: self.failure_url,
        }[event]
        if own is not None:
            return own
        return None if "?" in self.url else f"{self.url.rstrip('/')}/{event}"


class SpecDeliveryFields(WireModel):
    """The fields that the owner of a task sets."""

    on_completion: OnCompletion | None = None
    """The receiver of a message when an execution has ended, with any status."""
    ping: Ping | None = None
    """The dead-man's switch that is told when an execution begins and ends."""


class TaskDeliveryFields(WireModel):
    """What a stored task tells of its deliveries."""

    @property
    def has_deliveries(self) -> bool:
        """Return whether the end of a run is delivered to somebody, or is the end of a delivery."""
        task: Any = self  # a `Task`, which has these fields
        return task.delivery is not None or bool(task.delivery_channels) or task.on_completion is not None


class DeliveryOptions(TypedDict, total=False):
    """The fields that a call or a creation may set, by their Python names."""

    on_completion: OnCompletion | Mapping[str, Any] | None
    ping: Ping | Mapping[str, Any] | None
