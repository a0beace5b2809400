"""Brief forms of values for people, on one line: the `repr` of a model, and a length of time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel


def list_given(model: BaseModel) -> list[tuple[str | None, Any]]:
    """Return the fields of a model that differ from their defaults, with their values."""
    defaults = (
        (name, field.get_default(call_default_factory=True)) for name, field in type(model).model_fields.items()
    )
    return [(name, getattr(model, name)) for name, default in defaults if getattr(model, name) != default]


def to_words(span: timedelta) -> str:
    """Return a length of time in the largest unit of which it is a whole number."""
    seconds = round(span.total_seconds())
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds // length} {unit}{'s' if seconds > length else ''}"
    return f"{seconds} second{'s' if seconds != 1 else ''}"
