"""The operations of the API on many tasks at once, as flows that both clients run."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic.alias_generators import to_camel

from cloudsched.client.flow import ApiRequest, Flow, Listing, listing, operation
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.overview_responses import LockDetails, Queue, QueuedTask, TaskOccurrence, WorkerNote

if TYPE_CHECKING:
    from collections.abc import Mapping


class OverviewOperations:
    """The methods of `Client` and `AsyncClient` for lists across tasks."""

    @listing
    def find_executions(self, /, **filters: str | datetime | None) -> Listing[Execution]:
        """Yield the matching executions of all tasks, page by page: failures first, then open ones, then all others.

        Filters: `owner`, `status`, `handler` or `label`, `since`, `until`. Results and steps are left out.
        """
        return Listing("/v1/executions", "executions", _to_query(filters), Execution.model_validate)

    @listing
    def occurrences(self, until: datetime, /, **filters: str | datetime | None) -> Listing[TaskOccurrence]:
        """Yield what is going to run before an instant, of all tasks, the soonest first, page by page.

        Filters: `since`, `owner`, `handler`.
        """
        query = _to_query({**filters, "until": until})
        return Listing("/v1/occurrences", "occurrences", query, TaskOccurrence.model_validate)

    @operation
    def queues(self, owner: str | None = None) -> Flow[list[Queue]]:
        """Return the queues in which something waits or workers listen; of an owner's tasks only, if one is given."""
        answer = yield ApiRequest("GET", "/v1/queues", query=_to_query({"owner": owner}))
        return answer.read_list("queues", Queue.model_validate)

    @listing
    def queued_tasks(self, queue: str, owner: str | None = None) -> Listing[QueuedTask]:
        """Yield what waits in a queue, in the order in which workers get it, page by page. Nothing is claimed."""
        path = f"/v1/queues/{quote(queue, safe='')}/tasks"
        return Listing(path, "tasks", _to_query({"owner": owner}), QueuedTask.model_validate)

    @operation
    def workers(self, owner: str | None = None) -> Flow[list[WorkerNote]]:
        """Return the workers that have asked for work in the last day."""
        answer = yield ApiRequest("GET", "/v1/workers", query=_to_query({"owner": owner}))
        return answer.read_list("workers", WorkerNote.model_validate)

    @listing
    def locks(self, owner: str | None = None) -> Listing[LockDetails]:
        """Yield the locks that are held or waited for, with who holds them and who waits, page by page."""
        return Listing("/v1/locks", "locks", _to_query({"owner": owner}), LockDetails.model_validate)


def _to_query(filters: Mapping[str, str | datetime | None]) -> dict[str, str | int]:
    """Return the query parameters of a list; `since` is ``from``, which Python has taken."""
    return {
        "from" if key == "since" else to_camel(key): value.isoformat() if isinstance(value, datetime) else value
        for key, value in filters.items()
        if value is not None
    }
