"""The models of requests: one for each body and each set of query parameters.

They validate requests, and ``/openapi.json`` is generated from them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from cloudsched.domain.documents.batch_change import BatchAction, RetryFilter, TaskFilter
from cloudsched.domain.documents.category import Category, Label, Labels
from cloudsched.domain.documents.delivery_channels import SENDER_NAMES
from cloudsched.domain.documents.document import Duration, InputInstant, WireModel
from cloudsched.domain.documents.filters import ExecutionFields, RunConditions, TaskConditions
from cloudsched.domain.documents.person import PersonSpec, ZoneName
from cloudsched.domain.documents.run_counts import LATE, PartLength
from cloudsched.domain.documents.task import MAX_NAME, Owner, Trouble
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.responses.api_responses import MAX_DRAFT_TOKEN
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.needs import NEVER, find_answer_time, find_unstarted
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery
from cloudsched.engine.queries.audit_trail import AuditQuery
from cloudsched.engine.queries.execution_search import ExecutionFilter, TaskExecutionFilter
from cloudsched.engine.queries.task_search import TaskSearch, find_category, read_words
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.task import Task

MAX_PAGE = 500
MAX_PREVIEW = 1000
MAX_BATCH = 50
"""The largest number of tasks that one request creates. Each takes the processor about a millisecond."""
_EARLIEST = datetime(1583, 1, 1, tzinfo=UTC)
"""Earlier than any occurrence."""


def _validate_digits(value: object) -> object:
    """Accept a number as text only if it is plain digits: not ``+5`` or ``5.0``."""
    if isinstance(value, bool | float):
        raise ValueError("is not a whole number")  # noqa: TRY004 - pydantic's way to report it
    if isinstance(value, str) and not (value.isascii() and value.isdigit() and len(value) <= 9):  # noqa: PLR2004 - far above all limits
        raise ValueError("is not a whole number")
    return value


def _cap_page(size: int) -> int:
    """Return a page's size, or the largest possible one."""
    return min(size, MAX_PAGE)


Digits = BeforeValidator(_validate_digits)


class NoParameters(WireModel):
    """No parameters."""


class PageQuery(WireModel):
    """The page of a list to return."""

    page_size: Annotated[int, Field(ge=1, le=999_999_999), Digits, AfterValidator(_cap_page)] = 50
    """The largest number of items to return. More than 500 count as 500."""
    page_token: str | None = None
    """The ``nextPageToken`` of the previous page. Keep the same filters."""

    def to_arguments(self) -> dict[str, Any]:
        """Return the arguments for the app's list methods."""
        return {"limit": self.page_size, "page_token": self.page_token or None}


class InboxQuery(PageQuery):
    """The page of an inbox to return."""

    awaited: bool = False
    """Only the questions of that page that still wait for an answer."""


class AnyOwnerQuery(WireModel):
    """The owner of the items to list."""

    owner: Owner | None = None
    """Only items of this owner."""


class OwnerPageQuery(AnyOwnerQuery, PageQuery):
    """The owner of the items to list, and the page of the list to return."""


class DeliveryListQuery(OwnerPageQuery):
    """The deliveries to list."""

    channel: Annotated[str, StringConstraints(pattern=f"^({'|'.join(SENDER_NAMES)})$")] | None = None
    """Only deliveries by this channel."""
    since: InputInstant | None = Field(default=None, alias="from")
    """Only deliveries that were made at this instant or later. Of those that reached nobody, since then."""
    until: InputInstant | None = None
    """Only those before this instant."""
    unreached: bool = False
    """Only those that were not sent because no address of their person could be used."""


class ResendRequest(WireModel):
    """Another address for a delivery that is sent again."""

    address: str | None = None
    """The person's e-mail address from now on, in place of the present one. Others than admins may give the one that
    their ID token has as verified."""


