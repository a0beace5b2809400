"""``cloudsched tasks tree`` and ``cloudsched tasks send``: durable tasks, drawn and told something."""

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
@click.option("--execution", metavar="ID", help="Only the calls of this execution, and what is below them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_obj
def tree(client: Client, task_id: str, *, execution: str | None, as_json: bool) -> None:
    """Draw a task with the calls below it."""
    found = client.tree(task_id, execution)
    if as_json:
        click.echo(json.dumps(found.model_dump(mode="json", by_alias=True), ensure_ascii=False))
        return
    drawing = Drawing(_make_label(found.task))
    _draw(found, drawing, "" if execution else f"cloudsched tasks tree {task_id} --execution ID")
    make_console().print(drawing)


@click.command()
@click.argument("task_id")
@click.argument("event")
@click.option("--payload", default="null", help="What its handler is given, as JSON.")
@click.option("--execution", metavar="ID", help="Tell this execution alone; else the first that asks takes it.")
@click.pass_obj
def send(client: Client, task_id: str, event: str, *, payload: str, execution: str | None) -> None:
    """Tell a task's durable handler that EVENT has come."""
    try:
        content = json.loads(payload)
    except ValueError as error:
        raise click.UsageError(f"--payload is not JSON: {error}") from error
    client.send_event(task_id, event, content, execution_id=execution)
    click.echo(f"sent {event}")


def _draw(tree: TreeView, drawing: Drawing, hint: str) -> None:
    """Add what is below a node; `hint` is what to ask for in order to see more of its calls."""
    for child in tree.children:
        _draw(child, drawing.add(_make_label(child.task)), f"cloudsched tasks tree {child.task.id}")
    if tree.omitted_children:
        drawing.add(Text(f"… {tree.omitted_children} more{hint and f', ask for {hint}'}", "dim"))


def _make_label(task: TaskView) -> Text:
    return Text.assemble((f"{task.status:<9}", _STYLES[task.status]), f" {task.handler}  ", (task.id, "dim"))
