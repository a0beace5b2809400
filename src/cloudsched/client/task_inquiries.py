"""Questions about a task or a schedule, as flows that both clients and apps run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Unpack
from urllib.parse import quote

from cloudsched.client.filters import ChosenTasks, TaskFilters, to_query
from cloudsched.client.flow import ApiRequest, Flow, Listing, Sleep, fetch, given, listing, operation, parse_task
from cloudsched.client.task_operations import task_path
from cloudsched.client.views import ExplanationView, TaskView, reader
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.in_words import say_duration
from cloudsched.domain.responses.api_responses import Execution, ExecutionLogs, SchedulePreview, TaskHistory
from cloudsched.domain.responses.overview_responses import ChangeCursor
from cloudsched.errors import CloudschedError, NotFound, QuotaExceeded, Unavailable

POLL_INTERVAL = timedelta(seconds=1)
"""The first interval at which `wait` polls."""
MIN_POLL_TIMEOUT = 5.0
"""The shortest timeout of one poll, in seconds."""
POLL_GROWTH = 1.2
"""The factor by which the interval grows with each poll."""
MAX_POLL_FACTOR = 10
"""The largest multiple of the first interval."""


WATCH_INTERVAL = timedelta(seconds=5)
"""The interval at which `watch` looks for changes."""
MAX_WATCHED = 500


@dataclass(frozen=True, slots=True)
class _TaskWatch(Listing[Any]):
    """The list of all tasks, as a new item whenever it has changed. Its tokens are cursors of changes."""

    every: float

    def fetch(self, token: str | None) -> Flow[tuple[list[Any], str | None]]:
        seen, _, shown = (token or "").partition(" ")
        while True:
            query = given(owner=self.query.get("owner"))
            cursor = (yield ApiRequest("GET", "/v1/changes", query=query)).read("a cursor", reader(ChangeCursor)).cursor
            if cursor != seen:
                response = yield ApiRequest("GET", self.path, query=self.query)
                tasks = tuple(response.read_list(self.name, self.parse))
                states = str(hash(tuple((each.id, each.updated_at, each.status) for each in tasks)))
                if token is None or states != shown:
                    return [tasks], f"{cursor} {states}"
                seen = cursor
            yield Sleep(self.every)


class TaskInquiries:
    """The methods of clients and apps that ask about a task or a schedule."""

    @listing
    def watch(
        self, /, *, every: timedelta = WATCH_INTERVAL, **filters: Unpack[TaskFilters]
    ) -> Listing[tuple[TaskView, ...]]:
        """Yield the matching tasks, at most 500: at once, and again whenever they have changed. It does not end.

        Args:
            every: The interval between two looks for changes, which are cheap.
            filters: As for `tasks`.

        >>> for tasks in client.watch(owner="ada"):
        ...     print(len(tasks), "tasks")
        ...     break
        1 tasks
        """
        query = {**to_query(filters), "pageSize": MAX_WATCHED}
        return _TaskWatch("/v1/tasks", "tasks", query, TaskView.from_response, every.total_seconds())

    @listing
    def search(self, words: str, /, **filters: Unpack[ChosenTasks]) -> Listing[TaskView]:
        """Yield the tasks that have each of some words in their title, id, handler, labels or payload.

        All filters must match as well: `owner`, `status`, `handler`, `label`, `due_from`, `due_until`, `order_by`,
        `calls`.

        >>> [each.id for each in client.search("plants", owner="ada")]
        ['water']
        """
        return Listing("/v1/tasks", "tasks", {**to_query(filters), "search": words}, TaskView.from_response)

    @operation
    def explain(self, task_id: str, at: datetime | None = None) -> Flow[ExplanationView]:
        """Return why a task runs when it does, or does not run. With `at`, explain that day in its zone.

        >>> print(client.explain(task.id).summary)
        The latest run that has ended, due on Sat 2 Jan 2027 at 09:00 (UTC), failed: OSError: the pump is dry
        """
        query = {"at": at and at.isoformat()}
        return fetch("an explanation", ExplanationView, "GET", f"{task_path(task_id)}/explain", query=query)

    @operation
    def logs(self, task_id: str, execution_id: str) -> Flow[ExecutionLogs]:
        """Return the latest lines that an execution has logged, in their order, also while it runs.

        Raises:
            Forbidden: They are not for this caller.

        >>> [line.text for line in client.logs(task.id, "20270101T090000Z").lines]
        ['reminded of plants']
        """
        path = f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}/logs"
        return fetch("logs", ExecutionLogs, "GET", path)

    @operation
    def history(self, task_id: str) -> Flow[TaskHistory]:
        """Return the manual changes of a task, with their authors and times, the latest first.

        >>> task = client.pause(task.id)
        >>> [(entry.action.value, entry.by.subject) for entry in client.history(task.id).entries]
        [('PAUSED', 'user:ada'), ('CREATED', None)]
        """
        return fetch("a history", TaskHistory, "GET", f"{task_path(task_id)}/history")

    @operation
    def wait(self, task_id: str, timeout: timedelta, *, every: timedelta = POLL_INTERVAL) -> Flow[Execution]:
        """Return a task's latest execution once the task has ended and none of its runs is open.

        Args:
            task_id: The task.
            timeout: The longest wait.
            every: The first interval between polls. It grows, up to ten times this.

        If the API does not respond, the request is repeated. The last one may take up to 5 seconds more.

        Raises:
            TimeoutError: The task did not end in time.
            Unavailable: The API did not respond in all that time.
            QuotaExceeded: The API refused all requests in that time, because there were too many.
            NotFound: There is no such task, or it ended without an execution.

        >>> task = client.run_now("remind", {"about": "Tea"})
        >>> sim.advance(timedelta(minutes=1))  # in a test; elsewhere time passes while it waits
        >>> print(client.wait(task.id, timedelta(minutes=5)).status)
        SUCCEEDED
        """
        give_up_at = time.monotonic() + timeout.total_seconds()
        pause = every.total_seconds()
        is_answered = False
        while True:
            silence: CloudschedError | None = None
            try:
                if (ended := (yield from _fetch_finished(task_id, give_up_at))) is not None:
                    return ended
                is_answered = True
            except (Unavailable, QuotaExceeded) as error:
                silence = error
            left = give_up_at - time.monotonic()
            if left <= 0 and silence is not None and not is_answered:
                raise silence
            if left <= 0:
                raise TimeoutError(f"Task {task_id} has not ended within {say_duration(timeout)}.") from silence
            yield Sleep(min(pause, left))
            pause = min(pause * POLL_GROWTH, every.total_seconds() * MAX_POLL_FACTOR)

    @operation
    def preview(self, schedule: dict[str, Any], count: int = 10) -> Flow[list[datetime]]:
        """Return the next occurrences of a schedule, in UTC, without storing it.

        >>> daily = {"rrule": "FREQ=DAILY", "dtstart": "2027-02-01T09:00:00"}
        >>> [str(each) for each in client.preview(daily, 2)]
        ['2027-02-01 09:00:00+00:00', '2027-02-02 09:00:00+00:00']
        """
        content = {"schedule": schedule, "count": count}
        answer = yield ApiRequest("POST", "/v1/schedules/preview", content, is_idempotent=True)
        return [each.utc for each in answer.read("a preview", reader(SchedulePreview)).occurrences]

    @operation
    def describe_schedule(
        self,
        schedule: str,
        *,
        timezone: str,
        count: int = 10,
        owner: str | None = None,
        locale: str | None = None,
    ) -> Flow[SchedulePreview]:
        """Return the meaning of a schedule in words, or in a notation: its description and next occurrences.

        Args:
            schedule: The words, or the notation.
            timezone: The zone of its times, or ``owner`` for the owner's present zone.
            count: The number of occurrences.
            owner: The owner whose calendars are meant, and whose zone if it follows its owner. The caller if None.
            locale: The language of the words, such as ``de``. If None, it is detected from the words.

        Raises:
            InvalidInput: It is no schedule, or the words have several meanings.

        >>> print(client.describe_schedule("every other friday at 9", timezone="Europe/Paris").description)
        every 2 weeks on Friday at 09:00, first on Friday 8 January 2027, Europe/Paris
        """
        content = {
            "schedule": schedule,
            "timezone": timezone,
            "count": count,
            **given(owner=owner, locale=locale),
        }
        return fetch("a preview", SchedulePreview, "POST", "/v1/schedules/preview", content)


def _fetch_finished(task_id: str, deadline: float) -> Flow[Execution | None]:
    """Return a task's latest execution if the task has ended, else None. Each request is sent once."""

    def within() -> float:
        return max(MIN_POLL_TIMEOUT, deadline - time.monotonic())

    task = parse_task((yield ApiRequest("GET", task_path(task_id), time_limit=within())))
    if task.status in {TaskStatus.ACTIVE, TaskStatus.PAUSED} or task.is_running:
        return None
    path = f"{task_path(task_id)}/executions"
    page = yield ApiRequest("GET", path, query={"pageSize": 1}, time_limit=within())
    found = page.read_list("executions", reader(Execution))
    if not found:
        raise NotFound("execution of task", task_id)
    return found[0]
