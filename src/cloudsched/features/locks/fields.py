"""The fields of tasks, children and runs about a lock, and the keys by which locks are stored.

Tasks share a key with the tasks of all owners, or with those of their own alone. Locks are found by their
key, so the scope becomes a part of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypedDict

from pydantic import Field, StringConstraints, model_validator

from cloudsched.domain.documents.document import InputModel, Integer, StoredEnum, WireModel
from cloudsched.domain.documents.policy import QUOTA_PREFIX

if TYPE_CHECKING:
    from datetime import datetime


class LockScope(StoredEnum):
    """The tasks that share a lock key."""

    GLOBAL = "GLOBAL"
    """All tasks that name the key in this scope, regardless of owner. Not for keys that users name."""
    OWNER = "OWNER"
    """Only tasks of the same owner that name it in this scope."""


_Key = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class SpecLockFields(WireModel):
    """The fields that the owner of a task sets."""

    lock_key: _Key | None = None
    """The resource that the task works on: runs with the same key take turns, the earliest due first."""
    lock_scope: LockScope | None = None
    """The tasks that share the lock key.

    If None: all, if a server or code names it, or its owner's, if a user does.
    """
    lock_limit: Integer = Field(default=1, ge=1, le=100)
    """The most runs with that key that may run at once."""


class ChildLockFields(InputModel):
    """The fields of a child task."""

    lock_key: _Key | None = None
    lock_scope: LockScope | None = None
    """The tasks that share the lock key, as in a task."""

    @model_validator(mode="after")
    def _require_lock_key(self) -> Self:
        if self.lock_scope is not None and self.lock_key is None:
            raise ValueError("has a lockScope, which has no meaning without a lockKey")
        return self


class RunLockFields(WireModel):
    """The fields of an open run."""

    lock_key: str | None = None
    """The key of the lock that it holds: the task's `scoped_lock_key` when the attempt started."""


class TaskLockFields(WireModel):
    """What a stored task tells of its lock."""

    @property
    def scoped_lock_key(self) -> str | None:
        """The key of the lock that its runs hold, or None for no lock.

        No other scope and no other owner shares it.
        """
        task: Any = self  # a `Task`, which has these fields
        if task.lock_key is None:
            return None
        return scoped_lock_key(task.lock_key, task.lock_scope or LockScope.GLOBAL, task.owner)

    @property
    def has_lock(self) -> bool:
        """Return whether its runs take a lock, or one of them, from before an edit, holds one."""
        task: Any = self  # a `Task`, which has these fields
        if task.lock_key is not None:
            return True
        for run in task.runs:
            if run.lock_key is not None:
                return True
        return False

    def holds_lock(self, now: datetime) -> bool:
        """Return whether a running handler holds a lock."""
        task: Any = self
        return any(run.lease is not None and run.lease.until > now and run.lock_key is not None for run in task.runs)


class LockOptions(TypedDict, total=False):
    """The fields that a call or a creation may set, by their Python names."""

    lock_key: str | None
    lock_scope: LockScope | str | None
    lock_limit: int | None


_GLOBAL_PREFIX: Final = "global:"
_OWNER_PREFIX: Final = "owner:"
_RESERVED: Final = (_GLOBAL_PREFIX, _OWNER_PREFIX, QUOTA_PREFIX)


def scoped_lock_key(key: str, scope: LockScope, owner: str) -> str:
    """Return the key by which a lock is stored and found. No two scopes and no two owners share one.

    An owner's name has no slash, so it ends at the first one. A global key is kept as it is, unless it
    looks like a key of another scope.
    """
    if scope is LockScope.OWNER:
        return f"{_OWNER_PREFIX}{owner}/{key}"
    return f"{_GLOBAL_PREFIX}{key}" if key.startswith(_RESERVED) else key


def is_quota_lock_key(key: str) -> bool:
    """Return whether a key is one of those locks, which no caller may see."""
    return key.startswith(QUOTA_PREFIX)


def owner_lock_keys(owner: str) -> tuple[str, str]:
    """Return the range of the keys of an owner's own locks: the first, and the one after the last."""
    return f"{_OWNER_PREFIX}{owner}/", f"{_OWNER_PREFIX}{owner}0"


def describe_lock_key(key: str) -> tuple[str, LockScope, str | None]:
    """Return the lock of a stored key as a task names it: its key, its scope, and its owner if it has one."""
    if key.startswith(_OWNER_PREFIX):
        owner, _, own = key.removeprefix(_OWNER_PREFIX).partition("/")
        return own, LockScope.OWNER, owner
    return key.removeprefix(_GLOBAL_PREFIX), LockScope.GLOBAL, None
