"""The built-in handler of the tasks that change all tasks that match a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.authority import Authority
from cloudsched.domain.documents.batch_change import BATCH_CHANGE_HANDLER
from cloudsched.engine.handlers.handler import builtin_handler
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.tasks.batch_change_run import BatchChangeRun


def with_batch_changes(registry: Registry, runner: Callable[[], BatchChangeRun]) -> Registry:
    """Return a registry that has the handler; users get its tasks from the API's own operation only."""

    def change_tasks(ctx: Context, _payload: dict[str, Any]) -> dict[str, Any]:
        return runner().run(ctx)

    return registry.with_builtin(builtin_handler(BATCH_CHANGE_HANDLER, change_tasks, check=_refuse_users))


def _refuse_users(draft: TaskDraft, authority: Authority) -> None:
    if authority is Authority.USERS:
        raise InvalidInput("handler", f"is {draft.handler!r}", "Use POST /v1/tasks:batchChange.")
