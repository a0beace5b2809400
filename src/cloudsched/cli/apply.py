"""``cloudsched apply``: creates, edits and pauses the tasks that the code declares."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from cloudsched.cli.api_group import json_option
from cloudsched.domain.closed_sets import complete_table
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.engine.tasks.declared_tasks import Change


def show_changes(changes: Iterable[Change], titles: Mapping[str, str] | None = None, *, as_json: bool = False) -> None:
    """Print one line for each change.

    Args:
        changes: What differs.
        titles: What the tasks are, by their ids, where the ids do not say it.
        as_json: Whether each line is JSON, for programs.
    """
    from cloudsched.engine.tasks.declared_tasks import Action  # noqa: PLC0415 - not needed for --help

    signs = complete_table(
        Action,
        {Action.CREATE: "+", Action.UPDATE: "~", Action.PAUSE: "-", Action.RESUME: "+", Action.DELETE: "-"},
    )
    for change in changes:
        if as_json:
            shown_fields = {"action": change.action, "taskId": change.task_id, "detail": change.detail}
            click.echo(to_json_line({**shown_fields, "fields": change.fields}))
            continue
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
@json_option
def apply(
    *,
    handlers: str | None,
    prune: bool,
    dry_run: bool,
    check: bool,
    owners: tuple[str, ...],
    name: str,
    as_json: bool,
) -> None:
    """Bring the stored tasks in line with the schedules that the code declares with @app.scheduled.

    The store and the queue are those of the settings in the environment. Tasks that people created are never changed.
    Exits with 1 if --check finds a difference. With --json, prints a line of JSON for each change.
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
        show_changes(changes, as_json=as_json)
        if not changes:
            click.echo("Nothing differs.", err=as_json)
        elif not (dry_run or check):
            declared.apply(changes)
            click.echo(f"{len(changes)} {'change' if len(changes) == 1 else 'changes'} made.", err=as_json)
    finally:
        app.close()
    if check and changes:
        sys.exit(1)
