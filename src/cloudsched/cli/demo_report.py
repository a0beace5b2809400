"""Runs the demo's scenario, and shows what ran.

The scenario creates three tasks over HTTP, moves the clock by more than a year and fetches what ran. Nothing in it is
special to the demo: any client could send these requests, and the stack is that of ``cloudsched dev``.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby, pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from cloudsched.client.client import Client
from cloudsched.config.settings import Settings
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.transitions.planning import HORIZON
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.engine.execution.executor import DeliveryAction
from cloudsched.local.examples import app
from cloudsched.local.stack import Stack, run_stack

if TYPE_CHECKING:
    from cloudsched.adapters.operation_counts import Counts
    from cloudsched.client.views import TaskView
    from cloudsched.domain.documents.execution import Message
    from cloudsched.domain.documents.responses import Execution
    from cloudsched.emulator.runtime.history import Attempt
    from cloudsched.local.store_choice import StoreChoice


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
class DemoDelivery:
    """One dispatch that reached the executor."""

    task_id: str
    at: datetime
    action: str
    """The `DeliveryResult`'s action."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The state at the end of the scenario."""

    tasks: dict[str, TaskView]
    """Each task as the API shows it, by its id."""
    runs: dict[str, list[Execution]]
    """Each task's runs, earliest first."""
    deliveries: list[DemoDelivery]
    """The queue's deliveries for the birthday."""
    hops: int
    """The number of deliveries, of any task, that only dispatched the next one."""
    inbox: list[Message]
    counts: Counts


