"""A form that the API has refused, shown again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.forms.fields import Again, list_names, make_fields
from cloudsched.dashboard.forms.problems import describe_problem, place_faults
from cloudsched.errors import CloudschedError, InvalidInput

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.forms.payload_schema import PayloadField

_KNOWN: Final = {"retry": "retries", "retry.maxRetries": "retries"}
"""The form's names for fields that the API calls otherwise."""


def refuse(answer: Json, error: CloudschedError, slot: PayloadField, options: tuple[str, ...] = ()) -> Again:
    """Show a refusal at its field, of the payload or one of the options, or above all of them."""
    problem = describe_problem(error)
    if isinstance(error, InvalidInput):
        names = [*options, *list_names(make_fields(slot, answer["texts"], {}))]
        told = place_faults(error, names, _KNOWN)
        rest = told.pop("", "")
        if told:
            return Again({**answer, "errors": {**answer.get("errors", {}), **told}, "error": rest}, problem.status)
    return Again({**answer, "error": str(problem)}, problem.status)
