"""``cloudsched tasks tree`` and ``cloudsched tasks send``: draw a durable task's calls, and send it an event."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import click
from rich.console import Group
from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree as Drawing

from cloudsched.cli.history import detail_lines
from cloudsched.cli.output import make_console
from cloudsched.domain.closed_sets import complete_table
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.errors import NotFound
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cloudsched.client.client import Client
    from cloudsched.client.views import TaskView, TreeView
    from cloudsched.domain.documents.execution import Execution

MAX_TASKS_WITH_DETAILS = 50
"""How many tasks of a tree are drawn with progress and steps."""
_STYLES = complete_table(
    TaskStatus,
    {
        TaskStatus.ACTIVE: "cyan",
        TaskStatus.PAUSED: "yellow",
        TaskStatus.COMPLETED: "green",
        TaskStatus.FAILED: "red",
        TaskStatus.CANCELLED: "dim",
        TaskStatus.EXPIRED: "magenta",
    },
)


@click.command()
@click.argument("task_id")
@click.option("--execution", metavar="ID", help="Show only this execution's calls and their descendants.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_obj
def tree(client: Client, task_id: str, *, execution: str | None, as_json: bool) -> None:
    """Draw a task with the calls below it, each with its progress and steps (`logs` shows those of all executions)."""
    view = client.tree(task_id, execution)
    if as_json:
        click.echo(to_json_line(view.model_dump(mode="json", by_alias=True)))
        return
    details = _Details(client, execution)
    drawing = Drawing(details.label(view.task))
    details.draw(view, drawing, "" if execution else f"cloudsched tasks tree {task_id} --execution ID")
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


class _Details:
    """Draws tasks with what happened in their latest executions, which takes two requests for each task.

    Args:
        client: The client to ask with.
        execution: The execution to show of the first task; None for its latest.
    """

    def __init__(self, client: Client, execution: str | None) -> None:
        self._client = client
        self._execution = execution
        self._left = MAX_TASKS_WITH_DETAILS

    def label(self, task: TaskView) -> RenderableType:
        """Return a task with the progress and the steps of its latest execution."""
        if self._left == 0:
            return _make_label(task)
        self._left -= 1
        lines = (
            [Padding(line, (0, 0, 0, 2), expand=False) for line in detail_lines(execution)]
            if (execution := self._load(task))
            else []
        )
        return Group(_make_label(task), *lines)

    def draw(self, tree: TreeView, drawing: Drawing, hint: str) -> None:
        """Add a node's descendants; `hint` is the command that shows the omitted ones."""
        for child in tree.children:
            self.draw(child, drawing.add(self.label(child.task)), f"cloudsched tasks tree {child.task.id}")
        if tree.omitted_children:
            drawing.add(Text(f"… {tree.omitted_children} more{hint and f', see {hint}'}", "dim"))

    def _load(self, task: TaskView) -> Execution | None:
        execution_id, self._execution = self._execution, None
        with suppress(NotFound):  # removed meanwhile
            if execution_id is None:
                latest = next(self._client.executions(task.id), None)
                execution_id = latest.id if latest is not None else None
            return None if execution_id is None else self._client.execution(task.id, execution_id)
        return None


def _make_label(task: TaskView) -> Text:
    return Text.assemble(
        (f"{task.status:<9}", _STYLES[task.status]), f" {to_printable(task.handler)}  ", (to_printable(task.id), "dim")
    )
