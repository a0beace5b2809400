"""A task with the calls below it: what ``GET /v1/tasks/{id}/tree`` and ``cloudsched tree`` show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.task import Task
    from cloudsched.engine.nesting import Nesting

MAX_TREE = 2_000
"""How many tasks are shown at once; ask for a branch of a larger tree."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A task, and the calls that it has made, in their order."""

    task: Task
    children: Sequence[Tree] = ()


def tree(task: Task, nesting: Nesting) -> Tree:
    """Return a task's tree: one query for each task of it.

    Raises:
        LimitExceeded: It has more than `MAX_TREE` tasks.
    """
    left = [MAX_TREE]

    def grown(task: Task) -> Tree:
        children = []
        for child in nesting.children(task.id):
            left[0] -= 1
            if left[0] < 0:
                raise LimitExceeded(f"The tree has more than {MAX_TREE} tasks; ask for a branch of it.")
            children.append(child)
        children.sort(key=_place)
        return Tree(task, tuple(grown(child) for child in children))

    return grown(task)


def _place(task: Task) -> tuple[str, int]:
    return (task.parent.execution_id, task.parent.step) if task.parent else ("", 0)
