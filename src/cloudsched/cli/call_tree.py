"""Draws a durable task's calls."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree as Drawing

from cloudsched.cli.history import detail_lines
from cloudsched.domain.closed_sets import complete_table
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.errors import NotFound
from cloudsched.local.untrusted_text import to_printable

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


def draw_tree(client: Client, view: TreeView, execution: str | None) -> Drawing:
    """Return the drawing of a tree.

    Args:
        client: The client to ask for executions with.
        view: The tree.
        execution: The execution to which its first calls belong; None for all.
    """
    details = _Details(client, execution)
    drawing = Drawing(details.label(view.task))
    details.draw(view, drawing, "" if execution else f"cloudsched tasks tree {view.task.id} --execution ID")
    return drawing


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
