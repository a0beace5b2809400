"""Store what a draft has shown: a creation or an edit whose fields its token names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from cloudsched.domain.documents.authority import Authority
from cloudsched.drafts.tokens import FIELD

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.drafts.tokens import Requester
    from cloudsched.runtime.container import Container


class ConfirmingApp(Protocol):
    """What confirming needs of an app."""

    @property
    def container(self) -> Container: ...  # noqa: D102
    def put(  # noqa: D102
        self, draft: TaskDraft, *, mark: str | None = None, authority: Authority = Authority.SERVERS
    ) -> tuple[Task, bool]: ...
    def patch(self, task_id: str, patch: dict[str, Any], *, authority: Authority = Authority.SERVERS) -> Task: ...  # noqa: D102
    def read_draft(self, content: dict[str, Any]) -> TaskDraft: ...  # noqa: D102
    def guarded(self, authorize: Callable[[Task], None]) -> ConfirmingApp: ...  # noqa: D102


def create_confirmed(
    app: ConfirmingApp, content: dict[str, Any], requester: Requester, authority: Authority = Authority.SERVERS
) -> tuple[Task, bool]:
    """Create the task that a draft has shown, from its fields as JSON with the draft's token among them."""
    fields = {name: value for name, value in content.items() if name != FIELD}
    confirmed = app.container.draft_tokens.check(content.get(FIELD), requester, fields)
    owned = {**fields, "owner": requester.owner}
    if app.container.registry.derives_id(fields.get("handler")):
        return app.put(app.read_draft(owned), authority=authority)
    draft = app.read_draft({**owned, "id": f"d{confirmed.id}"})
    return app.put(draft, mark=f"draft {confirmed.id}", authority=authority)


def patch_confirmed(
    app: ConfirmingApp,
    task_id: str,
    content: dict[str, Any],
    requester: Requester,
    authority: Authority = Authority.SERVERS,
    authorize: Callable[[Task], None] = lambda _: None,
) -> Task:
    """Change a task as a draft has shown, from the changes as JSON with the draft's token among them."""
    changes = {name: value for name, value in content.items() if name != FIELD}
    confirmed = app.container.draft_tokens.check(content.get(FIELD), requester, changes, task_id)

    def check(task: Task) -> None:
        authorize(task)
        confirmed.check_task(task)

    return app.guarded(check).patch(task_id, changes, authority=authority)
