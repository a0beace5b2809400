"""The built-in handler of tasks with a script; `run_script` is what it does, imported when the first one is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.script import SCRIPT_HANDLER
from cloudsched.engine.handlers.handler import builtin_handler

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.authority import Authority
    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.handlers.run_script import ScriptHandler


def with_scripts(registry: Registry, scripts: Callable[[], ScriptHandler]) -> Registry:
    """Return a registry whose tasks may bring scripts."""

    def run(ctx: Context, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the script returns
        return scripts().run(ctx, payload)

    def check(draft: TaskDraft, authority: Authority) -> None:
        scripts().check(draft, authority)

    return registry.with_builtin(builtin_handler(SCRIPT_HANDLER, run, check=check))
