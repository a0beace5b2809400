"""``cloudsched demo``: more than a year of three tasks, in seconds, and what became of them."""

from __future__ import annotations

import secrets
import sys
import time
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from cloudsched.cli.demo_scenario import END, OWNER, START, TASKS, ZONE, Findings, Ran, complaints, play
from cloudsched.cli.signals import Stopped, stoppable
from cloudsched.config.settings import Settings
from cloudsched.domain.recurrence import time_zones as zones
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.engine.execution.attempts import Action
from cloudsched.local.examples import app
from cloudsched.local.stack import running

if TYPE_CHECKING:
    from datetime import timedelta

    from cloudsched.local.stack import Stack
    from cloudsched.local.store_choice import Wanted

WIDTH = 80


@click.command()
@click.option(
    "--store",
    type=click.Choice(["auto", "sqlite", "firestore"]),
    default="auto",
    show_default=True,
    help="Where tasks are kept: embedded, or in Google's Firestore emulator; auto takes that one if there is one.",
)
def demo(store: Wanted) -> None:
    """Watch a year of tasks go by in seconds.

    Creates a reminder, a weekday report and a birthday through HTTP, moves the clock from the first of January 2027
    to February 2028, shows what ran, and exits with 1 if anything did not run as it should.
    """
    try:
        with stoppable():
            wrong = _show(Console(width=WIDTH, highlight=False), store)
    except Stopped as stopped:
        sys.exit(stopped.exit_code)
    sys.exit(1 if wrong else 0)


def _show(console: Console, store: Wanted) -> list[str]:
    base = Settings(
        project=f"demo-{secrets.token_hex(8)}",  # nobody else's tasks, should the emulator be somebody's
        firestore_emulator=Settings.from_environment().firestore_emulator,
        retention=None,  # the reminder of the first day is still to be seen a year later
    )
    with running(app, base=base, store=store, clock=MovableClock(START, frozen=True)) as stack:
        console.print(f"[bold]Store[/]  {stack.store.why}.", soft_wrap=True)
        console.print(f"[bold]API[/]    {stack.url}/v1/tasks   [bold]Cloud Tasks[/]  {stack.emulator.address}\n")
        began = time.perf_counter()
        found = _played(console, stack)
        seconds = time.perf_counter() - began
    wrong = complaints(found)
    console.print(_what_ran(found), _way(found))
    console.print(_inbox(found), _totals(found, seconds))
    console.print(
        " An occurrence costs 1 read, 3 writes, 1 dispatch; a hop 1 read, 1 dispatch.\n"
        " The rest is the creation of the tasks, the messages, and the sweep.\n",
        style="dim",
    )
    for complaint in wrong:
        console.print(f"[bold red]Wrong:[/] {complaint}")
    if not wrong:
        console.print("[bold green]Everything ran at its instant, once.[/]")
    return wrong


def _played(console: Console, stack: Stack) -> Findings:
    columns = (TextColumn("[bold]Clock[/]  {task.description}"), BarColumn(None), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(_day(START), total=(END - START).days)

        def moved(now: datetime) -> None:
            progress.update(bar, description=_day(now), completed=(now - START).days)

        return play(stack, moved)


def _day(at: datetime) -> str:
    return f"{at:%d %b %Y}"


def _table(title: str, *columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", padding=(0, 1, 0, 0))
    for name in columns:
        table.add_column(name, no_wrap=True)
    return table


def _what_ran(found: Findings) -> Table:
    """Show the first and the last run of each stretch between two clock changes, and how many lie in between."""
    table = _table("What ran when", "Task", f"Local ({ZONE})", "UTC", "Status")
    for task in TASKS:
        title = task["title"]
        for _, stretch in groupby(found.ran[task["id"]], key=lambda run: _local(run).utcoffset()):
            first, *between = stretch
            last = between.pop() if between else None
            table.add_row(title, *_row(first))
            if between:
                table.add_row("", *_summary(between), style="dim")
            if last:
                table.add_row("", *_row(last))
            title = ""
        table.add_section()
    return table


def _row(run: Ran) -> tuple[str, str, str]:
    return f"{_local(run):%a %d %b %Y %H:%M %z}", _stamp(run.scheduled_for), run.status


def _summary(runs: list[Ran]) -> tuple[str, str, str]:
    """Describe runs that are shown as one line."""
    local = " ".join(sorted({f"{_local(run):%H:%M}" for run in runs}))
    utc = " ".join(sorted({f"{run.scheduled_for:%H:%M:%S}" for run in runs}))
    statuses = " ".join(sorted({run.status for run in runs}))
    return f"{f'… {len(runs)} more at':>15} {local}", f"{'…':>10} {utc}", statuses


def _local(run: Ran) -> datetime:
    return run.scheduled_for.astimezone(zones.tzinfo(ZONE))


def _way(found: Findings) -> Table:
    """Show the way of the birthday through the queue, no part of it longer than 30 days."""
    table = _table("The birthday's way through the queue", "", "Delivered (UTC)", "After", "Came to")
    meaning = {Action.HOPPED: "too early: sent on", Action.RAN: "the handler ran"}
    before, hops = START, 0
    for delivery in found.way:
        hops = hops + 1 if delivery.action == Action.HOPPED else 0
        name = f"hop {hops}" if hops else "run"
        came_to = meaning.get(Action(delivery.action), delivery.action)
        table.add_row(name, _stamp(delivery.at), _span(delivery.at - before), came_to, style="" if hops else "bold")
        before = delivery.at
    return table


def _inbox(found: Findings) -> Table:
    table = _table(f"The inbox of {OWNER}", "Put there (UTC)", "Title", "Text")
    for message in found.inbox:
        table.add_row(_stamp(datetime.fromisoformat(message["createdAt"])), message["title"], message["body"])
    return table


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"


def _span(span: timedelta) -> str:
    hours, seconds = divmod(span.seconds, 3600)
    return f"{span.days} d {hours:2} h {seconds // 60:2} min"


def _totals(found: Findings, seconds: float) -> Table:
    counts = found.counts
    figures = {
        "Occurrences": sum(len(runs) for runs in found.ran.values()),
        "Hops": found.hops,
        "Dispatches": counts.dispatches,
        "Document reads": counts.reads,
        "Document writes": counts.writes,
        "Seconds": f"{seconds:.1f}",
    }
    table = _table("Totals")
    for name in figures:
        table.add_column(name, justify="right")
    table.add_row(*(str(figure) for figure in figures.values()))
    return table
