"""The API's responses as the client returns them: the API's own models, with the client's additions.

Fields that only a newer API has are kept in `model_extra`. Values that only a newer API knows stay JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
)

from cloudsched.domain.documents.document import STORED_CONTEXT
from cloudsched.domain.documents.task import TaskSpec
from cloudsched.domain.explanation.findings import Explanation, Finding
from cloudsched.domain.responses import api_responses as responses
from cloudsched.errors import CloudschedError, InvalidInput, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

M = TypeVar("M", bound=BaseModel)


def reader(model: type[M]) -> Callable[[object], M]:
    """Return a function that reads a model from JSON, and keeps a newer API's fields in `model_extra` at any depth.

    The API validated its content when it was stored, so costly checks are skipped.
    """

    def read(content: object) -> M:
        return model.model_validate(content, extra="allow", context=STORED_CONTEXT)

    return read


def keep_newer_value(value: object, read: ValidatorFunctionWrapHandler) -> Any:  # noqa: ANN401 - any field's type
    """Read a field. A value that only a newer API knows, such as another category, stays JSON."""
    try:
        return read(value)
    except (ValidationError, InvalidInput):
        return value


_STRICT = {"title", "handler", "priority"}
_MAY_BE_NEWER = (
    *(TaskSpec.model_fields.keys() - _STRICT),
    "owner",
    "schedule",
    "outcome",
    "parent",
    "upcoming",
)
"""The fields of a task whose values may be of a newer API: those that its owner sets, and their results."""


class TaskView(responses.Task):
    """A task as returned by the API."""

    failed_execution: dict[str, Any] | None = None
    """The record in the response to `fail`, if no attempt follows and the API called no failure hook. Call yours."""
    etag: str = Field(default="", exclude=True)
    """Identifies this state. Pass it to an edit, which fails if the task has changed since."""

    _keep_newer_value = field_validator(*_MAY_BE_NEWER, mode="wrap")(keep_newer_value)

    @classmethod
    def from_response(cls, content: object, etag: str = "") -> TaskView:
        """Parse a response. Raises Unavailable if it is not a task, since it cannot be the API's then."""
        try:
            return reader(cls)({**content, "etag": etag} if isinstance(content, dict) else content)
        except ValidationError as error:
            raise _unexpected_response_error("a task", error) from None


class Created(BaseModel):
    """The result of one task of a batch: the task or an error."""

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True, frozen=True, defer_build=True)

    task: TaskView | None
    error: CloudschedError | None


class CalendarView(responses.CalendarSummary):
    """A calendar: days that schedules respect. A list of calendars leaves their days out."""

    days: tuple[dict[str, str], ...] = ()


class ScriptView(responses.ScriptSummary):
    """A stored script. A list of scripts leaves their sources out."""

    source: str | None = None


class FeedView(responses.Feed):
    """A feed: an owner's tasks as a calendar to subscribe to."""

    url: str | None = None
    """Its address, only in the response to its creation."""


class PersonView(responses.Person):
    """A person's contacts and preferences."""

    webhook_secret: str | None = Field(default=None, repr=False)
    """The secret that signs a new webhook's messages, only in the response to the call that sets its URL."""
    etag: str = Field(default="", exclude=True)
    """Identifies this state. Pass it to a change, which fails if the person has changed since."""

    _keep_newer_value = field_validator("email", "devices", "webhook", "channels", mode="wrap")(
        keep_newer_value,
    )


class FindingView(Finding):
    """One reason why a task runs or does not, with its evidence."""

    _keep_newer_value = field_validator("reason", mode="wrap")(keep_newer_value)


class ExplanationView(Explanation):
    """The reason why a task runs when it does, or does not run."""

    findings: tuple[FindingView, ...]
    """The findings, the most important first."""


TreeView = responses.Tree[TaskView]
"""A task and the calls that it made, in order."""


class ClaimView(responses.Claim[TaskView]):
    """A run that this worker holds until its lease ends. Do the work of `task`, then complete, fail or release it.

    The lease token proves that the worker holds it. Keep it secret. `repr` does not show it.
    """

    task_data: dict[str, Any] = Field(repr=False)
    """The task, as the JSON that was received."""

    @classmethod
    def from_response(cls, content: object) -> ClaimView:
        """Parse a response. Raises Unavailable if it is not a claim."""
        try:
            return reader(cls)(
                {**content, "taskData": content.get("task")} if isinstance(content, dict) else content,
            )
        except ValidationError as error:
            raise _unexpected_response_error("a claim", error) from None


class HeartbeatResult(responses.RenewedLease):
    """The result of a heartbeat. If the task was cancelled, stop, and call `complete` with the status CANCELLED."""


def _unexpected_response_error(what: str, error: ValidationError) -> Unavailable:
    """Return the error for an unexpected response. The message does not quote the response."""
    return Unavailable(
        "The API",
        f"the response is not the API's: it is not {what}, {error.error_count()} errors",
    )
