"""What is stored of a model: every field that does not have its default, under its camelCase key.

A field that is missing has its default, in nested objects too. So **defaults are part of the stored format**: what a
document of today leaves out keeps the meaning of today. ``tests/domain/documents/stored_defaults.json`` freezes them.
What queries find documents by is stored whatever its value; see `Document.always_stored`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined, core_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import GetCoreSchemaHandler

NO_DEFAULT: Final = object()
"""The default of a field that is always stored: no value equals it."""


class Packed:
    """Marks a field that is stored in a shorter form than the API shows."""

    def __init__(self, pack: Callable[[Any], object], unpack: Callable[[Any], object]) -> None:
        """Take two functions.

        Args:
            pack: Returns the stored form of a value.
            unpack: Returns what the field's type validates, of the stored form or of what it is in documents that do
                not have it packed.
        """
        self.pack = pack
        self.unpack = unpack

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Return the field's schema with both steps; only what is stored is packed."""

        def serialize(
            value: Any,  # noqa: ANN401 - the field's
            shown: core_schema.SerializerFunctionWrapHandler,
            info: core_schema.SerializationInfo[Any],
        ) -> object:
            return self.pack(value) if info.context and info.context.get("stored") else shown(value)

        schema = handler(source)
        return core_schema.no_info_before_validator_function(
            self.unpack,
            schema,
            serialization=core_schema.wrap_serializer_function_ser_schema(serialize, info_arg=True, schema=schema),
        )


class StoredField(NamedTuple):
    """How a field of a model is stored."""

    name: str
    key: str
    """Its key in the document."""
    default: object
    """The value with which it is left out; `NO_DEFAULT` if it never is."""
    pack: Callable[[Any], object] | None
    """What shortens its value, if anything does."""


@cache
def list_stored_fields(model: type[BaseModel]) -> tuple[StoredField, ...]:
    """Return the fields of a model in their order."""
    always = getattr(model, "always_stored", ())
    return tuple(
        StoredField(
            name,
            str(field.serialization_alias or field.alias or name),
            NO_DEFAULT if name in always else get_default(field),
            next((each.pack for each in field.metadata if isinstance(each, Packed)), None),
        )
        for name, field in model.model_fields.items()
    )


def find_changes(before: BaseModel, after: BaseModel) -> set[str]:
    """Return the names of the fields in which what is stored of two objects of one model may differ.

    Models and JSON count as changed unless they are the same object: to compare a model costs more than to write it,
    and JSON values that are equal may be stored differently (1 and true).
    """
    earlier, compared = before.__dict__, _list_compared(type(after))
    return {
        name
        for name, value in after.__dict__.items()
        if value is not (old := earlier[name]) and (name not in compared or value != old)
    }


@cache
def _list_compared(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(name for name, field in model.model_fields.items() if not _has_parts(field.annotation))


def _has_parts(annotation: Any) -> bool:  # noqa: ANN401 - a type, or what typing makes of one
    kind = get_origin(annotation) or annotation
    if kind is Any or (isinstance(kind, type) and issubclass(kind, (BaseModel, dict, list, set))):
        return True
    return any(map(_has_parts, get_args(annotation)))


def get_default(field: Any) -> object:  # noqa: ANN401 - pydantic's, which it does not export as a type to rely on
    """Return the default of a pydantic field, or `NO_DEFAULT`."""
    default = field.get_default(call_default_factory=True)
    return NO_DEFAULT if default is PydanticUndefined else default
