"""Load, decide, commit; and all of it again when somebody else has committed in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from cloudsched.errors import Contended, PreconditionFailed, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable

S = TypeVar("S")
T = TypeVar("T")
UNREAD: Any = object()

MAX_CONFLICTS = 50
"""How often a change is tried before it fails. Each conflict means that the change of somebody else took effect."""


def compare_and_set(
    what: str,
    load: Callable[[], S],
    change: Callable[[S], T],
    first: Any = UNREAD,  # noqa: ANN401 - an S; mypy would infer S from it alone
) -> T:
    """Call ``change(load())`` until its commit meets no conflict, and return its result.

    Args:
        what: What is changed, for the error: "task t1".
        load: Reads what the change depends on, with its version.
        change: Decides and commits, on the version that was read. It runs again after each conflict, so nothing but its
            commit may have an effect before that.
        first: What has been read already, for the first call of `change`.

    Raises:
        Contended: Others kept changing it.
        PreconditionFailed: It is not as the caller expects; trying again would not help.
    """
    current = load() if first is UNREAD else first
    for remaining in reversed(range(MAX_CONFLICTS)):
        try:
            return change(current)
        except PreconditionFailed:
            raise
        except VersionConflict:
            if remaining:
                current = load()
    raise Contended(what, MAX_CONFLICTS)