class TaskListQuery(TaskConditions, PageQuery):
    """The tasks to list. All given filters must match."""

    trouble_until: InputInstant | None = None
    """Of the tasks that are late, only those that were due before this instant."""
    search: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None
    """Only tasks with each of these words in their title, id, handler, labels or payload. ``payload.about=sales`` is
    the text of a field of the payload, ``category:report`` the category."""
    payloads: bool = True
    """True to look for these words in payloads, too. Without, and with an index of names, all tasks are searched at
    once."""
    calls: bool = True
    """True to list calls, too: the tasks that other tasks have made to do a part of their work."""
    order_by: Literal["createdAt desc", "nextExecutionTime"] | None = None
    """The newest first, or the soonest first, omitting tasks without a next occurrence. The default is the soonest
    first with ``dueFrom`` or ``dueUntil``, else the newest first."""

    def to_task_search(self, now: datetime) -> TaskSearch:
        """Return the filters that no index has, and that need a search."""
        words, _ = self._read_search()
        conditions: dict[Trouble | None, Callable[[Task], object]] = {
            Trouble.WAITING: lambda task: find_answer_time(task, now),
            Trouble.OVERDUE: lambda task: (find_unstarted(task) or NEVER) < (self.trouble_until or now),
        }
        return TaskSearch(words, self.calls, self.payloads, conditions.get(self.trouble))

    def _read_search(self) -> tuple[tuple[str, ...], Category | None]:
        """Return the words to look for, and the category if one of them names it."""
        words = read_words(self.search or "")
        named = {word: category for word in words if (category := find_category(word)) is not None}
        if len(named) != 1:
            return words, None
        (category,) = named.values()
        return tuple(word for word in words if word not in named), category

    def to_task_query(self, owner: str | None) -> TaskQuery:
        """Return the query, for an owner whom the caller may list. Raises InvalidInput."""
        due_from = self.due_from
        if self.order_by == "nextExecutionTime" and due_from is None and self.due_until is None:
            due_from = _EARLIEST
        if self.order_by == "createdAt desc" and (due_from or self.due_until or self.trouble):
            hint = "Leave it out: what is chosen by its next occurrence or by a trouble has an order of its own."
            raise InvalidInput(
                "orderBy",
                f"contradicts {'trouble' if self.trouble else 'dueFrom or dueUntil'}",
                hint,
            )
        due_until, trouble = self.due_until, self.trouble
        if (trouble is Trouble.OVERDUE) != (self.trouble_until is not None):
            hint = f"Give with it the instant before which it was due, such as {LATE.seconds // 60} minutes ago."
            raise InvalidInput("troubleUntil", "goes with OVERDUE, and that with it", hint)
        if trouble is Trouble.OVERDUE:
            due_until, trouble = self.trouble_until, None
        return TaskQuery(
            owner=owner,
            status=self.status,
            handler=self.handler,
            label=self.label,
            due_from=due_from,
            due_until=due_until,
            trouble=trouble,
            category=self._read_search()[1],
        )


