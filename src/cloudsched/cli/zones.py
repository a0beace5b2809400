"""``cloudsched zones``: what a release of the time zone data changes, before it happens."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloudsched.cli.api_group import json_option
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.explanation.zone_changes import MovedOccurrence, ZoneChange
    from cloudsched.engine.ports.store import Store


@click.group()
def zones() -> None:
    """Show which time zones and tasks a release of the time zone data touches."""


@zones.command()
@click.argument("old")
@click.argument("new")
@click.option(
    "--store",
    metavar="STORE",
    help="Whose tasks to look at: a store's SQLite file, or 'firestore' for that of the settings in the environment.",
)
@click.option("--days", type=click.IntRange(1, 3660), default=366, show_default=True, help="How far ahead to look.")
@json_option
def diff(old: str, new: str, store: str | None, days: int, *, as_json: bool) -> None:
    """Show which zones differ between two releases of tzdata, and which occurrences of which tasks that moves.

    OLD and NEW are releases (2026a) or versions (2026.1), which pip downloads; paths of wheels or of folders with the
    package; or 'installed'. Nothing is changed: a task moves when a process with newer data sweeps.
    """
    from cloudsched.adapters.clocks import SystemClock  # noqa: PLC0415 - not needed for --help
    from cloudsched.adapters.zone_releases import open_release  # noqa: PLC0415 - likewise
    from cloudsched.domain.explanation.zone_changes import compare_task, compare_zones  # noqa: PLC0415 - likewise

    before, after, now = open_release(old), open_release(new), SystemClock().now()
    changes = compare_zones(before, after, now)
    names, until = {each.name for each in changes}, now + timedelta(days=days)
    tasks = list[tuple["Task", list["MovedOccurrence"]]]()
    for task in () if store is None else _iter_tasks(store):
        if task.zone_plan is not None and task.timezone in names:
            moved = compare_task(task, before, after, now, until)
            if moved:
                tasks.append((task, moved))
    if as_json:
        shown: dict[str, Any] = {"old": before.release, "new": after.release, "until": _to_text(until)}
        shown["zones"] = [_zone_to_json(each) for each in changes]
        if store is not None:
            shown["tasks"] = [_task_to_json(task, moved) for task, moved in tasks]
        click.echo(to_json_line(shown))
        return
    _print_zones(before.release, after.release, changes)
    if store is not None:
        _print_tasks(tasks, days)


def _iter_tasks(place: str) -> Iterator[Task]:
    """Yield all active tasks of a store."""
    from cloudsched.domain.documents.task import TaskStatus  # noqa: PLC0415 - not needed for --help
    from cloudsched.engine.ports.task_query import TaskQuery  # noqa: PLC0415 - likewise

    token: str | None = None
    with closing(_open_store(place)) as store:
        while True:
            page = store.list_tasks(TaskQuery(owner=None, status=TaskStatus.ACTIVE), limit=200, page_token=token)
            yield from page.items
            token = page.next_page_token
            if token is None:
                return


def _open_store(place: str) -> Store:
    if place == "firestore":
        from cloudsched.config.settings import Settings  # noqa: PLC0415 - not needed for a file
        from cloudsched.runtime.factories import open_firestore_store  # noqa: PLC0415 - likewise

        return open_firestore_store(Settings.from_environment())
    from cloudsched.adapters.sqlite.store import SqliteStore  # noqa: PLC0415 - not needed for Firestore

    if not Path(place).is_file():
        raise click.UsageError(f"--store: {place} is no file; give a store's SQLite file, or 'firestore'.")
    return SqliteStore(Path(place))


def _print_zones(old: str, new: str, changes: list[ZoneChange]) -> None:
    ahead = [each for each in changes if each.at is not None]
    past = len(changes) - len(ahead)
    click.echo(f"tzdata {old} → {new}: {len(ahead)} zones differ from now on, {past} only in the past.")
    for each in ahead:
        if each.after is None:
            click.echo(f"  {each.name}  is no longer known")
        elif each.before is None:
            click.echo(f"  {each.name}  is new, at {_offset(each.after)}")
        else:
            click.echo(
                f"  {each.name}  from {each.at:%Y-%m-%d %H:%M} UTC  {_offset(each.before)} → {_offset(each.after)}"
            )


def _print_tasks(tasks: list[tuple[Task, list[MovedOccurrence]]], days: int) -> None:
    click.echo(f"{len(tasks)} active tasks have occurrences that move within {days} days.")
    for task, moved in tasks:
        first = moved[0]
        more = f", and {len(moved) - 1} more" if len(moved) > 1 else ""
        title = to_printable(task.title)
        click.echo(f"  {task.id}  {title}  {first.name}  {_instant(first.before)} → {_instant(first.after)}{more}")


def _offset(seconds: int) -> str:
    sign, minutes = "-" if seconds < 0 else "+", abs(seconds) // 60
    return f"UTC{sign}{minutes // 60:02}:{minutes % 60:02}"


def _instant(at: datetime | None) -> str:
    return "none" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


def _zone_to_json(change: ZoneChange) -> dict[str, Any]:
    return {"zone": change.name, "from": _to_text(change.at), "before": change.before, "after": change.after}


def _task_to_json(task: Task, moved: list[MovedOccurrence]) -> dict[str, Any]:
    occurrences = [
        {"executionId": each.name, "before": _to_text(each.before), "after": _to_text(each.after)} for each in moved
    ]
    shown = {"id": task.id, "owner": task.owner, "title": task.title, "timezone": task.timezone}
    return {**shown, "occurrences": occurrences}


def _to_text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat().replace("+00:00", "Z")
