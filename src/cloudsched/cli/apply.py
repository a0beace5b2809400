"""``cloudsched apply``: creates, edits and pauses the tasks that the code declares."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from cloudsched.domain.closed_sets import complete_table
from cloudsched.local.untrusted_text import to_printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.engine.tasks.declared_tasks import Change


def show_changes(changes: Iterable[Change], titles: Mapping[str, str] | None = None) -> None:
    """Print one line for each change.

    Args:
        changes: What differs.
        titles: What the tasks are, by their ids, where the ids do not say it.
    """
    from cloudsched.engine.tasks.declared_tasks import Action  # noqa: PLC0415 - not needed for --help

    signs = complete_table(
        Action,
        {Action.CREATE: "+", Action.UPDATE: "~", Action.PAUSE: "-", Action.RESUME: "+", Action.DELETE: "-"},
    )
    for change in changes:
        title = (titles or {}).get(change.task_id)
        shown = "" if title in {None, change.task_id} else f" ({title})"
        click.echo(to_printable(f"{signs[change.action]} {change.action} {change.task_id}: {change.detail}{shown}"))


@click.command()
@click.option(
    "--handlers",
    metavar="FILE|MODULE[:APP]",
    help="The app whose schedules are applied. [default: functions/handlers.py or handlers.py]",
)
@click.option("--prune", is_flag=True, help="Delete tasks that are gone from the code, instead of pausing them.")
@click.option("--dry-run", is_flag=True, help="Show the changes and make none.")
@click.option("--check", is_flag=True, help="Show the changes, make none, and exit with 1 if there are any.")
@click.option(
    "--owner",
    "owners",
    multiple=True,
    help="An owner whose tasks may be gone from the code; repeatable. [default: system, and those that the code names]",
)
@click.option(
    "--name",
    default="default",
    show_default=True,
    help="The name of this code's schedules, if several services share a store.",
)
def apply(*, handlers: str | None, prune: bool, dry_run: bool, check: bool, owners: tuple[str, ...], name: str) -> None:
    """Bring the stored tasks in line with the schedules that the code declares with @app.scheduled.

    The store and the queue are those of the settings in the environment. Tasks that people created are never changed.
    Exits with 0, with 1 if --check finds a difference, and with 2 after an error.
    """
    from cloudsched.engine.tasks.declared_tasks import Action  # noqa: PLC0415 - not needed for --help
    from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - likewise

    app = load_app(handlers, or_examples=False).app
    try:
        declared = app.declared_tasks(name)
        changes = declared.compare(
            list(app.container.registry.registrations.declarations.values()),
            ("system", *owners),
            gone=Action.DELETE if prune else Action.PAUSE,
        )
        show_changes(changes)
        if not changes:
            click.echo("Nothing differs.")
        elif not (dry_run or check):
            declared.apply(changes)
            click.echo(f"{len(changes)} {'change' if len(changes) == 1 else 'changes'} made.")
    finally:
        app.close()
    if check and changes:
        sys.exit(1)