class SearchQuery(AnyOwnerQuery):
    """The text to find."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=500)] = Field(alias="q")
    """Words. Each is a part of the title, the id, the handler, the owner or a label, in any case."""
    page_size: Annotated[int, Field(ge=1, le=50), Digits] = 10
    """The most of each kind to return."""


class AuditListQuery(OwnerPageQuery):
    """The actions to list. All given filters must match."""

    by: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)] | None = None
    """A part of the name of who did it, in any case, or ``scheduler``."""
    action: Action | None = None
    since: InputInstant | None = Field(default=None, alias="from")
    """Only actions at this instant or later."""
    until: InputInstant | None = None
    """Only actions before this instant."""

    def to_audit_query(self, owner: str | None) -> AuditQuery:
        """Return the query, for an owner whom the caller may list."""
        return AuditQuery(owner, self.by, self.action, self.since, self.until)


class TaskExecutionsQuery(RunConditions, PageQuery):
    """The executions of a task to list. All given filters must match."""

    def to_arguments(self) -> dict[str, Any]:
        """Return the arguments for the list."""
        only = TaskExecutionFilter(self.status, self.since, self.until)
        return {**super().to_arguments(), "only": only}


class ExecutionFilterQuery(ExecutionFields):
    """Filters of executions. All given filters must match."""

    calls: bool = True
    """True to list executions of calls, too. A failed call is also in the record of the execution that made it."""
    min_duration: Duration | None = None
    """Only executions that took at least this long: their attempts, without the time between these."""
    min_lateness: Duration | None = None
    """Only executions that their schedule started at least this long after their instant."""

    def to_execution_query(self, owner: str | None) -> ExecutionQuery:
        """Return the query, for an owner whom the caller may list. Raises InvalidInput."""
        others = (self.status, self.outcome, self.handler, self.label, self.category, self.error, self.error_type)
        is_late = self.min_lateness is not None and self.min_lateness >= LATE and not any(others)
        return ExecutionQuery(
            owner,
            self.status,
            self.handler,
            self.label,
            self.since,
            self.until,
            self.category,
            outcome=self.outcome,
            error=self.error,
            error_type=self.error_type,
            is_late=is_late,
        )

    def to_execution_filter(self) -> ExecutionFilter:
        """Return the filters that no index has, and that need a search."""
        return ExecutionFilter(self.calls, self.error, self.error_type, self.min_duration, self.min_lateness)


class ExecutionListQuery(PageQuery, ExecutionFilterQuery):
    """The executions to list, and the page of the list to return."""


class ExecutionCountQuery(AnyOwnerQuery):
    """The executions to count, and the parts of the time to count them by."""

    since: InputInstant = Field(alias="from")
    """Only executions that are scheduled for this instant or later."""
    until: InputInstant
    """Only executions that are scheduled for an earlier instant than this, at most 200 parts later."""
    per: PartLength = PartLength.DAY
    """The length of a part: a day, an hour or a quarter of an hour."""
    timezone: ZoneName = "UTC"
    """The zone whose wall clock divides the parts."""
    handler: str | None = None
    """Only executions of this handler."""
    label: Label | None = None
    """Only executions whose task had this label."""
    category: Category | None = None
    """Only executions whose task had this category."""

    def to_execution_query(self, owner: str | None) -> ExecutionQuery:
        """Return the query, for an owner whom the caller may list. Raises InvalidInput."""
        return ExecutionQuery(owner, handler=self.handler, label=self.label, category=self.category)


class OccurrenceListQuery(OwnerPageQuery):
    """The occurrences to list, and the page of the list to return."""

    until: InputInstant
    """Only occurrences before this instant."""
    since: InputInstant | None = Field(default=None, alias="from")
    """Only occurrences at this instant or later. All upcoming ones if omitted."""
    handler: str | None = None
    """Only occurrences of this handler's tasks."""
    label: Label | None = None
    """Only occurrences of tasks with this label."""
    category: Category | None = None
    """Only occurrences of tasks with this category."""


class OccurrenceCountQuery(AnyOwnerQuery):
    """The occurrences to count, and the parts of the time."""

    since: InputInstant = Field(alias="from")
    """Only occurrences at this instant or later."""
    until: InputInstant
    """Only occurrences before this instant. There are at most 200 parts."""
    timezone: ZoneName = "UTC"
    """The zone whose clock divides the time."""
    per: PartLength = PartLength.DAY
    """The length of a part: a day, an hour or a quarter of an hour."""
    handler: str | None = None
    """Only occurrences of this handler's tasks."""
    label: Label | None = None
    """Only occurrences of tasks with this label."""
    category: Category | None = None
    """Only occurrences of tasks with this category."""


class ValidateQuery(WireModel):
    """The choice to check a request without storing anything."""

    validate_only: Literal["true", "false"] = "false"
    """``true`` runs all checks, stores nothing, and answers 200 with the task as it would be and its next ``upcoming``
    occurrences."""

    @property
    def is_only_validation(self) -> bool:
        """Return whether nothing is to be stored."""
        return self.validate_only == "true"


class ReceiptQuery(WireModel):
    """The choice to get the task's receipt as well."""

    receipt: Literal["true", "false"] = "false"
    """``true`` adds `receipt`: when it runs next, and what stands in the way of that. Changes are always answered with
    it."""


class UpcomingCount(WireModel):
    """The number of occurrences to return."""

    count: Annotated[int, Field(ge=1, le=MAX_PREVIEW), Digits] = 10


