"""The types of the events that a handler waits for, by which their payloads are checked when they are sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from cloudsched.domain.first_error import list_errors
from cloudsched.domain.transitions.invalid_input import to_invalid_input
from cloudsched.engine.handlers.payload_fields import describe_fields
from cloudsched.errors import InvalidInput, InvalidPayload

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class EventType:
    """The type of an event's payload."""

    model: Any
    """As the handler has declared it."""
    adapter: TypeAdapter[Any]

    def read(self, payload: Any) -> Any:  # noqa: ANN401 - from any JSON to whatever was declared
        """Return an event's payload as its type.

        Raises:
            InvalidPayload: It is not of that type; `field` names the first invalid field.
        """
        try:
            return self.adapter.validate_python(payload)
        except ValidationError as error:
            raise explain_payload(error, self.adapter) from None


def explain_payload(error: ValidationError, kind: TypeAdapter[Any]) -> InvalidInput:
    """Return what is wrong with a payload of a type; the fields of its models are listed where one is missing."""
    invalid = to_invalid_input(error, "payload", InvalidPayload)
    errors = {each["loc"]: each["type"] for each in list_errors(error)}
    for each in invalid.faults:
        place = (each.path or ())[1:]
        if errors.get(place) in {"missing", "extra_forbidden"}:
            fields = describe_fields(kind.core_schema, place[:-1])
            each.hint = each.hint if fields is None else f"{fields}."
            each.args = InvalidPayload(each.field, each.problem, each.hint).args
    return invalid
