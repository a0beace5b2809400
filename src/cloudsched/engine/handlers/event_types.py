"""The types of the events that a handler waits for, by which their payloads are checked when they are sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from cloudsched.domain.transitions.invalid_input import to_invalid_input
from cloudsched.errors import InvalidPayload

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
            raise to_invalid_input(error, "payload", InvalidPayload) from error
