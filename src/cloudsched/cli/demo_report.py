"""Runs the demo's scenario, and shows what ran."""

from __future__ import annotations

import secrets
import time
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from cloudsched.cli.demo_scenario import END, OWNER, START, TASKS, ZONE, DemoResult, DemoRun, check, run_scenario
from cloudsched.config.settings import Settings
from cloudsched.domain.recurrence import time_zones
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.engine.execution.attempts import DeliveryAction
from cloudsched.local.examples import app
from cloudsched.local.stack import run_stack

if TYPE_CHECKING:
    from datetime import timedelta

    from cloudsched.local.stack import Stack
    from cloudsched.local.store_choice import StoreChoice

WIDTH = 80


def run_and_print(store: StoreChoice) -> list[str]:
    """Run the scenario and print what ran; return what did not run as it should."""
    console = Console(width=WIDTH, highlight=False)
    base = Settings(
        project=f"demo-{secrets.token_hex(8)}",  # keeps clear of other tasks in a shared emulator
        firestore_emulator=Settings.from_environment().firestore_emulator,
        retention=None,  # the first day's reminder must still be there a year later
    )
    with run_stack(app, base=base, store=store, clock=MovableClock(START, frozen=True)) as stack:
        console.print(f"[bold]Store[/]  {stack.store.reason}.", soft_wrap=True)
        console.print(f"[bold]API[/]    {stack.url}/v1/tasks   [bold]Cloud Tasks[/]  {stack.emulator.address}\n")
        started = time.perf_counter()
        result = _run_with_progress(console, stack)
        seconds = time.perf_counter() - started
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


def _format_run(run: DemoRun) -> tuple[str, str, str]:
    return f"{_to_local(run):%a %d %b %Y %H:%M %z}", _format_time(run.scheduled_for), run.status


def _summarize_runs(runs: list[DemoRun]) -> tuple[str, str, str]:
    """Describe several runs on one line."""
    local = " ".join(sorted({f"{_to_local(run):%H:%M}" for run in runs}))
    utc = " ".join(sorted({f"{run.scheduled_for:%H:%M:%S}" for run in runs}))
    statuses = " ".join(sorted({run.status for run in runs}))
    return f"{f'… {len(runs)} more at':>15} {local}", f"{'…':>10} {utc}", statuses


def _to_local(run: DemoRun) -> datetime:
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
        table.add_row(_format_time(datetime.fromisoformat(message["createdAt"])), message["title"], message["body"])
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
