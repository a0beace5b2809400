"""Converts RFC 9457 problems from the API to the library's errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cloudsched.errors import (
    AmbiguousSchedule,
    CloudschedError,
    DraftExpired,
    Forbidden,
    InvalidInput,
    InvalidPayload,
    InvalidSchedule,
    KeyReused,
    LeaseLost,
    LimitExceeded,
    NotAllowed,
    NotFound,
    PreconditionFailed,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
    UnknownHandler,
    VersionConflict,
)

if TYPE_CHECKING:
    from cloudsched.domain.documents.responses import Problem

_KINDS: dict[str, type[CloudschedError]] = {
    "ambiguous-schedule": AmbiguousSchedule,
    "invalid-schedule": InvalidSchedule,
    "invalid-payload": InvalidPayload,
    "unknown-handler": UnknownHandler,
    "key-reused": KeyReused,
    "draft-expired": DraftExpired,
    "not-allowed": NotAllowed,
    "lease-lost": LeaseLost,
    "limit-exceeded": LimitExceeded,
}
"""The errors that a problem's status alone does not identify."""
_STATUSES: dict[int, type[CloudschedError]] = {
    400: InvalidInput,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: VersionConflict,
    412: PreconditionFailed,
    413: InvalidInput,
    422: InvalidInput,
    429: QuotaExceeded,
}

_SECONDS = re.compile("[0-9]{1,9}")


def error_from_problem(problem: Problem, retry_after: str = "", server: str = "The API") -> CloudschedError:
    """Return the error for a problem document, with the API's message and the attributes of its class."""
    detail = problem.detail or problem.title or str(problem.status)
    kind = _KINDS.get(problem.type.rpartition("/")[2]) or _STATUSES.get(problem.status)
    if kind is None:
        return Unavailable(server, f"{problem.status}: {detail}")
    error = kind.__new__(kind, detail)
    known = {
        "field": problem.field or "(request)",
        "problem": detail,
        "hint": problem.hint or "",
        "readings": tuple(problem.readings or ()),
        "status": "",
        "action": "",
        "kind": "",
        "key": "",
        "quota": "",
        "limit": 0,
        "retry_after": int(retry_after) if _SECONDS.fullmatch(retry_after) else None,
    }
    for name in _ATTRIBUTES.get(next(each for each in kind.__mro__ if each in _ATTRIBUTES), ()):
        setattr(error, name, known[name])
    return error


_ATTRIBUTES: dict[type, tuple[str, ...]] = {
    AmbiguousSchedule: ("field", "problem", "hint", "readings"),
    InvalidInput: ("field", "problem", "hint"),
    NotFound: ("kind", "key"),
    NotAllowed: ("action", "status", "hint"),
    LeaseLost: ("key",),
    VersionConflict: ("key",),
    QuotaExceeded: ("quota", "limit", "hint", "retry_after"),
    CloudschedError: (),
}
"""The attributes of each class of errors besides its message; empty where the API does not send them."""
