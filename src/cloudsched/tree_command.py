"""``cloudsched tree``: a task and the calls below it, drawn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from cloudsched.app import App
from cloudsched.domain.task import TaskStatus

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree as Drawing

    from cloudsched.domain.task import Task
    from cloudsched.engine.trees import Tree

_STYLES = {
    TaskStatus.ACTIVE: "cyan",
    TaskStatus.PAUSED: "yellow",
    TaskStatus.COMPLETED: "green",
    TaskStatus.FAILED: "red",
    TaskStatus.CANCELLED: "dim",
    TaskStatus.EXPIRED: "magenta",
}


@click.command("tree")
@click.argument("task_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def tree_command(*, task_id: str, as_json: bool) -> None:
    """Draw the task TASK_ID with the calls below it, from the store that the environment names."""
    app = App()
    try:
        found = app.tree(task_id)
    finally:
        app.close()
    if as_json:
        click.echo(json.dumps(_document(found), indent=2))
        return
    from rich.console import Console  # noqa: PLC0415 - JSON needs none of it
    from rich.tree import Tree as Drawing  # noqa: PLC0415

    drawing = Drawing(_label(found.task))
    _draw(found, drawing)
    Console(highlight=False).print(drawing)


def _document(tree: Tree) -> dict[str, object]:
    task = tree.task
    return {
        "id": task.id,
        "title": task.title,
        "handler": task.handler,
        "status": task.status,
        "children": [_document(each) for each in tree.children],
    }


def _draw(tree: Tree, drawing: Drawing) -> None:
    for child in tree.children:
        _draw(child, drawing.add(_label(child.task)))


def _label(task: Task) -> Text:
    from rich.text import Text  # noqa: PLC0415 - as above

    waits = next((run.suspension.reason for run in task.runs if run.suspension), "")
    return Text.assemble(
        (f"{task.status:<9}", _STYLES[task.status]),
        f" {task.handler}  ",
        (task.id, "dim"),
        f"  {waits}" if waits else "",
    )
