"""``cloudsched tasks tree`` and ``cloudsched tasks send``: draw a durable task's calls, and send it an event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from cloudsched.cli.api_group import pass_client
from cloudsched.local.untrusted_text import to_json_line

if TYPE_CHECKING:
    from cloudsched.client.client import Client


@click.command()
@click.argument("task_id")
@click.option("--execution", metavar="ID", help="Show only this execution's calls and their descendants.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@pass_client
def tree(client: Client, task_id: str, *, execution: str | None, as_json: bool) -> None:
    """Draw a task with the calls below it, each with its progress and steps (`logs` shows those of all executions)."""
    view = client.tree(task_id, execution)
    if as_json:
        click.echo(to_json_line(view.model_dump(mode="json", by_alias=True)))
        return
    from cloudsched.cli.call_tree import draw_tree  # noqa: PLC0415 - likewise
    from cloudsched.cli.output import make_console  # noqa: PLC0415 - not needed for --help, nor for JSON

    make_console().print(draw_tree(client, view, execution))


@click.command()
@click.argument("task_id")
@click.argument("event")
@click.option("--payload", default="null", help="The event's payload, as JSON.")
@click.option(
    "--execution", metavar="ID", help="Send to this execution only; else the first that waits for it takes it."
)
@pass_client
def send(client: Client, task_id: str, event: str, *, payload: str, execution: str | None) -> None:
    """Send EVENT to a task's durable handler."""
    try:
        content = json.loads(payload)
    except ValueError as error:
        raise click.UsageError(f"--payload is not JSON: {error}") from error
    client.send_event(task_id, event, content, execution_id=execution)
    click.echo(f"sent {event}")
