"""The demo's scenario: creates three tasks over HTTP, moves the clock by more than a year and fetches what ran.

Nothing here is special to the demo: any client could send these requests, and the stack is that of ``cloudsched dev``.
"""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.transitions.planning import HORIZON
from cloudsched.engine.execution.attempts import DeliveryAction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cloudsched.adapters.operation_counts import Counts
    from cloudsched.emulator.runtime.history import Attempt
    from cloudsched.local.stack import Stack

START: Final = datetime(2027, 1, 1, 7, 30, tzinfo=UTC)
END: Final = datetime(2028, 2, 5, 7, 30, tzinfo=UTC)
ZONE: Final = "Europe/Paris"
OWNER: Final = "ada"
_STEP: Final = timedelta(days=5)
_WEEKEND: Final = 5
_TEA_AT: Final = START + timedelta(seconds=5)
_REPORT_TIME: Final = time(9)
_BIRTHDAY: Final = date(2027, 12, 10)

TASKS: Final[tuple[dict[str, Any], ...]] = (
    {
        "id": "tea",
        "title": "Tea is ready",
        "category": "REMINDER",
        "handler": "remind",
        "payload": {"text": "Three minutes are over."},
        "schedule": {"at": _TEA_AT.isoformat(), "timezone": ZONE},
    },
    {
        "id": "weekday-report",
        "title": "Weekday report",
        "category": "REPORT",
        "handler": "report",
        "payload": {"about": "sales"},
        "schedule": {
            "rrule": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
            "dtstart": f"{START:%Y-%m-%d}T{_REPORT_TIME:%H:%M:%S}",
            "timezone": ZONE,
        },
    },
    {
        "id": "birthday",
        "title": "Grace's birthday",
        "category": "REMINDER",
        "handler": "remind",
        "payload": {"text": "Send her a card."},
        "schedule": {"rrule": "FREQ=YEARLY", "dtstart": f"{_BIRTHDAY}T{_REPORT_TIME:%H:%M:%S}", "timezone": ZONE},
    },
)


@dataclass(frozen=True, slots=True)
class DemoRun:
    """One occurrence that ran."""

    scheduled_for: datetime
    started_at: datetime | None
    status: str


@dataclass(frozen=True, slots=True)
class DemoDelivery:
    """One dispatch that reached the executor."""

    task_id: str
    at: datetime
    action: str
    """The `DeliveryResult`'s action."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The state at the end of the scenario."""

    tasks: dict[str, dict[str, Any]]
    """Each task as the API shows it, by its id."""
    runs: dict[str, list[DemoRun]]
    """Each task's runs, earliest first."""
    deliveries: list[DemoDelivery]
    """The queue's deliveries for the birthday."""
    hops: int
    """How many deliveries, of any task, only dispatched the next one."""
    inbox: list[dict[str, Any]]
    counts: Counts


def run_scenario(stack: Stack, on_clock_moved: Callable[[datetime], None]) -> DemoResult:
    """Create the tasks, move the clock to the end and fetch the results.

    Args:
        stack: A running stack whose clock is frozen at `START`.
        on_clock_moved: Called with the clock's time after each move.

    Raises:
        RuntimeError: A request failed.
    """
    for task in TASKS:
        _request(stack.url, "POST", "/v1/tasks", {"owner": OWNER, **task})
    now = START
    while now < END:
        now = min(now + _STEP, END)
        _request(f"http://{stack.emulator.address}", "POST", "/clock", {"advanceTo": now.isoformat()})
        on_clock_moved(now)
    counts = stack.counts.copy()
    deliveries = [_parse_delivery(attempt) for attempt in stack.emulator.attempts()]
    ids = [task["id"] for task in TASKS]
    return DemoResult(
        tasks={task_id: _request(stack.url, "GET", f"/v1/tasks/{task_id}") for task_id in ids},
        runs={task_id: _fetch_runs(stack.url, task_id) for task_id in ids},
        deliveries=[delivery for delivery in deliveries if delivery.task_id == "birthday"],
        hops=sum(delivery.action == DeliveryAction.HOPPED for delivery in deliveries),
        inbox=list(_iter_items(stack.url, f"/v1/inboxes/{OWNER}/messages", "messages"))[::-1],
        counts=counts,
    )


