"""The handlers of tasks that the system itself makes, or that users describe without a function.

The table of features has them. What runs one is imported when the first such task is checked or runs. The handler of
children is in the registry.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.system_tasks import BATCH_CHANGE_HANDLER, FOLLOW_HANDLER
from cloudsched.engine.handlers.registry import builtin_handler
from cloudsched.errors import InvalidInput
from cloudsched.features.table import FEATURES, HandlerRow, find_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.handlers.registry import Handler, Registry

    Check = Callable[[TaskDraft, Requesters], None]

KERNEL_ROWS: Final = (
    HandlerRow(
        BATCH_CHANGE_HANDLER,
        "cloudsched.engine.tasks.batch_changes:run_batch_change",
        instead="Use POST /v1/tasks/batchChange.",
    ),
    HandlerRow(
        FOLLOW_HANDLER,
        "cloudsched.engine.tasks.follow_changes:run_follow",
        "cloudsched.engine.tasks.follow_changes:check_follow",
        instead="Use PUT of a calendar or a person; the system then makes its tasks itself.",
    ),
)
"""Those of the kernel itself."""


def with_builtin_handlers(registry: Registry, container: object) -> Registry:
    """Return a registry that has all built-in handlers."""
    rows = [*KERNEL_ROWS, *(row for feature in FEATURES for row in feature.handlers)]
    return registry.with_builtin(*(_make_handler(row, container) for row in rows))


def _make_handler(row: HandlerRow, container: object) -> Handler:
    def run(*arguments: Any) -> Any:  # noqa: ANN401 - as the handler takes and returns it
        return find_place(row.run)(container, *arguments)

    return builtin_handler(row.name, run, takes_context=row.takes_context, check=partial(_check, row, container))


def _check(row: HandlerRow, container: object, draft: TaskDraft, requesters: Requesters) -> None:
    """Refuse a user's task of a handler whose tasks only the API makes, and check any other."""
    if row.instead and requesters is Requesters.USERS:
        raise InvalidInput("handler", f"is {draft.handler!r}", row.instead)
    if row.check:
        find_place(row.check)(container, draft, requesters)
