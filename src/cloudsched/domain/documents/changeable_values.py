"""The values of a model that can be changed although it is frozen: JSON from users and handlers, such as a payload.

Such a value is equal to others that JSON tells apart: 1 to true, and to 1.0.
"""

from __future__ import annotations

from functools import cache
from operator import is_
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MUTABLE: Final = (dict, list, set)
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})

M = TypeVar("M", bound=BaseModel)


def copy_values(model: M) -> M:
    """Return a model that shares nothing with this one that anybody could change."""
    copies = copy_changeable(model.__dict__, list_changeable(type(model)))
    return model.model_copy(update=copies) if copies else model


def copy_changeable(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return copies of those of these values that anybody could change, by their names."""
    copies = dict[str, Any]()
    for name in names:
        value = values[name]
        if value:
            copied = _copy(value)
            if copied is not value:
                copies[name] = copied
        elif type(value) is dict or type(value) is list:
            copies[name] = type(value)()
    return copies


def _copy(value: Any) -> Any:  # noqa: ANN401 - any value of a field
    if isinstance(value, dict):
        return {key: item if type(item) in _SCALARS else _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if type(item) in _SCALARS else _copy(item) for item in value]
    if isinstance(value, tuple):
        copies = tuple([_copy(item) for item in value])
        return value if all(map(is_, copies, value)) else copies
    return copy_values(value) if isinstance(value, BaseModel) else value


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
