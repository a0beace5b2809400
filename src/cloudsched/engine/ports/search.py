"""The port for lists of executions, of one task or of all, for counts, and for work that waits in queues."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from pydantic import ValidationError

from cloudsched.domain.call_arguments import show_value
from cloudsched.domain.documents.filters import ExecutionQueryFields, TaskQueryFields
from cloudsched.domain.documents.run_counts import OUTCOME_STATUSES, RunOutcome
from cloudsched.domain.documents.task import Task, TaskStatus, Trouble
from cloudsched.engine.storage.pages import Page, make_token
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.category import Category
    from cloudsched.domain.documents.document import WireModel
    from cloudsched.domain.documents.execution import Execution, ExecutionError, ExecutionStatus
    from cloudsched.domain.documents.name_words import NameMatch
    from cloudsched.domain.documents.run_counts import GroupCount
    from cloudsched.domain.responses.count import Count, RunCounts


def read_filters(query: object, model: type[WireModel]) -> None:
    """Read the filters of a query by the model of requests: a text may name a member of an enum, for instance.

    Raises InvalidInput for each that is of another type, by its name.
    """
    given = {name: value for name in model.model_fields if (value := getattr(query, name)) is not None}
    try:
        read = model.model_validate(given)
    except ValidationError as error:
        from cloudsched.domain.transitions import validation_errors as wording  # noqa: PLC0415 - seldom

        names = {field.alias or name: name for name, field in model.model_fields.items()}
        faults = wording.to_invalid_input(error).faults
        values = [show_value(given[names.get(each.field, each.field)]) for each in faults]
        refused = wording.join_faults(
            [
                InvalidInput(each.field, f"is {value}; {each.problem}" + (f" ({each.hint})" if each.hint else ""))
                for each, value in zip(faults, values, strict=True)
            ]
        )
        wording.say_in_python(refused, given, model)
        raise refused from None
    for name in given:
        object.__setattr__(query, name, getattr(read, name))


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """The filters of a list of tasks. A task must match every filter that is set.

    Without `due_from` and `due_until` the newest tasks come first (createdAt, then id, both descending). With either,
    the soonest come first (nextExecutionTime, then id, both ascending), and tasks without one are omitted: all that
    are not ACTIVE. Those that need attention have an order of their own. Deliveries are listed by their owner alone.

    Raises:
        InvalidInput: A filter is of another type or not known, a trouble is given with a time that is due, or it is a
            list of deliveries of no owner.
    """

    owner: str | None = None
    status: TaskStatus | None = None
    handler: str | None = None
    due_from: datetime | None = None
    """Not before this instant."""
    due_until: datetime | None = None
    """Before this instant, exclusively."""
    parent: str | None = None
    """The id of the task that called them, or whose results they deliver."""
    label: str | None = None
    """One of their labels, whole."""
    trouble: Trouble | None = None
    """The reason why they need attention. The latest come first. Of those that wait, the time may be over."""
    pause_id: str | None = None
    """The change of many tasks that has paused them."""
    is_delivery: bool = False
    """True to list the deliveries that the system made for one owner, and only these. No other list has them."""
    roughly: OccurrenceQuery | None = None
    """Leaves out tasks that have no such occurrence, as far as the store knows that without reading them."""
    category: Category | None = None
    """What they are for."""
    channel: str | None = None
    """Of deliveries, the channel."""
    ends_by_itself: bool = False
    """True to leave out what is paused until somebody resumes it, as far as the store knows that without reading it."""

    def __post_init__(self) -> None:
        read_filters(self, TaskQueryFields)
        if self.trouble is Trouble.OVERDUE:
            raise InvalidInput("trouble", "is in no index", "Give due_until: the API looks for what is late in that.")
        if self.is_delivery and (
            not self.owner or replace(self, is_delivery=False, channel=None) != TaskQuery(owner=self.owner)
        ):
            raise InvalidInput("isDelivery", "goes with an owner and nothing else", "Give the owner alone.")
        if self.trouble is not None and self.is_sorted_by_due_time:
            hint = "Leave one of them out: each list has an order of its own."
            raise InvalidInput("trouble", "goes with neither dueFrom nor dueUntil", hint)

    @property
    def is_sorted_by_due_time(self) -> bool:
        """Return whether the soonest come first, rather than the newest."""
        return self.due_from is not None or self.due_until is not None

    @property
    def is_contradictory(self) -> bool:
        """Return whether no task can match. Only an ACTIVE one has a next occurrence, so no index has both filters."""
        return self.is_sorted_by_due_time and self.status not in {None, TaskStatus.ACTIVE}

    @property
    def looked_for(self) -> Mapping[str, str]:
        """The filters that no index has in this order. A page reads what `indexed` finds, and passes over the rest."""
        leads: Sequence[tuple[object, Sequence[str]]] = (
            (self.is_sorted_by_due_time, ("owner", "status")),
            (self.trouble, ("owner",)),
            (self.pause_id, ("pause_id",)),
            (self.parent, ("parent", "status")),
            (self.label, ("owner", "status", "label")),
            (self.owner and not self.status, ("owner",)),
            (True, ("owner", "status", "handler")),
        )
        indexed = next(names for is_given, names in leads if is_given)
        filters = ("owner", "status", "handler", "parent", "label", "pause_id", "category", "channel")
        values = {name: getattr(self, name) for name in filters if name not in indexed}
        return {name: str(value) for name, value in values.items() if value is not None}

    @property
    def indexed(self) -> TaskQuery:
        """The query without the filters in `looked_for`: an index has the rest."""
        removed: dict[str, None] = dict.fromkeys(self.looked_for)
        return replace(self, **removed)  # type: ignore[arg-type]  # fields that may be None


@dataclass(frozen=True, slots=True)
class OccurrenceQuery:
    """The filters of a list or a count of occurrences to come. An occurrence must match every filter that is set."""

    until: datetime
    """Before this instant, exclusively."""
    owner: str | None
    """The owner of their tasks. None for all owners."""
    since: datetime | None = None
    """Not before this instant."""
    handler: str | None = None
    """The handler of their tasks. No index has it, the label or the category by time."""
    label: str | None = None
    """One of the labels of their tasks, whole."""
    category: Category | None = None
    """The category of their tasks."""

    def matches(self, task: Task) -> bool:
        """Return whether a task has the handler, the label and the category."""
        return (
            self.handler in {None, task.handler}
            and self.label in {None, *task.labels}
            and self.category in {None, task.category}
        )


def fold_error(error: ExecutionError) -> str:
    """Return the text of an error by whose fragments its execution is found, in one case."""
    return f"{error.type}: {error.message}".casefold()


MAX_GROUPED = 200
"""The most groups, and the most tasks that a store reads for them if no index has their handlers."""
UNFINISHED_STATUSES = (TaskStatus.ACTIVE, TaskStatus.PAUSED)
"""The statuses of tasks that have not ended."""
OMITTED_FIELDS = ("steps", "content", "payload", "log")
"""The fields of a record that lists across tasks leave out. Each has one name, here and as stored."""


@dataclass(frozen=True, slots=True)
class ExecutionQuery:
    """The filters of a list of executions. An execution must match every filter that is set.

    An index has the owner, the status and the times. A page looks for the others in what these find.
    """

    owner: str | None = None
    status: ExecutionStatus | None = None
    handler: str | None = None
    label: str | None = None
    """One of the labels that its task had, whole."""
    since: datetime | None = None
    """Scheduled not before this instant."""
    until: datetime | None = None
    """Scheduled before this instant, exclusively."""
    category: Category | None = None
    """The category that its task had."""
    is_late: bool = False
    """True to leave out those that have ended and did not start late (`domain.documents.run_counts`)."""
    outcome: RunOutcome | None = None
    """What they count as."""
    error: str | None = None
    """A part of the error's type or message, in any case. A store may list executions without it, too."""
    error_type: str | None = None
    """The error's type, likewise."""

    def __post_init__(self) -> None:
        read_filters(self, ExecutionQueryFields)

    @property
    def statuses(self) -> Sequence[ExecutionStatus] | None:
        """The statuses that match. None for any."""
        chosen = None if self.outcome is None else OUTCOME_STATUSES[self.outcome]
        if self.status is None:
            return chosen
        return (self.status,) if chosen is None or self.status in chosen else ()

    @property
    def looked_for(self) -> Mapping[str, str]:
        """The filters that no index has. A page reads what the others find, and checks these itself."""
        values = {name: getattr(self, name) for name in ("handler", "label", "category")}
        return {name: str(value) for name, value in values.items() if value is not None}


