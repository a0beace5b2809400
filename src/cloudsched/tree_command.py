"""``cloudsched tasks tree`` and ``cloudsched tasks send``: durable tasks, drawn and told something."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text
from rich.tree import Tree as Drawing

from cloudsched.domain.task import TaskStatus

if TYPE_CHECKING:
    from cloudsched.client import Client, TaskView, TreeView

_STYLES = {
    TaskStatus.ACTIVE: "cyan",
    TaskStatus.PAUSED: "yellow",
    TaskStatus.COMPLETED: "green",
    TaskStatus.FAILED: "red",
    TaskStatus.CANCELLED: "dim",
    TaskStatus.EXPIRED: "magenta",
}


@click.command()
@click.argument("task_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_obj
def tree(client: Client, task_id: str, *, as_json: bool) -> None:
    """Draw a task with the calls below it."""
    found = client.tree(task_id)
    if as_json:
        click.echo(json.dumps(found.model_dump(mode="json", by_alias=True), ensure_ascii=False))
        return
    drawing = Drawing(_label(found.task))
    _draw(found, drawing)
    Console(highlight=False).print(drawing)


@click.command()
@click.argument("task_id")
@click.argument("event")
@click.option("--payload", default="null", help="What its handler is given, as JSON.")
@click.pass_obj
def send(client: Client, task_id: str, event: str, *, payload: str) -> None:
    """Tell a task's durable handler that EVENT has come."""
    try:
        content = json.loads(payload)
    except ValueError as error:
        raise click.UsageError(f"--payload is not JSON: {error}") from error
    client.send_event(task_id, event, content)
    click.echo(f"sent {event}")


def _draw(tree: TreeView, drawing: Drawing) -> None:
    for child in tree.children:
        _draw(child, drawing.add(_label(child.task)))


def _label(task: TaskView) -> Text:
    return Text.assemble((f"{task.status:<9}", _STYLES[task.status]), f" {task.handler}  ", (task.id, "dim"))
