"""The built-in handler of tasks with a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.scripts.wiring import ScriptsWiring

if TYPE_CHECKING:
    from cloudsched.domain.documents.authority import Requesters
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.handlers.context import Context
    from cloudsched.runtime.container import Container


def run(container: Container, ctx: Context, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever it returns
    """Run the task's script."""
    return ScriptsWiring.of(container).handler.run(ctx, payload)


def check(container: Container, draft: TaskDraft, requesters: Requesters) -> None:
    """Check a task's script before it is stored. Raises InvalidInput."""
    ScriptsWiring.of(container).handler.check(draft, requesters)
