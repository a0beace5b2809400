"""Which of the owner's tasks some words mean: "my report"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.draft_responses import DraftAnswer, DraftQuestion
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.drafts.phrases import content_words, count_shared
from cloudsched.engine.ports.task_query import TaskQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import Store

MAX_PAST_TASKS: Final = 100
"""How many of an owner's tasks, the newest first, a text may mean."""
MAX_ANSWERS: Final = 5


def load_past_tasks(store: Store, owner: str) -> list[Task]:
    """Return the owner's tasks that a text may mean, the newest first."""
    page = store.list_tasks(TaskQuery(owner=owner), limit=MAX_PAST_TASKS, page_token=None)
    return [task for task in page.items if task.parent is None and not task.handler.startswith("cloudsched.")]


def find_meant(tasks: Sequence[Task], what: str) -> list[Task]:
    """Return the tasks that fit some words best: one if it is clear which, several if it is not.

    Live tasks come before ended ones. Words such as "it" fit every live task.
    """
    wanted = content_words(what) - {"it"}
    live = [task for task in tasks if task.status in {TaskStatus.ACTIVE, TaskStatus.PAUSED}]
    if not wanted:
        return live
    for group in (live, [task for task in tasks if task not in live]):
        scores = {task.id: _score(task, wanted) for task in group}
        best = max(scores.values(), default=0)
        if best > 0:
            return [task for task in group if scores[task.id] == best]
    return []


def is_named(task: Task, what: str) -> bool:
    """Whether each of some words is one of a task's own, such as those of its title."""
    own = content_words(f"{task.title} {task.purpose} {task.category} {task.handler.replace('_', ' ')}")
    wanted = content_words(what) - {"it"}
    return count_shared(wanted, own) == len(wanted)


def ask_which(tasks: Sequence[Task]) -> DraftQuestion:
    """Return the question which of several tasks is meant."""
    answers = tuple(
        DraftAnswer(label=task.title, description=task.schedule.describe(), context={"taskId": task.id})
        for task in tasks[:MAX_ANSWERS]
    )
    return DraftQuestion(field="taskId", question="Which task do you mean?", answers=answers)


def _score(task: Task, wanted: set[str]) -> int:
    title = content_words(task.title)
    about = content_words(f"{task.description} {task.purpose} {task.category} {task.handler.replace('_', ' ')}")
    return 3 * count_shared(wanted, title) + count_shared(wanted - title, about)
