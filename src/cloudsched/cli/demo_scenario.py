"""What the demo does: three tasks through HTTP, more than a year of their time, and a look at what became of them.

Nothing here is special to the demo: the requests are those of any client, and the stack is that of ``cloudsched dev``.
"""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cloudsched.domain.recurrence import time_zones as zones
from cloudsched.domain.transitions.planning import HORIZON
from cloudsched.engine.execution.attempts import Action

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
class Ran:
    """One occurrence that was run."""

    scheduled_for: datetime
    started_at: datetime | None
    status: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """One dispatch that reached the executor."""

    task_id: str
    at: datetime
    action: str
    """What it came to: see `Verdict`."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What is to be seen when the clock has come to its end."""

    tasks: dict[str, dict[str, Any]]
    """Each task as the API shows it, by its id."""
    ran: dict[str, list[Ran]]
    """What ran of each task, the earliest first."""
    way: list[Delivery]
    """What the queue delivered for the birthday."""
    hops: int
    """How many deliveries, of any task, did nothing but send the next one."""
    inbox: list[dict[str, Any]]
    counts: Counts


def play(stack: Stack, moved: Callable[[datetime], None]) -> Findings:
    """Create the tasks, move the clock to the end, and look.

    Args:
        stack: A running stack whose clock stands at `START`.
        moved: Is told how far the clock has come.

    Raises:
        RuntimeError: A request was refused.
    """
    for task in TASKS:
        _ask(stack.url, "POST", "/v1/tasks", {"owner": OWNER, **task})
    now = START
    while now < END:
        now = min(now + _STEP, END)
        _ask(f"http://{stack.emulator.address}", "POST", "/clock", {"advanceTo": now.isoformat()})
        moved(now)
    counts = stack.counts.copy()
    deliveries = [_delivery(attempt) for attempt in stack.emulator.attempts()]
    ids = [task["id"] for task in TASKS]
    return Findings(
        tasks={task_id: _ask(stack.url, "GET", f"/v1/tasks/{task_id}") for task_id in ids},
        ran={task_id: _ran(stack.url, task_id) for task_id in ids},
        way=[delivery for delivery in deliveries if delivery.task_id == "birthday"],
        hops=sum(delivery.action == Action.HOPPED for delivery in deliveries),
        inbox=list(_listed(stack.url, f"/v1/inboxes/{OWNER}/messages", "messages"))[::-1],
        counts=counts,
    )


def expected() -> dict[str, list[datetime]]:
    """Return when each task has to run, counted day by day and not by the scheduler's own means."""
    zone = zones.tzinfo(ZONE)
    days = [START.date() + timedelta(days=number) for number in range((END - START).days + 1)]
    nine = [datetime.combine(day, _REPORT_TIME, zone).astimezone(UTC) for day in days if day.weekday() < _WEEKEND]
    return {
        "tea": [_TEA_AT],
        "weekday-report": [at for at in nine if START <= at <= END],
        "birthday": [datetime.combine(_BIRTHDAY, _REPORT_TIME, zone).astimezone(UTC)],
    }


def complaints(found: Findings) -> list[str]:
    """Return what is not as it should be; nothing, if all is well."""
    wrong: list[str] = []
    for task_id, instants in expected().items():
        ran = found.ran[task_id]
        if [run.scheduled_for for run in ran] != instants:
            wrong.append(f"{task_id} ran {len(ran)} times, not the {len(instants)} times that its schedule says.")
        wrong += [
            f"{task_id} of {run.scheduled_for.isoformat()} is {run.status}, begun at {run.started_at}."
            for run in ran
            if run.status != "SUCCEEDED" or run.started_at != run.scheduled_for
        ]
    instants = [START, *(delivery.at for delivery in found.way)]
    if max(later - earlier for earlier, later in pairwise(instants)) > HORIZON:
        wrong.append("A dispatch lay beyond the horizon of 30 days.")
    if [message["title"] for message in found.inbox] != ["Tea is ready", "Grace's birthday"]:
        wrong.append("The inbox does not hold the reminder and the birthday, once each.")
    if found.tasks["tea"]["status"] != "COMPLETED":
        wrong.append(f"The reminder is {found.tasks['tea']['status']}, not COMPLETED.")
    for task_id in ("weekday-report", "birthday"):
        task = found.tasks[task_id]
        if task["status"] != "ACTIVE" or datetime.fromisoformat(task["nextExecutionTime"]) <= END:
            wrong.append(f"{task_id} has no next occurrence.")
    return wrong


def _delivery(attempt: Attempt) -> Delivery:
    asked, answered = json.loads(attempt.request.body), json.loads(attempt.answer.body)
    return Delivery(asked["taskId"], attempt.dispatch_at, answered["action"])


def _ran(url: str, task_id: str) -> list[Ran]:
    records = _listed(url, f"/v1/tasks/{task_id}/executions", "executions")
    ran = [
        Ran(
            scheduled_for=datetime.fromisoformat(record["scheduledFor"]),
            started_at=datetime.fromisoformat(record["startedAt"]) if record.get("startedAt") else None,
            status=record["status"],
        )
        for record in records
    ]
    return ran[::-1]


def _listed(url: str, path: str, name: str) -> Iterator[dict[str, Any]]:
    token = ""
    while True:
        page = _ask(url, "GET", f"{path}?pageSize=200" + (f"&pageToken={token}" if token else ""))
        yield from page[name]
        token = page.get("nextPageToken", "")
        if not token:
            return


def _ask(url: str, method: str, path: str, content: object = None) -> dict[str, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=300)
    try:
        connection.request(method, path, None if content is None else json.dumps(content))
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
    finally:
        connection.close()
    if response.status >= http.HTTPStatus.BAD_REQUEST:
        raise RuntimeError(f"{method} {path}: {response.status} {answer}")
    return answer
