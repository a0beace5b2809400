"""``cloudsched tasks tree`` and ``cloudsched tasks send``: draw a durable task's calls, and send it an event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from rich.text import Text
from rich.tree import Tree as Drawing

from cloudsched.cli.output import make_console
from cloudsched.domain.documents.task import TaskStatus

if TYPE_CHECKING:
    from cloudsched.client.client import Client, TaskView, TreeView

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
@click.option("--execution", metavar="ID", help="Show only this execution's calls and their descendants.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_obj
def tree(client: Client, task_id: str, *, execution: str | None, as_json: bool) -> None:
    """Draw a task with the calls below it."""
    view = client.tree(task_id, execution)
    if as_json:
        click.echo(json.dumps(view.model_dump(mode="json", by_alias=True), ensure_ascii=False))
        return
    drawing = Drawing(_make_label(view.task))
    _draw(view, drawing, "" if execution else f"cloudsched tasks tree {task_id} --execution ID")
    make_console().print(drawing)


@click.command()
@click.argument("task_id")
@click.argument("event")
@click.option("--payload", default="null", help="The event's payload, as JSON.")
@click.option(
    "--execution", metavar="ID", help="Send to this execution only; else the first that waits for it takes it."
)
@click.pass_obj
def send(client: Client, task_id: str, event: str, *, payload: str, execution: str | None) -> None:
    """Send EVENT to a task's durable handler."""
    try:
        content = json.loads(payload)
    except ValueError as error:
        raise click.UsageError(f"--payload is not JSON: {error}") from error
    client.send_event(task_id, event, content, execution_id=execution)
    click.echo(f"sent {event}")


def _draw(tree: TreeView, drawing: Drawing, hint: str) -> None:
    """Add a node's descendants; `hint` is the command that shows the omitted ones."""
    for child in tree.children:
        _draw(child, drawing.add(_make_label(child.task)), f"cloudsched tasks tree {child.task.id}")
    if tree.omitted_children:
        drawing.add(Text(f"… {tree.omitted_children} more{hint and f', see {hint}'}", "dim"))


def _make_label(task: TaskView) -> Text:
    return Text.assemble((f"{task.status:<9}", _STYLES[task.status]), f" {task.handler}  ", (task.id, "dim"))
