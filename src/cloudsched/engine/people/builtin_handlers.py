"""The built-in handlers that delete and export all that is stored of a person; `person_data` is what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.authority import Authority
from cloudsched.domain.documents.person_handlers import ERASE_HANDLER, EXPORT_HANDLER
from cloudsched.engine.handlers.handler import builtin_handler
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.domain.transitions.outcome import Outcome
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.people.person_data import PersonData


def with_person_jobs(registry: Registry, data: Callable[[], PersonData]) -> Registry:
    """Return a registry that has the two handlers; users get their tasks from the API's own operations only."""

    def erase(ctx: Context, _payload: dict[str, Any]) -> Outcome:
        return data().erase(ctx)

    def export(ctx: Context, _payload: dict[str, Any]) -> Outcome:
        return data().export(ctx)

    return registry.with_builtin(
        builtin_handler(ERASE_HANDLER, erase, check=_refuse_users),
        builtin_handler(EXPORT_HANDLER, export, check=_refuse_users),
    )


def _refuse_users(draft: TaskDraft, authority: Authority) -> None:
    if authority is Authority.USERS:
        raise InvalidInput("handler", f"is {draft.handler!r}", "Use DELETE or GET …/export of /v1/people/{owner}.")
