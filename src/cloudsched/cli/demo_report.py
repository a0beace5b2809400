"""Runs the demo's scenario, and shows what ran.

The scenario creates three tasks over HTTP, moves the clock by more than a year and fetches what ran. Nothing
in it is special to the demo: any client could send these requests, and the stack is that of ``cloudsched
dev``.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from cloudsched.cli.signals import wait_for_signal
from cloudsched.client.client import Client
from cloudsched.config.settings import Settings
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.transitions.claim import DeliveryAction
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.local.examples import app
from cloudsched.local.stack import Stack, run_stack

if TYPE_CHECKING:
    from cloudsched.domain.responses.api_responses import Execution

START: Final = datetime(2027, 1, 1, 7, 30, tzinfo=UTC)
END: Final = datetime(2028, 2, 5, 7, 30, tzinfo=UTC)
ZONE: Final = "Europe/Paris"
OWNER: Final = "ada"
WIDTH: Final = 80
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
        "schedule": {
            "rrule": "FREQ=YEARLY",
            "dtstart": f"{_BIRTHDAY}T{_REPORT_TIME:%H:%M:%S}",
            "timezone": ZONE,
        },
    },
)


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The state at the end of the scenario."""

    runs: dict[str, list[Execution]]
    """Each task's runs, earliest first."""
    deliveries: list[tuple[datetime, DeliveryAction]]
    """The queue's deliveries for the birthday, and the executor's answers."""
    inbox: list[str]
    """The titles of the messages, earliest first."""


def run_and_print(*, stays: bool = False) -> list[str]:
    """Run the scenario and print what ran. Return what did not run as it should.

    With `stays` it returns nothing: a signal ends it.
    """
    console = Console(width=WIDTH, highlight=False)
    base = Settings(
        project=f"demo-{secrets.token_hex(8)}",  # keeps clear of other tasks in a shared emulator
        firestore_emulator=Settings.from_environment().firestore_emulator,
        retention=None,  # the first day's reminder must still be there a year later
    )
    with run_stack(app, base=base, store="auto", clock=MovableClock(START, frozen=True)) as stack:
        tasks = f"[bold]Cloud Tasks[/]  {stack.emulator.address}"
        console.print(f"[bold]Store[/]  {stack.store.reason}.", soft_wrap=True)
        console.print(f"[bold]API[/]    {stack.url}/v1/tasks   {tasks}\n")
        result = _run_scenario(stack, console)

        problems = _check(result)
        console.print(_runs_table(result), _wakeups_table(result))
        console.print(f"In the inbox of {OWNER}: {', '.join(result.inbox)}.\n")
        wrong = "\n".join(f"[bold red]Wrong:[/] {problem}" for problem in problems)
        console.print(wrong or "[bold green]Everything ran on time, once.[/]")

        if stays:
            page = f"{stack.url}/ui/calendar?month={_BIRTHDAY:%Y-%m}"
            text = f"\nThe year, from the month of the birthday: {page}\nCtrl-C stops it."
            console.print(text, soft_wrap=True)
            wait_for_signal()
    return problems


def _run_scenario(stack: Stack, console: Console) -> DemoResult:
    columns = (TextColumn("[bold]Clock[/]  {task.description}"), BarColumn(None), TimeElapsedColumn())
    with Client(stack.url) as client, Progress(*columns, console=console) as progress:
        bar = progress.add_task(f"{START:%d %b %Y}", total=(END - START).days)
        for task in TASKS:
            client.create(owner=OWNER, **task)

        now = START
        while now < END:
            now = min(now + _STEP, END)
            stack.mover.move({"advanceTo": now.isoformat()})
            progress.update(bar, description=f"{now:%d %b %Y}", completed=(now - START).days)

        delivered = [
            (attempt.dispatch_at, DeliveryAction(json.loads(attempt.answer.body)["action"]))
            for attempt in stack.emulator.attempts()
            if json.loads(attempt.request.body)["taskId"] == "birthday"
        ]
        return DemoResult(
            runs={task["id"]: [*client.executions(task["id"])][::-1] for task in TASKS},
            deliveries=delivered,
            inbox=[message.title for message in client.inbox(OWNER)][::-1],
        )


def expected_runs() -> dict[str, list[datetime]]:
    """Return when each task has to run, computed day by day and without the scheduler's code."""
    zone = time_zones.load_tzinfo(ZONE)

    def at_nine(day: date) -> datetime:
        return datetime.combine(day, _REPORT_TIME, zone).astimezone(UTC)

    days = [START.date() + timedelta(days=number) for number in range((END - START).days + 1)]
    reports = [at_nine(day) for day in days if day.weekday() < _WEEKEND]
    return {
        "tea": [_TEA_AT],
        "weekday-report": [at for at in reports if START <= at <= END],
        "birthday": [at_nine(_BIRTHDAY)],
    }


def _check(result: DemoResult) -> list[str]:
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
    if result.inbox != ["Tea is ready", "Grace's birthday"]:
        problems.append("The inbox does not hold the reminder and the birthday, once each.")
    return problems


def _make_table(title: str, *columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", padding=(0, 1, 0, 0))
    for name in columns:
        table.add_column(name, no_wrap=True)
    return table


def _runs_table(result: DemoResult) -> Table:
    """Show the first and the last run between each two clock changes, and how many lie in between."""
    table = _make_table("What ran when", "Task", f"Local ({ZONE})", "UTC", "Status")
    zone = time_zones.load_tzinfo(ZONE)

    def find_offset(run: Execution) -> timedelta | None:
        return run.scheduled_for.astimezone(zone).utcoffset()

    def add(title: str, run: Execution) -> None:
        local = f"{run.scheduled_for.astimezone(zone):%a %d %b %Y %H:%M %z}"
        table.add_row(title, local, _format_time(run.scheduled_for), run.status)

    for task in TASKS:
        title = task["title"]
        for _, runs in groupby(result.runs[task["id"]], find_offset):
            first, *others = runs
            add(title, first)
            title = ""
            if len(others) > 1:
                statuses = " ".join(sorted({each.status for each in others[:-1]}))
                table.add_row("", f"… {len(others) - 1} more", "", statuses, style="dim")
            if others:
                add("", others[-1])
        table.add_section()
    return table


def _wakeups_table(result: DemoResult) -> Table:
    """Show the birthday's wake-ups, none later than 30 days after the one before."""
    title = "The birthday's wake-ups, since Cloud Tasks waits 30 days at most"
    table = _make_table(title, "", "At (UTC)", "After", "")
    meanings = {DeliveryAction.HOPPED: "too early: sent again", DeliveryAction.RAN: "the handler ran"}
    previous = START
    count = 0
    for at, action in result.deliveries:
        count += 1
        name = f"wake-up {count}"
        style = ""
        if action is not DeliveryAction.HOPPED:
            count = 0
            name = "run"
            style = "bold"
        span = at - previous
        after = f"{span.days} d {span.seconds // 3600:2} h {span.seconds // 60 % 60:2} min"
        table.add_row(name, _format_time(at), after, meanings.get(action, action), style=style)
        previous = at
    return table


def _format_time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"
