"""``cloudsched tasks history``: what was done with a task by hand."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

import click

from cloudsched.cli.api_group import pass_client
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from cloudsched.client.client import Client
    from cloudsched.domain.documents.task import FieldChange, HistoryEntry


@click.command()
@click.argument("task_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@pass_client
def history(client: Client, task_id: str, *, as_json: bool) -> None:
    """Show what was done with a task by hand: who changed what and when, the latest first."""
    found = client.history(task_id)
    if as_json:
        click.echo(to_json_line(found.to_wire()))
        return
    for entry in found.entries:
        shown = f"{entry.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}", entry.action.lower(), f"by {name_actor(entry)}"
        click.echo("  ".join(map(to_printable, (*shown, *filter(None, (entry.execution_id, entry.reason))))))
        for each in entry.fields:
            click.echo(f"  - {to_printable(describe_change(each))}")
    if found.omitted_entries:
        click.echo(f"Earlier entries that are not kept: {found.omitted_entries}.")
    elif not found.entries:
        click.echo("Nothing was done with it by hand.")


def name_actor(entry: HistoryEntry) -> str:
    """Return who did it."""
    if entry.by is None:
        return "the scheduler"
    subject = entry.by.subject or "the app's own code"
    return subject if entry.by.via is None else f"{subject}, through {entry.by.via}"


def describe_change(change: FieldChange) -> str:
    """Return a changed field, with its values as far as they are shown."""
    if change.before is None and change.after is None:
        return change.field
    return f"{change.field}: {change.before or '(none, or not shown)'} → {change.after or '(none, or not shown)'}"