class TreeFilter(WireModel):
    """The part of a tree to return."""

    execution_id: str | None = None
    """Only the calls that this execution made, and the calls below them."""


class ExplainQuery(WireModel):
    """The day to explain."""

    at: InputInstant | None = None
    """An instant, now if omitted. The answer explains why the task ran, or did not, on its day in the task's zone."""


class OwnerQuery(WireModel):
    """The owner of the items."""

    owner: Owner | None = None
    """The owner. The caller if omitted."""


class NewFeed(WireModel):
    """A feed to create."""

    owner: Owner | None = None
    """The owner of the tasks that it shows. The caller if omitted."""
    categories: tuple[Category, ...] = Field(default=(), max_length=len(Category))
    """Only tasks of these categories. All if there are none."""
    labels: Labels = ()
    """Only tasks that have all of these labels."""


class NewPerson(PersonSpec):
    """A person's contacts and preferences."""


class ReplaceQuery(WireModel):
    """Whether a replacement may remove something."""

    replace: Literal["true", "false"] = "false"
    """``true`` also removes what the body leaves out. Without it, or an ``If-Match``, such a request is refused."""


class DeletePersonQuery(WireModel):
    """The extent of a deletion."""

    everything: Literal["true", "false"] = "false"
    """``true`` deletes all that is stored of the person, not only contacts and preferences."""


class ExportQuery(WireModel):
    """The page of an export to return."""

    page_token: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,6}$")] | None = None
    """The ``nextPageToken`` of the previous page."""


class PreviewRequest(UpcomingCount):
    """A schedule to preview."""

    schedule: Schedule
    """The schedule, as in a task."""
    start: InputInstant | None = Field(default=None, alias="from")
    """The instant from which to list occurrences. Now if omitted."""
    owner: Owner | None = None
    """The owner whose calendars are meant, and whose zone if the schedule follows its owner. The caller if omitted."""


class BatchCreateRequest(WireModel):
    """Tasks to create."""

    tasks: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_BATCH)]
    """Each is a ``NewTask``. An invalid one gets a problem in its result, and the others are created."""


class NewTask(
    TaskDraft,
):  # it describes the body: `TaskDraft.from_wire` reads it, and refuses what it does not know
    """A task to create, or to replace the one with the same id."""

    draft_token: Annotated[str, StringConstraints(max_length=MAX_DRAFT_TOKEN)] | None = None
    """The token of the draft that has the other fields, unchanged."""


class BatchChangeFilter(TaskFilter):
    """The tasks to change. All given filters must match, and there must be one."""

    due_from: InputInstant | None = None
    """The next occurrence is not before this instant."""
    due_until: InputInstant | None = None
    """The next occurrence is before this instant."""

    @model_validator(mode="before")
    @classmethod
    def _name_the_filters(cls, given: Any) -> Any:  # noqa: ANN401 - any JSON
        known = {field.alias or name for name, field in cls.model_fields.items()}
        unknown = sorted(set(given) - known) if isinstance(given, dict) else []
        if unknown:
            raise ValueError(f"has {unknown[0]!r}, which no index has; there are {', '.join(sorted(known))}")
        return given


class BatchChangeRequest(WireModel):
    """A change of all tasks that match a filter."""

    action: BatchAction
    """``RETRY_FAILED`` gives the execution that finished last one more attempt, if it failed or timed out."""
    filter: BatchChangeFilter
    until: InputInstant | None = None
    """The end of a pause. If omitted, somebody has to resume the tasks."""
    dry_run: Annotated[bool, Field(strict=True)] = False
    """Only count the tasks, and name the first ten."""


class ExecutionRetryFilter(RetryFilter):
    """The failed executions to retry. All given filters must match, and there must be one."""

    since: InputInstant | None = Field(default=None, alias="from")
    """Scheduled for this instant or later."""
    until: InputInstant | None = None
    """Scheduled for an earlier instant than this."""


class BatchRetryRequest(WireModel):
    """A retry of all failed executions that match a filter."""

    filter: ExecutionRetryFilter
    dry_run: Annotated[bool, Field(strict=True)] = False
    """Only count them, and name the first ten."""
