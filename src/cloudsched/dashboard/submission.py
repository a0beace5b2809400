"""What becomes of a form that was sent: done, or shown again with what is wrong, as a person reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Json


_THEN: Final[tuple[tuple[type[CloudschedError], int, str], ...]] = (
    (Unauthenticated, 401, "The key is missing or no longer valid: start with --key, or CLOUDSCHED_KEY."),
    (Forbidden, 403, "You may look, and not act."),
    (NotFound, 404, "It may have been deleted meanwhile, or it is not yours."),
    (NotAllowed, 409, "Nothing was changed; this is its present state."),
    (
        PreconditionFailed,
        412,
        "Somebody has changed this task since you opened it; this is its present state.",
    ),
    (InvalidInput, 400, ""),
    (QuotaExceeded, 429, "Too much at once: try again a little later."),
    (Unavailable, 503, "Nothing is lost: dispatches wait. Reload the page, or leave it open: it asks again by itself."),
)


def describe_problem(error: CloudschedError) -> tuple[int, str, str]:
    """Return an error's HTTP status, what is wrong as the API words it, and what follows."""
    if isinstance(error, QuotaExceeded) and error.retry_after:
        return 429, str(error), f"Try again in {error.retry_after} s."
    if isinstance(error, Unavailable) and ": 500: " in str(error):
        return (
            502,
            str(error),
            "The other views work. If this names a damaged document, docs/explanation/guarantees.md says what to do.",
        )
    for kind, status, then in _THEN:
        if isinstance(error, kind):
            return status, str(error), then
    return 500, str(error), ""


@dataclass(frozen=True, slots=True)
class Done:
    """It was done."""

    path: str
    """Where to go, below the mount."""
    said: str
    """What is said there: a name in `routes.DONE`."""
    assumed: tuple[str, ...] = ()
    """What was assumed of a schedule that was saved, which is said there, too."""


@dataclass(frozen=True, slots=True)
class Again:
    """The form is shown again, with what was typed."""

    answer: Json
    """What the view is built of."""
    status: int = 200
    """The status of the page: 200 for a check, the API's for a refusal."""
