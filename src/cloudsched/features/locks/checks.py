"""Check what tasks say of their locks: who may share one, who may start a task, what new code would change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.authority import Requesters
from cloudsched.engine.code_check.compare import Difference, Mismatch
from cloudsched.errors import InvalidInput
from cloudsched.features.locks.fields import LockScope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.handlers.registry import Handler


def assign_scopes(draft: TaskDraft, requesters: Requesters) -> TaskDraft:
    """Return a draft whose keys, and those of its children, have a scope. A user's are the owner's own."""
    scope = _lock_scope(draft.lock_key, draft.lock_scope, requesters, "lockScope")
    scopes = (
        _lock_scope(child.lock_key, child.lock_scope, requesters, f"children.{number}.lockScope")
        for number, child in enumerate(draft.children)
    )
    children = tuple(
        child if child.lock_scope is each else child.model_copy(update={"lock_scope": each})
        for child, each in zip(draft.children, scopes, strict=True)
    )
    return draft.model_copy(update={"lock_scope": scope, "children": children})


def _lock_scope(
    key: str | None,
    scope: LockScope | None,
    requesters: Requesters,
    field: str,
) -> LockScope | None:
    if key is None:
        return None
    if requesters is not Requesters.USERS:
        return scope or LockScope.GLOBAL
    if scope is LockScope.GLOBAL:
        hint = "A key that you name is your own: give a lockKey, and leave out its scope."
        raise InvalidInput(field, "is global, which users may not ask for", hint)
    return LockScope.OWNER


def require_own_scopes(task: Task) -> None:
    """Check that a user may edit a task: its locks are its owner's. Raises InvalidInput."""
    if LockScope.GLOBAL in {task.lock_scope, *(each.lock_scope for each in task.children)}:
        raise InvalidInput("lockScope", "is global, which users may not ask for")


def explain_refusal(task: Task) -> str | None:
    """Return why the owner of a task may not start it, or None: its runs would hold a lock of all owners."""
    locks = [(task.lock_key, task.lock_scope), *((each.lock_key, each.lock_scope) for each in task.children)]
    if any(key is not None and scope is not LockScope.OWNER for key, scope in locks):
        return "holds a lock of an operator"
    return None


class LimitCheck:
    """Compares the limits of tasks that name the same lock."""

    def __init__(self) -> None:
        self._limits: dict[str | None, int] = {}

    def compare(self, task: Task, handler: Handler) -> Iterator[Difference]:
        """Yield the difference between a task's limit and that of the first task with the same key."""
        limit = self._limits.setdefault(task.scoped_lock_key, task.lock_limit)
        if task.lock_key is not None and limit != task.lock_limit:
            problem = f"the lock {task.lock_key!r} admits {task.lock_limit} of them, and {limit} of others"
            yield Difference(Mismatch.LOCK, handler.name, problem)
