"""Confirm a draft: create its task, or do to the task that it is about what was shown. Repeating it is safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.responses.api_responses import DRAFT_TOKEN
from cloudsched.domain.schedules.assumptions import note
from cloudsched.domain.transitions.idempotency import RequestMark
from cloudsched.drafts.draft_tokens import OPERATION

if TYPE_CHECKING:
    from cloudsched.app import App
    from cloudsched.domain.documents.task import Task
    from cloudsched.drafts.draft_tokens import DraftTokens, Requester


def create_confirmed(
    app: App,
    tokens: DraftTokens,
    content: dict[str, Any],
    requester: Requester,
) -> tuple[Task, bool]:
    """Create the task of a confirmed draft, from its fields as JSON with the draft's token among them."""
    fields = {name: value for name, value in content.items() if name != DRAFT_TOKEN}
    confirmed = tokens.check(content.get(DRAFT_TOKEN), requester, fields)
    note((), confirmed.language)
    owned = {**fields, "owner": requester.owner}
    if app.container.registry.derives_id(fields.get("handler")):
        return app.put_content(owned, mark=RequestMark.of_name(["draft", confirmed.id]))

    mark = RequestMark.of_new_task(f"draft {confirmed.id}")
    return app.put_content({**owned, "id": f"d{confirmed.id}"}, mark=mark)


def patch_confirmed(
    app: App,
    tokens: DraftTokens,
    task_id: str,
    content: dict[str, Any],
    requester: Requester,
) -> Task:
    """Change a task as a confirmed draft has shown, from the changes as JSON with the draft's token among them.

    A task that is deleted is returned as it was.
    """
    changes = {name: value for name, value in content.items() if name != DRAFT_TOKEN}
    confirmed = tokens.check(content.get(DRAFT_TOKEN), requester, changes, task_id)
    note((), confirmed.language)
    mark = RequestMark.of_name(["draft", confirmed.id])

    def check(task: Task) -> None:
        if not mark.is_repeat_on(task):
            confirmed.check_task(task)

    limited = app.limit(check)
    if OPERATION not in changes:
        return limited.patch(task_id, changes, mark=mark, read_at=app.container.clock.now())
    task = limited.get(task_id)
    changed: Task | None = getattr(limited.marked(mark), Verb(changes[OPERATION]).method)(task_id)
    return changed or task.model_copy(update={"deleted_at": app.container.clock.now()})