def identify_open_list(query: ExecutionQuery, status: ExecutionStatus) -> object:
    """Return what its page tokens belong to: the filters that `SearchStore.list_open` looks at."""
    return "open", str(status), query.owner, query.handler, query.label, query.category


def identify_finished_list(query: ExecutionQuery, *, is_failure: bool) -> object:
    """Return what the page tokens of `SearchStore.list_finished` belong to."""
    return "finished", query, is_failure


def make_finished_token(query: ExecutionQuery, last: Execution, *, is_failure: bool) -> str:
    """Return the token of the page of `SearchStore.list_finished` that begins after a record."""
    return make_token(
        identify_finished_list(query, is_failure=is_failure), last.scheduled_for, f"{last.task_id}.{last.id}"
    )


def identify_executions(task_id: str) -> object:
    """Return what the page tokens of `SearchStore.list_executions` belong to."""
    return "executions", task_id


def make_executions_token(last: Execution) -> str:
    """Return the token of the page of a task's executions that begins after one of them."""
    return make_token(identify_executions(last.task_id), last.scheduled_for, last.id)


class CountStore(Protocol):
    """Counts tasks, executions and offers.

    * An index is counted to its end, or up to a bound. With a filter that no index has (`looked_for`), what one page
      looks through is counted.
    * Executions of deliveries and of deleted tasks are in no count across tasks, once the latter are purged.
    """

    def count_tasks(self, query: TaskQuery, up_to: int) -> Count:
        """Return how many tasks match, counted up to `up_to`. Those that are being deleted may be counted, too."""
        ...

    def count_runs(self, owner: str | None, edges: Sequence[datetime]) -> Sequence[RunCounts]:
        """Return the numbers of the ended runs that are scheduled between each two edges, which rise.

        They are those of all owners or of one. `domain.documents.run_counts` says what counts as what.
        """
        ...

    def group_tasks(self, query: TaskQuery) -> Sequence[GroupCount]:
        """Return the numbers of tasks with a trouble by handler, the rarest first.

        At least the latest `MAX_GROUPED` tasks are read. The query has a trouble, but not WAITING, and perhaps an
        owner. `GroupCount.first` is the earliest instant by which `list_tasks` has any of those that were read.
        """
        ...

    def count_open(self, query: ExecutionQuery, status: ExecutionStatus, up_to: int) -> Count:
        """Return how many items `list_open` has, counted up to `up_to`."""
        ...

    def count_unfinished(self, owner: str, up_to: int) -> int:
        """Return how many of the owner's tasks have not ended, at most `up_to`.

        Everything that was committed before a count starts is counted, here and below.
        """
        ...

    def count_created_since(self, owner: str, since: datetime, up_to: int) -> int:
        """Return how many of the owner's tasks were created after an instant, at most `up_to`."""
        ...

    def count_offers(self, queue_key: str, owner: str | None, up_to: int) -> Count:
        """Return how many offers there are under a queue key (of an owner), counted up to `up_to`."""
        ...


