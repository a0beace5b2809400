"""What the API refuses, in words for people, and the fields of a form that it concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.dashboard.forms.fields import PAYLOAD, Again
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
    from collections.abc import Sequence

    from cloudsched.dashboard.api import Json


class FormProblem(NamedTuple):
    """A refusal, as a page tells it."""

    status: int
    """The status of the page."""
    what: str
    """The problem, in the API's words."""
    then: str
    """The consequence, or what to do."""

    def __str__(self) -> str:
        return f"{self.what} {self.then}".strip()


_THEN: Final[tuple[tuple[type[CloudschedError], int, str], ...]] = (
    (Unauthenticated, 401, "The key is missing or no longer valid: start with --key, or CLOUDSCHED_KEY."),
    (Forbidden, 403, "You may look, but not act."),
    (NotFound, 404, "It may have been deleted, or it is not yours."),
    (NotAllowed, 409, "Nothing was changed. This is how it is now."),
    (PreconditionFailed, 412, "Somebody has changed this task since you opened it. This is how it is now."),
    (InvalidInput, 400, ""),
    (QuotaExceeded, 429, "Nothing was changed. Something has to end or be deleted first."),
    (Unavailable, 503, "Nothing is lost: dispatches wait. Reload the page, or leave it open: it asks again by itself."),
)


_NO_PAGE: Final = FormProblem(400, "This page of the list is no longer there.", "Start again at the first page.")


def describe_problem(error: CloudschedError) -> FormProblem:
    """Return what a page tells of an error. The dashboard's own refusals name no field: they are sentences."""
    if isinstance(error, InvalidInput) and error.field in {"", "pageToken"}:
        return _NO_PAGE if error.field else FormProblem(400, error.problem, error.hint)
    if isinstance(error, QuotaExceeded) and error.retry_after:
        return FormProblem(429, str(error), f"Try again in {error.retry_after} s.")
    if isinstance(error, Unavailable) and ": 500: " in str(error):
        then = "The other views work. If this names a damaged document, docs/guarantees.md says what to do."
        return FormProblem(502, _name_fault(error), then)
    if isinstance(error, Unavailable) and not error.is_retryable:
        return FormProblem(503, _name_fault(error), "")
    for kind, status, then in _THEN:
        if isinstance(error, kind):
            return FormProblem(status, _name_fault(error), then)
    return FormProblem(500, str(error), "")


def _name_fault(error: CloudschedError) -> str:
    """Return an error's message, without what a page does by itself: its forms have their keys."""
    if isinstance(error, Unavailable) and error.idempotency_key is not None:
        return f"{error.service} cannot be reached: {error.reason}."
    return str(error)


_KNOWN: Final = {"retry": "retries", "retry.maxRetries": "retries", "schedule.timezone": "timezone"}
"""The form's names for fields that the API calls otherwise."""


def place_faults(error: InvalidInput, names: Sequence[str]) -> dict[str, str]:
    """Return the problems by the form's fields, and under "" those of none. A part of a field is named by its path."""
    told: dict[str, list[str]] = {}
    for each in error.faults:
        field = _KNOWN.get(each.field, each.field)
        name = field if field in names else field.partition(".")[0]
        said = str(each.args[0])
        if name == field and name in names:
            said = said.removeprefix(f"{each.field}: ")
        told.setdefault(name if name in names else "", []).append(said)
    return {name: "; ".join(said) for name, said in told.items()}


def refuse(answer: Json, error: CloudschedError, options: tuple[str, ...] = ()) -> Again:
    """Show a form that the API has refused again: what is said stands at its fields, or above them all."""
    problem = describe_problem(error)
    if isinstance(error, InvalidInput):
        told = place_faults(error, (*options, PAYLOAD))
        rest = told.pop("", "")
        if told:
            return Again({**answer, "errors": {**answer.get("errors", {}), **told}, "error": rest}, problem.status)
    return Again({**answer, "error": str(problem)}, problem.status)
