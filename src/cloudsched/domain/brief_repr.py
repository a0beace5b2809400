"""The `repr` of a model, on one line: what a program prints of it is read by people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel


def list_given(model: BaseModel) -> list[tuple[str | None, Any]]:
    """Return the fields of a model that differ from their defaults, with their values."""
    defaults = (
        (name, field.get_default(call_default_factory=True)) for name, field in type(model).model_fields.items()
    )
    return [(name, getattr(model, name)) for name, default in defaults if getattr(model, name) != default]