def expected_runs() -> dict[str, list[datetime]]:
    """Return when each task has to run, computed day by day and without the scheduler's code."""
    zone = time_zones.load_tzinfo(ZONE)
    days = [START.date() + timedelta(days=number) for number in range((END - START).days + 1)]
    nine = [datetime.combine(day, _REPORT_TIME, zone).astimezone(UTC) for day in days if day.weekday() < _WEEKEND]
    return {
        "tea": [_TEA_AT],
        "weekday-report": [at for at in nine if START <= at <= END],
        "birthday": [datetime.combine(_BIRTHDAY, _REPORT_TIME, zone).astimezone(UTC)],
    }


def check(result: DemoResult) -> list[str]:
    """Return the problems found; empty if everything ran as it should."""
    problems: list[str] = []
    for task_id, instants in expected_runs().items():
        runs = result.runs[task_id]
        if [run.scheduled_for for run in runs] != instants:
            problems.append(f"{task_id} ran {len(runs)} times, not the {len(instants)} times of its schedule.")
        problems += [
            f"{task_id} of {run.scheduled_for.isoformat()} is {run.status}, started at {run.started_at}."
            for run in runs
            if run.status != "SUCCEEDED" or run.started_at != run.scheduled_for
        ]
    instants = [START, *(delivery.at for delivery in result.deliveries)]
    if max(later - earlier for earlier, later in pairwise(instants)) > HORIZON:
        problems.append("A dispatch lay beyond the horizon of 30 days.")
    if [message["title"] for message in result.inbox] != ["Tea is ready", "Grace's birthday"]:
        problems.append("The inbox does not hold the reminder and the birthday, once each.")
    if result.tasks["tea"]["status"] != "COMPLETED":
        problems.append(f"The reminder is {result.tasks['tea']['status']}, not COMPLETED.")
    for task_id in ("weekday-report", "birthday"):
        task = result.tasks[task_id]
        if task["status"] != "ACTIVE" or datetime.fromisoformat(task["nextExecutionTime"]) <= END:
            problems.append(f"{task_id} has no next occurrence.")
    return problems


def _parse_delivery(attempt: Attempt) -> DemoDelivery:
    dispatch, result = json.loads(attempt.request.body), json.loads(attempt.answer.body)
    return DemoDelivery(dispatch["taskId"], attempt.dispatch_at, result["action"])


def _fetch_runs(url: str, task_id: str) -> list[DemoRun]:
    records = _iter_items(url, f"/v1/tasks/{task_id}/executions", "executions")
    runs = [
        DemoRun(
            scheduled_for=datetime.fromisoformat(record["scheduledFor"]),
            started_at=datetime.fromisoformat(record["startedAt"]) if record.get("startedAt") else None,
            status=record["status"],
        )
        for record in records
    ]
    return runs[::-1]


def _iter_items(url: str, path: str, name: str) -> Iterator[dict[str, Any]]:
    token = ""
    while True:
        page = _request(url, "GET", f"{path}?pageSize=200" + (f"&pageToken={token}" if token else ""))
        yield from page[name]
        token = page.get("nextPageToken", "")
        if not token:
            return


def _request(url: str, method: str, path: str, content: object = None) -> dict[str, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=300)
    try:
        connection.request(method, path, None if content is None else json.dumps(content))
        response = connection.getresponse()
        body: dict[str, Any] = json.loads(response.read())
    finally:
        connection.close()
    if response.status >= http.HTTPStatus.BAD_REQUEST:
        raise RuntimeError(f"{method} {path}: {response.status} {body}")
    return body
