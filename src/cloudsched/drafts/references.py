"""Which of the owner's tasks a text wants to change, and to what: "move my report to Monday"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cloudsched.domain.documents.draft_responses import DraftAnswer, DraftQuestion
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.drafts.phrases import content_words, count_shared
from cloudsched.engine.ports.task_query import TaskQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import Store

MAX_PAST_TASKS: Final = 100
"""How many of an owner's tasks, the newest first, a text may mean."""
MAX_ANSWERS: Final = 5
_ANY_CASE: Final = re.IGNORECASE | re.DOTALL
_POLITE: Final = r"(?:(?:please|can you|could you|would you)\s+)?"
_SET: Final = re.compile(
    rf"^{_POLITE}(?P<verb>move|change|reschedule|shift|set|switch|make|put|update)\s+(?P<rest>.+)$",
    _ANY_CASE,
)
_DELAY: Final = re.compile(rf"^{_POLITE}(?P<verb>postpone|delay|push\s+back|push)\s+(?P<rest>.+)$", _ANY_CASE)
_SKIP_NEXT: Final = re.compile(rf"^{_POLITE}skip\s+(?:my|the)?\s*next\s+(?P<what>.+)$", _ANY_CASE)
_RENAME: Final = re.compile(rf"^{_POLITE}rename\s+(?P<what>.+?)\s+(?:to|as|into)\s+(?P<title>.+)$", _ANY_CASE)
_OTHER: Final = re.compile(
    rf"^{_POLITE}(?P<verb>cancel|stop|delete|remove|pause|resume|unpause)\s+(?P<what>.+)$", _ANY_CASE
)
_OPERATIONS: Final = {
    "stop": "cancel", "remove": "delete", "unpause": "resume"
}  # fmt: skip


class Wish(NamedTuple):
    """A change that a text may ask for: of which task, in which words of the grammar, or to which fields."""

    what: str
    phrase: str = ""
    changes: tuple[tuple[str, Any], ...] = ()
    operation: str = ""
    """What else is asked for, such as ``cancel``: no draft does that."""


def find_wishes(text: str) -> Iterator[Wish]:
    """Yield what a text may ask to change, the shortest name of a task first."""
    if (rename := _RENAME.match(text)) is not None:
        yield Wish(rename["what"], changes=(("title", rename["title"].strip("\"“”' .")),))
    if (skip := _SKIP_NEXT.match(text)) is not None:
        yield Wish(skip["what"], "skip the next one")
    if (other := _OTHER.match(text)) is not None:
        verb = other["verb"].lower()
        yield Wish(other["what"], operation=_OPERATIONS.get(verb, verb))
    for pattern, template in ((_SET, "move it {}"), (_DELAY, "postpone it {}")):
        found = pattern.match(text)
        words = [] if found is None else found["rest"].split()
        for at in range(1, len(words)):
            what, rest = " ".join(words[:at]), " ".join(words[at:])
            if pattern is _SET and re.match(r"(?:to|from|until|till)\b", rest, re.IGNORECASE) is None:
                yield from _iter_made(found, what, rest)
            else:
                yield Wish(what, template.format(rest))


def _iter_made(found: re.Match[str] | None, what: str, rest: str) -> Iterator[Wish]:
    """Yield what "make my report Monday" and "move my report an hour later" say."""
    if re.search(r"\b(?:later|earlier)\s*$", rest, re.IGNORECASE):
        yield Wish(what, re.sub(r"^by\s+", "", rest, flags=re.IGNORECASE))
    elif found is not None and found["verb"].lower() == "make":
        yield Wish(what, f"make it {rest}")


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
