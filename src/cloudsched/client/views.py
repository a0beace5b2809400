"""The API's responses as the client returns them. Fields that only a newer API has are kept in `model_extra`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from cloudsched.domain.documents import responses
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.errors import CloudschedError, Unavailable


class _View(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", frozen=True)


class TaskView(_View):
    """A task as returned by the API; unknown fields are kept in `model_extra`."""

    id: str
    owner: str
    title: str
    handler: str
    status: TaskStatus
    revision: int
    schedule: dict[str, Any]
    script: dict[str, Any] | None = None
    timezone: str
    payload: dict[str, Any] = Field(default_factory=dict)
    priority: Priority = Priority.NORMAL
    pull: dict[str, Any] | None = None
    """The queue, and the skill if one is required, of the workers that run it; None if the executor runs it."""
    message: str = ""
    next_execution_time: datetime | None = None
    offered_at: datetime | None = None
    """The time since which it has been waiting for a worker; None if it is not waiting."""
    created_at: datetime
    updated_at: datetime
    run_count: int = 0
    is_running: bool = False
    dispatch_deferred: bool = False
    failed_execution: dict[str, Any] | None = None
    """In the response to `fail`: the record, if no attempt follows and the API called no failure hook; call yours."""
    etag: str = Field(default="", exclude=True)
    """Identifies this state: pass it to an edit, which fails if the task has changed since."""

    @classmethod
    def from_response(cls, content: object, etag: str = "") -> TaskView:
        """Parse a response. Raises Unavailable if it is not a task, since it cannot be the API's then."""
        try:
            return cls.model_validate({**content, "etag": etag} if isinstance(content, dict) else content)
        except ValidationError as error:
            raise _unexpected_response_error("a task", error) from error


class Created(BaseModel):
    """The result of one task of a batch: the task or an error."""

    model_config = ConfigDict(arbitrary_types_allowed=True, frozen=True)

    task: TaskView | None
    error: CloudschedError | None


class CalendarView(responses.CalendarSummary):
    """A calendar: days that schedules respect. A list of calendars leaves their days out."""

    days: tuple[dict[str, str], ...] = ()


class FeedView(responses.Feed):
    """A feed: an owner's tasks as a calendar to subscribe to."""

    url: str | None = None
    """Where it is; only in the response to its creation."""


class PersonView(_View):
    """A person's contacts and preferences."""

    owner: str
    name: str = ""
    email: dict[str, Any] | None = None
    """The address, and whether it is verified."""
    devices: tuple[dict[str, Any], ...] = ()
    webhook: dict[str, Any] | None = None
    timezone: str = "UTC"
    locale: str | None = None
    channels: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    quiet_hours: dict[str, str] | None = None
    digest: str | None = None
    webhook_secret: str | None = Field(default=None, repr=False)
    """What a new webhook's messages are signed with; only in the response to the call that sets its URL."""


class FindingView(_View):
    """One reason why a task runs or does not, with its evidence."""

    reason: str
    sentence: str
    at: datetime | None = None
    execution_id: str | None = None


class ExplanationView(_View):
    """Why a task runs when it does, or does not run."""

    task_id: str
    status: TaskStatus
    summary: str
    findings: tuple[FindingView, ...]
    """What matters most comes first."""


TreeView = responses.Tree[TaskView]
"""A task and the calls that it made, in order."""


class ClaimView(responses.Claim[TaskView]):
    """A run that this worker holds until its lease ends: do the work of `task`, then complete, fail or release it.

    The lease token proves that the worker holds it. Keep it secret; `repr` does not show it.
    """

    task_data: dict[str, Any] = Field(repr=False)
    """The task, as the JSON that was received."""

    @classmethod
    def from_response(cls, content: object) -> ClaimView:
        """Parse a response. Raises Unavailable if it is not a claim."""
        try:
            data = {**content, "taskData": content.get("task")} if isinstance(content, dict) else content
            return cls.model_validate(data)
        except ValidationError as error:
            raise _unexpected_response_error("a claim", error) from error


class HeartbeatResult(responses.HeartbeatResult):
    """The result of a heartbeat. If the task was cancelled, stop, and call `complete` with the status CANCELLED."""

    renewed_at: AwareDatetime | None = None  # type: ignore[assignment]  # an older API does not send it
    """When it was renewed, by the clock that leases are measured by; None if the API is too old to send it."""

    @classmethod
    def from_response(cls, content: object) -> HeartbeatResult:
        """Parse a response. Raises Unavailable if it is not the result of a heartbeat."""
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise _unexpected_response_error("a heartbeat's answer", error) from error


def _unexpected_response_error(what: str, error: ValidationError) -> Unavailable:
    """Return the error for an unexpected response; the message repeats nothing of the response."""
    return Unavailable("The API", f"the response is not the API's: it is not {what}, {error.error_count()} errors")
