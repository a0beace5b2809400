"""The arguments by which Python code creates a task, changes one, or calls a handler, for type checkers and editors.

They are `TaskDraft`'s fields by their Python names, in all forms that it reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

from cloudsched.features.fields import CallOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta

    from cloudsched.domain.documents.category import Category
    from cloudsched.domain.documents.children import Child, OnChildFailure
    from cloudsched.domain.documents.delivery_channels import DeliveryChannel
    from cloudsched.domain.documents.person import Device, EmailContact, SlackContact, TelegramContact, WebhookContact
    from cloudsched.domain.documents.policy import CatchUp, CatchUpMode, Overlap, Priority, RetryPolicy, TellFailures
    from cloudsched.domain.documents.script import Script
    from cloudsched.domain.documents.task import Source
    from cloudsched.domain.schedules.schedule import Schedule

    Seconds = timedelta | float | str
    """A length of time: a `timedelta`, a number of seconds, or ISO 8601 (``PT5M``)."""
    ChannelName = Literal["EMAIL", "WEB", "MOBILE", "WEBHOOK", "OPERATOR", "TELEGRAM", "SLACK"]


class CommonFields(CallOptions, total=False):
    """What a call, a creation and a change may set, None for the default. See `TaskSpec`."""

    title: str | None
    description: str | None
    purpose: str | None
    category: Category | Literal["REMINDER", "REPORT", "ANALYSIS", "OTHERS"] | None
    labels: list[str] | tuple[str, ...] | None
    children: Sequence[Child | Mapping[str, Any]] | None
    parallel: bool | None
    on_child_failure: OnChildFailure | Literal["FAIL", "SKIP", "CONTINUE"] | None
    script: Script | Mapping[str, Any] | None
    delivery_channels: Sequence[DeliveryChannel | ChannelName] | None
    delivery_title: str | None
    tell_failures: TellFailures | Literal["FIRST", "EACH", "NEVER"] | None
    query_per_execution: float | None
    tokens_per_execution: float | None
    source: Source | Mapping[str, Any] | None
    priority: Priority | Literal["CRITICAL", "HIGH", "NORMAL", "LOW"] | None
    retry: RetryPolicy | Mapping[str, Any] | int | bool | None
    expected_duration: Seconds | None
    until: datetime | str | None
    max_runs: int | None
    jitter: Seconds | None
    overlap: Overlap | Literal["SKIP", "BUFFER", "ALLOW"] | None
    catch_up: CatchUp | CatchUpMode | Literal["LATEST", "ALL", "NONE"] | Mapping[str, Any] | None
    expiration: Seconds | None
    pause_after_failures: int | None
    execution_retention: timedelta | str | None
    retention: timedelta | str | None


class PersonFields(TypedDict, total=False):
    """What may be stored of a person, None for nothing. See ``docs/guides/delivery.md``."""

    name: str | None
    email: EmailContact | Mapping[str, Any] | None
    devices: Sequence[Device | Mapping[str, Any]] | None
    webhook: WebhookContact | Mapping[str, Any] | None
    telegram: TelegramContact | Mapping[str, Any] | None
    slack: SlackContact | Mapping[str, Any] | None
    timezone: str | None
    locale: str | None
    channels: Mapping[Any, Sequence[DeliveryChannel | ChannelName] | None] | None
    """The channels of each category."""


class CallFields(CommonFields, total=False):
    """What a call may set."""

    owner: str


class NewTaskFields(CommonFields, total=False):
    """What a creation may set beside the handler, its payload and the schedule."""

    id: str | None
    timezone: str | None
    locale: str | None


class TaskArguments(NewTaskFields, total=False):
    """What a creation may set. See `TaskDraft`."""

    handler: str | Callable[..., Any]
    payload: Any
    owner: str
    schedule: Schedule | str | Mapping[str, Any] | datetime | None


class RunArguments(NewTaskFields, total=False):
    """What may be set for a task that runs once, now."""

    owner: str


class TaskChanges(CommonFields, total=False):
    """What a change may set."""

    handler: str
    payload: Any
    payload_merge: Mapping[str, Any]
    schedule: Schedule | str | Mapping[str, Any] | datetime | None
    timezone: str | None
    locale: str | None