class SearchStore(CountStore, Protocol):
    """Lists and counts executions and queues.

    * Lists use an index: their cost grows with the page, not with the collection. If no index has a filter
      (`looked_for`), a page looks through `MAX_LOOKED_THROUGH` documents that the others find, or a small multiple.
    * They are paged by cursor, like every list of a `Store`, and skip what cannot be read.
    * Executions of deliveries and of deleted tasks are in no list across tasks, once the latter are purged.
    """

    def list_finished(
        self, query: ExecutionQuery, *, is_failure: bool, limit: int, page_token: str | None = None
    ) -> Page[Execution]:
        """Return a page of the matching final records: those that failed or timed out, or else all others.

        The latest come first (scheduledFor, then the task's id, then its own, all descending), without the fields in
        `OMITTED_FIELDS`.
        """
        ...

    def list_open(
        self, query: ExecutionQuery, status: ExecutionStatus, *, limit: int, page_token: str | None = None
    ) -> Page[Task]:
        """Return a page of the tasks whose most active open run has this status, and which match the query.

        The last to get it come first (`find_open_position`, then id, both descending). The query's status and times,
        which are those of single runs, are not looked at.
        """
        ...

    def list_executions(
        self, task_id: str, *, limit: int, page_token: str | None = None, before: datetime | None = None
    ) -> Page[Execution]:
        """Return a page of a task's executions, the latest first (scheduledFor, then id, both descending).

        Without a token only those that are scheduled `before` an instant, if there is one.
        """
        ...

    def get_name_match(self) -> NameMatch:
        """Return how `list_named` finds tasks."""
        ...

    def list_named(
        self, query: TaskQuery, words: Sequence[str], *, limit: int, page_token: str | None = None
    ) -> Page[Task]:
        """Return a page of the tasks of a list that have all of these words in their names (`fold_names`).

        Each word is folded. They come in the order of the list. With `FRAGMENTS` a page looks through all of it. With
        `BEGINNINGS` it is a list of all tasks or of an owner's, and a page may be shorter. Nothing calls it with
        `NEWEST`.
        """
        ...

    def list_acted_on(
        self, owner: str | None, since: datetime | None, *, limit: int, page_token: str | None = None
    ) -> Page[Task]:
        """Return a page of the tasks (of an owner) with an action in their history, not before an instant.

        The one with the latest action comes first (its instant, then the task's id, both descending).
        """
        ...

    def list_owners(self, fragment: str, *, limit: int) -> Sequence[str]:
        """Return the first owners of tasks with this fragment, in any case.

        Without `FRAGMENTS` they are those that begin with it, as it is written or folded.
        """
        ...

    def find_last_change(self, owner: str | None) -> str:
        """Return a mark that changes whenever any task (of an owner) is stored. Reads one document at most.

        After a task is purged, an earlier mark may come back.
        """
        ...

    def list_changed(self, owner: str | None, since: str, *, limit: int, page_token: str | None = None) -> Page[Task]:
        """Return a page of at least the tasks (of an owner) that were stored after `find_last_change` returned `since`.

        All tasks count: deliveries, and also those that are being deleted. In no particular order. A task that is
        stored between two pages may be missing: it is listed after the mark that `find_last_change` returned before.
        """
        ...

    def list_handlers(self, *, limit: int) -> Sequence[str]:
        """Return the first names of handlers that listed tasks of any status have, in order. Reads one for each."""
        ...

    def list_queue_keys(self, owner: str | None, *, limit: int, prefix: str = "", after: str = "") -> Sequence[str]:
        """Return the first queue keys that have offers (of an owner), in their order. Reads one offer for each."""
        ...
