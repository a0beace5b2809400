"""The scope of a lock key: shared by all owners, or of its owner alone.

Locks are found by their key alone, so the scope becomes part of the key.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class LockScope(StrEnum):
    """Which tasks share a lock key."""

    GLOBAL = "global"
    """All tasks that name the key in this scope, regardless of owner. Not for keys that users name."""
    OWNER = "owner"
    """Only tasks of the same owner that name it in this scope."""


_GLOBAL_PREFIX: Final = "global:"
_OWNER_PREFIX: Final = "owner:"
_QUOTA_PREFIX: Final = "quota:"
_RESERVED: Final = (_GLOBAL_PREFIX, _OWNER_PREFIX, _QUOTA_PREFIX)


def scoped_lock_key(key: str, scope: LockScope, owner: str) -> str:
    """Return the key by which a lock is stored and found; no two scopes and no two owners share one.

    An owner's name has no slash, so it ends at the first one. A global key is kept as it is, unless it looks like a key
    of another scope.
    """
    if scope is LockScope.OWNER:
        return f"{_OWNER_PREFIX}{owner}/{key}"
    return f"{_GLOBAL_PREFIX}{key}" if key.startswith(_RESERVED) else key


def quota_lock_key(owner: str, number: int) -> str:
    """Return the key of one of the locks that creations for an owner with a quota pass through."""
    return f"{_QUOTA_PREFIX}{number}:{owner}"


def is_quota_lock_key(key: str) -> bool:
    """Return whether a key is one of those locks, which are nobody's business."""
    return key.startswith(_QUOTA_PREFIX)


def owner_lock_keys(owner: str) -> tuple[str, str]:
    """Return the range of the keys of an owner's own locks: the first, and the one after the last."""
    return f"{_OWNER_PREFIX}{owner}/", f"{_OWNER_PREFIX}{owner}0"


def describe_lock_key(key: str) -> tuple[str, LockScope, str | None]:
    """Return what a task says of a lock that is stored under a key: its key, its scope, and its owner if it has one."""
    if key.startswith(_OWNER_PREFIX):
        owner, _, own = key.removeprefix(_OWNER_PREFIX).partition("/")
        return own, LockScope.OWNER, owner
    return key.removeprefix(_GLOBAL_PREFIX), LockScope.GLOBAL, None
