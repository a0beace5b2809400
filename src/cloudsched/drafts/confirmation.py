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
    from cloudsched.drafts.draft_tokens import Confirmed, DraftTokens, Requester


def confirm(
    app: App,
    tokens: DraftTokens,
    content: dict[str, Any],
    requester: Requester,
    task_id: str | None,
) -> tuple[Task, bool]:
    """Create the task of a confirmed draft, or change the one with this id, and return whether it is new.

    The content is what the draft has shown, as JSON, with its token. A task that is deleted is returned as it was.
    """
    fields = {name: value for name, value in content.items() if name != DRAFT_TOKEN}
    confirmed = tokens.check(content.get(DRAFT_TOKEN), requester, fields, task_id)
    note((), confirmed.language)
    mark = RequestMark.of_name(["draft", confirmed.id])
    if task_id is not None:
        return _change(app, task_id, confirmed, mark), False

    owned = {**fields, "owner": requester.owner}
    if not app.container.registry.derives_id(fields.get("handler")):
        owned["id"] = f"d{confirmed.id}"
        mark = RequestMark.of_new_task(f"draft {confirmed.id}")
    return app.put_content(owned, mark=mark)


def _change(app: App, task_id: str, confirmed: Confirmed, mark: RequestMark) -> Task:
    def check(task: Task) -> None:
        if not mark.is_repeat_on(task):
            confirmed.check_task(task)

    limited = app.limit(check)
    operation = confirmed.fields.get(OPERATION)
    if operation is None:
        return limited.patch(task_id, confirmed.fields, mark=mark, read_at=app.container.clock.now())
    task = limited.get(task_id)
    changed: Task | None = getattr(limited.marked(mark), Verb(operation).method)(task_id)
    return changed or task.model_copy(update={"deleted_at": app.container.clock.now()})
