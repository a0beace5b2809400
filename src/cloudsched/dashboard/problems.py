"""Errors as a person reads them: the status, what is wrong, and what happens by itself or can be done."""

from __future__ import annotations

from typing import Final

from cloudsched.errors import (
    CloudschedError,
    Forbidden,
    InvalidInput,
    NotAllowed,
    NotFound,
    PreconditionFailed,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
)

_THEN: Final[tuple[tuple[type[CloudschedError], int, str], ...]] = (
    (Unauthenticated, 401, "The key is missing or no longer valid: start with --key, or CLOUDSCHED_KEY."),
    (Forbidden, 403, "You may look, and not act."),
    (NotFound, 404, "Or it is not yours."),
    (NotAllowed, 409, ""),
    (PreconditionFailed, 412, "Somebody has changed this task since you opened it; this is its present state."),
    (InvalidInput, 400, ""),
    (QuotaExceeded, 429, "Too much at once; this page asks again by itself."),
    (Unavailable, 503, "Nothing is lost: dispatches wait. This page asks again by itself."),
)


def describe_problem(error: CloudschedError) -> tuple[int, str, str]:
    """Return an error's HTTP status, what is wrong as the API words it, and what follows."""
    for kind, status, then in _THEN:
        if isinstance(error, kind):
            return status, str(error), then
    return 500, str(error), ""