def run_scenario(stack: Stack, on_clock_moved: Callable[[datetime], None]) -> DemoResult:
    """Create the tasks, move the clock to the end and fetch the results.

    Args:
        stack: A running stack whose clock is frozen at `START`.
        on_clock_moved: Called with the clock's time after each move.

    Raises:
        CloudschedError: A request failed.
    """
    with Client(stack.url) as client:
        for task in TASKS:
            client.create(owner=OWNER, **task)
        now = START
        while now < END:
            now = min(now + _STEP, END)
            stack.mover.move({"advanceTo": now.isoformat()})
            on_clock_moved(now)
        counts = stack.counts.copy()
        deliveries = [_parse_delivery(attempt) for attempt in stack.emulator.attempts()]
        ids = [task["id"] for task in TASKS]
        return DemoResult(
            tasks={task_id: client.get(task_id) for task_id in ids},
            runs={task_id: [*client.executions(task_id)][::-1] for task_id in ids},
            deliveries=[delivery for delivery in deliveries if delivery.task_id == "birthday"],
            hops=sum(delivery.action == DeliveryAction.HOPPED for delivery in deliveries),
            inbox=[*client.inbox(OWNER)][::-1],
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
    """Return the problems found, empty if everything ran as it should."""
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
    if [message.title for message in result.inbox] != ["Tea is ready", "Grace's birthday"]:
        problems.append("The inbox does not hold the reminder and the birthday, once each.")
    if result.tasks["tea"].status != "COMPLETED":
        problems.append(f"The reminder is {result.tasks['tea'].status}, not COMPLETED.")
    for task_id in ("weekday-report", "birthday"):
        task = result.tasks[task_id]
        if task.status != "ACTIVE" or task.next_execution_time is None or task.next_execution_time <= END:
            problems.append(f"{task_id} has no next occurrence.")
    return problems


def _parse_delivery(attempt: Attempt) -> DemoDelivery:
    dispatch, result = json.loads(attempt.request.body), json.loads(attempt.answer.body)
    return DemoDelivery(dispatch["taskId"], attempt.dispatch_at, result["action"])


WIDTH = 80


def run_and_print(store: StoreChoice) -> list[str]:
    """Run the scenario and print what ran. Return what did not run as it should."""
    console = Console(width=WIDTH, highlight=False)
    base = Settings(
        project=f"demo-{secrets.token_hex(8)}",  # keeps clear of other tasks in a shared emulator
        firestore_emulator=Settings.from_environment().firestore_emulator,
        retention=None,  # the first day's reminder must still be there a year later
    )
    with run_stack(app, base=base, store=store, clock=MovableClock(START, frozen=True)) as stack:
        console.print(f"[bold]Store[/]  {stack.store.reason}.", soft_wrap=True)
        console.print(f"[bold]API[/]    {stack.url}/v1/tasks   [bold]Cloud Tasks[/]  {stack.emulator.address}\n")
        started = perf_counter()
        result = _run_with_progress(console, stack)
        seconds = perf_counter() - started
    problems = check(result)
    console.print(_runs_table(result), _hops_table(result))
    console.print(_inbox_table(result), _totals_table(result, seconds))
    console.print(
        " An occurrence costs 1 read, 3 writes, 1 dispatch; a hop 1 read, 1 dispatch.\n"
        " The rest is the creation of the tasks, the messages, and the sweep.\n",
        style="dim",
    )
    for problem in problems:
        console.print(f"[bold red]Wrong:[/] {problem}")
    if not problems:
        console.print("[bold green]Everything ran on time, once.[/]")
    return problems


def _run_with_progress(console: Console, stack: Stack) -> DemoResult:
    columns = (TextColumn("[bold]Clock[/]  {task.description}"), BarColumn(None), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(_format_day(START), total=(END - START).days)

        def update_progress(now: datetime) -> None:
            progress.update(bar, description=_format_day(now), completed=(now - START).days)

        return run_scenario(stack, update_progress)


def _format_day(at: datetime) -> str:
    return f"{at:%d %b %Y}"


def _make_table(title: str, *columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", padding=(0, 1, 0, 0))
    for name in columns:
        table.add_column(name, no_wrap=True)
    return table


def _runs_table(result: DemoResult) -> Table:
    """Show the first and the last run between each two clock changes, and how many lie in between."""
    table = _make_table("What ran when", "Task", f"Local ({ZONE})", "UTC", "Status")
    for task in TASKS:
        title = task["title"]
        for _, stretch in groupby(result.runs[task["id"]], key=lambda run: _to_local(run).utcoffset()):
            first, *between = stretch
            last = between.pop() if between else None
            table.add_row(title, *_format_run(first))
            if between:
                table.add_row("", *_summarize_runs(between), style="dim")
            if last:
                table.add_row("", *_format_run(last))
            title = ""
        table.add_section()
    return table


def _format_run(run: Execution) -> tuple[str, str, str]:
    return f"{_to_local(run):%a %d %b %Y %H:%M %z}", _format_time(run.scheduled_for), run.status


def _summarize_runs(runs: list[Execution]) -> tuple[str, str, str]:
    """Describe several runs on one line."""
    local = " ".join(sorted({f"{_to_local(run):%H:%M}" for run in runs}))
    utc = " ".join(sorted({f"{run.scheduled_for:%H:%M:%S}" for run in runs}))
    statuses = " ".join(sorted({run.status for run in runs}))
    return f"{f'… {len(runs)} more at':>15} {local}", f"{'…':>10} {utc}", statuses


def _to_local(run: Execution) -> datetime:
    return run.scheduled_for.astimezone(time_zones.load_tzinfo(ZONE))


def _hops_table(result: DemoResult) -> Table:
    """Show the birthday's hops through the queue, none longer than 30 days."""
    table = _make_table("The birthday's hops through the queue", "", "Delivered (UTC)", "After", "Result")
    meanings = {DeliveryAction.HOPPED: "too early: dispatched again", DeliveryAction.RAN: "the handler ran"}
    previous, hops = START, 0
    for delivery in result.deliveries:
        hops = hops + 1 if delivery.action == DeliveryAction.HOPPED else 0
        name = f"hop {hops}" if hops else "run"
        meaning = meanings.get(DeliveryAction(delivery.action), delivery.action)
        table.add_row(
            name,
            _format_time(delivery.at),
            _format_duration(delivery.at - previous),
            meaning,
            style="" if hops else "bold",
        )
        previous = delivery.at
    return table


def _inbox_table(result: DemoResult) -> Table:
    table = _make_table(f"The inbox of {OWNER}", "Sent (UTC)", "Title", "Text")
    for message in result.inbox:
        table.add_row(_format_time(message.created_at), message.title, message.body)
    return table


def _format_time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"


def _format_duration(span: timedelta) -> str:
    hours, seconds = divmod(span.seconds, 3600)
    return f"{span.days} d {hours:2} h {seconds // 60:2} min"


def _totals_table(result: DemoResult, seconds: float) -> Table:
    counts = result.counts
    figures = {
        "Occurrences": sum(len(runs) for runs in result.runs.values()),
        "Hops": result.hops,
        "Dispatches": counts.dispatches,
        "Document reads": counts.reads,
        "Document writes": counts.writes,
        "Seconds": f"{seconds:.1f}",
    }
    table = _make_table("Totals")
    for name in figures:
        table.add_column(name, justify="right")
    table.add_row(*(str(figure) for figure in figures.values()))
    return table
