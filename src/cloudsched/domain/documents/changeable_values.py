"""The values of a model that can be changed although it is frozen: JSON from users and handlers, such as a payload.

Such a value is equal to others that JSON tells apart: 1 to true, and to 1.0.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeVar, get_args, get_origin

from pydantic import BaseModel

_MUTABLE: Final = (dict, list, set)

M = TypeVar("M", bound=BaseModel)


def copy_values(model: M) -> M:
    """Return a model that shares nothing with this one that anybody could change."""
    values, changes = model.__dict__, dict[str, Any]()
    for name in list_changeable(type(model)):
        value = values[name]
        if value:
            copied = _copy(value)
            if copied is not value:
                changes[name] = copied
        elif type(value) is dict or type(value) is list:
            changes[name] = type(value)()
    return model.model_copy(update=changes) if changes else model


def _copy(value: Any) -> Any:  # noqa: ANN401 - any value of a field
    match value:
        case dict():
            return {key: _copy(item) for key, item in value.items()}
        case list():
            return [_copy(item) for item in value]
        case tuple():
            copies = tuple([_copy(item) for item in value])
            return value if all(map(_is_same, copies, value)) else copies
        case BaseModel():
            return copy_values(value)
        case _:
            return value


def _is_same(one: object, other: object) -> bool:
    return one is other


@cache
def list_changeable(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the fields of a model that may hold JSON values, or anything else that can be changed."""
    return tuple(name for name, field in model.model_fields.items() if _may_change(field.annotation))


def _may_change(annotation: Any) -> bool:  # noqa: ANN401 - a type, or what typing makes of one
    if annotation is Any:
        return True
    kind = get_origin(annotation) or annotation
    if isinstance(kind, type):
        if issubclass(kind, _MUTABLE):
            return True
        if issubclass(kind, BaseModel):
            return not kind.model_config.get("frozen") or bool(list_changeable(kind))
    return any(map(_may_change, get_args(annotation)))
