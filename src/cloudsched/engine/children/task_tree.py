"""A task with its descendants: what ``GET /v1/tasks/{id}/tree`` and ``cloudsched tasks tree`` show."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.lifecycle import may_have_children

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.children.child_tasks import ChildTasks

MAX_TREE = 2_000
"""How many calls are shown: in a larger tree those nearest to the root, and among them the newest."""
MAX_READ = 10_000
"""How many calls are read at most, including those that are only counted."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A task and the calls that it has made, in the order of the calls."""

    task: Task
    children: Sequence[Tree]
    omitted_children: int
    """How many of the task's calls are not among `children`; a lower bound if `MAX_READ` was reached."""


def load_tree(task: Task, child_tasks: ChildTasks, execution_id: str | None = None) -> Tree:
    """Return a task's tree, cut where it is too large. Costs one query for each task that has made calls.

    Args:
        task: Its root.
        child_tasks: Reads the calls.
        execution_id: If given, only that execution's calls and their descendants are shown.
    """
    shown: dict[str, list[Task]] = {}
    left_out: dict[str, int] = {}
    room, unread = MAX_TREE, MAX_READ
    waiting = deque([task])
    while waiting:
        parent = waiting.popleft()
        found: list[Task] = []
        unshown = 0
        is_cut = unread == 0
        for child in islice(child_tasks.children(parent.id), unread):
            unread -= 1
            if parent is task and execution_id is not None and _call_position(child)[0] != execution_id:
                continue
            if room:
                room -= 1
                found.append(child)
            else:
                unshown += 1
        waiting.extend(each for each in found if not each.has_ended or may_have_children(each))
        shown[parent.id] = sorted(found, key=_call_position)
        left_out[parent.id] = max(unshown, int(is_cut and may_have_children(parent)))

    def build(task: Task) -> Tree:
        return Tree(task, tuple(map(build, shown.get(task.id, ()))), left_out.get(task.id, 0))

    return build(task)


def _call_position(task: Task) -> tuple[str, int]:
    return (task.parent.execution_id, task.parent.step) if task.parent else ("", 0)
