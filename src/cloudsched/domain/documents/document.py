"""The base classes of all stored and transmitted objects, and the rules for storing them.

Python is snake_case, while JSON on the wire and documents in Firestore are camelCase. The aliases defined
here are the only conversion between the two. An instant is an aware datetime, stored in UTC, and a naive one
is refused. A duration is a `timedelta`, and a number of seconds on the wire.

A field that differs from its default is stored under its camelCase key. A missing field has its default, in
nested objects too. So **defaults are part of the stored format**: a field that a document of today omits
keeps the default of today. ``tests/domain/documents/stored_defaults.json`` freezes them. The fields by which
queries find documents are stored whatever their value: see `Document.always_stored`.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache, lru_cache
from operator import attrgetter, methodcaller
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    NamedTuple,
    Self,
    TypeVar,
    get_args,
    get_origin,
)

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticUndefined, core_schema, to_json

from cloudsched.domain.any_case import to_upper_snake
from cloudsched.domain.in_words import describe_error, find_first_error, list_given
from cloudsched.domain.recurrence.iso8601 import FIRST_YEAR, LAST_INSTANT, LAST_YEAR, reject_number, to_utc
from cloudsched.errors import DamagedDocument, InvalidInput, UnsupportedDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

NO_DEFAULT: Final = object()
"""The default of a field that is always stored: no value equals it."""


class Packed:
    """Marks a field of a document that is stored in a shorter form than the API shows."""

    def __init__(self, pack: Callable[[Any], object], unpack: Callable[[Any], object]) -> None:
        """Take two functions. `unpack` gets packed and unpacked values."""
        self.pack = pack
        self.unpack = unpack

    def __get_pydantic_core_schema__(
        self,
        source: object,
        handler: GetCoreSchemaHandler,
    ) -> core_schema.CoreSchema:
        """Return the field's schema, which reads both forms. `Document` packs the field when it is stored."""
        return core_schema.no_info_before_validator_function(self.unpack, handler(source))


class StoredField(NamedTuple):
    """The form in which a field of a model is stored."""

    name: str
    key: str
    """Its key in the document."""
    default: object
    """The value that is not stored, or `NO_DEFAULT` if every value is."""
    pack: Callable[[Any], object] | None
    """The function that shortens its value, if there is one."""


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
    """Return the names of the fields in which the stored forms of two objects of one model may differ.

    Models and JSON count as changed unless they are the same object: to compare a model costs more than to
    write it, and JSON values that are equal may be stored differently (1 and true).
    """
    earlier, later = before.__dict__, after.__dict__
    names, compared = _list_compared(type(after))
    changed = set[str]()
    for name in names:
        if later[name] is not earlier[name] and (name not in compared or later[name] != earlier[name]):
            changed.add(name)
    return changed


@cache
def _list_compared(model: type[BaseModel]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the fields of a model, and those whose values are compared."""
    fields = model.model_fields
    return tuple(fields), frozenset(name for name, field in fields.items() if not _has_parts(field.annotation))


def _has_parts(annotation: Any) -> bool:  # noqa: ANN401 - a type, or what typing makes of one
    kind = get_origin(annotation) or annotation
    if kind is Any or (isinstance(kind, type) and issubclass(kind, (BaseModel, dict, list, set))):
        return True
    return any(map(_has_parts, get_args(annotation)))


def get_default(field: Any) -> object:  # noqa: ANN401 - pydantic's, which it does not export as a type to rely on
    """Return the default of a pydantic field, or `NO_DEFAULT`."""
    default = field.get_default(call_default_factory=True)
    if default is PydanticUndefined:
        return NO_DEFAULT
    return default


SCHEMA_VERSION = 1
"""The schema version that this code writes, and the newest that it reads."""

STORED_CONTEXT = {"stored": True}
"""The validation context for documents from a store: they were validated when created, so costly checks are
skipped."""

_set_values, _set_fields_set, _set_extra, _set_private = (
    BaseModel.__dict__[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)
"""The setters of the four attributes that make an object of a model. A frozen model refuses to set them by
name."""


def _read_seconds(value: object) -> object:
    """Accept a number of seconds also as text, as an address has it."""
    if isinstance(value, bool):
        raise ValueError("is not a number of seconds, such as 600")  # noqa: TRY004 - pydantic's way to report it
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _reject_non_number(value: object) -> object:
    if isinstance(value, bool | str):
        raise ValueError("is not a whole number")  # noqa: TRY004 - pydantic's way to report it
    return value


def _parse_rfc3339(value: object) -> object:
    """Accept an instant only as text, never as a number of seconds."""
    if isinstance(value, datetime):  # in Python
        return value
    if not isinstance(value, str):
        raise ValueError("is not an instant; give RFC 3339 with an offset")  # noqa: TRY004 - pydantic's way to report it
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("is not an instant; give RFC 3339 with an offset") from None
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise ValueError(f"is not from the years {FIRST_YEAR} to {LAST_YEAR}")
    return at


# A task has ten durations, mostly those of its policies, and each commit writes them.
@lru_cache(maxsize=1000)
def to_seconds(value: timedelta) -> int | float:
    """Return a duration as it is stored and sent: a number of seconds."""
    seconds = value.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


class _StoredInstant:
    """Reads an instant in JSON, which only stores have, in half the time: no Python function is called."""

    def __get_pydantic_core_schema__(
        self,
        source: object,
        handler: GetCoreSchemaHandler,
    ) -> core_schema.CoreSchema:
        text = core_schema.datetime_schema(
            strict=True,
            ge=_FIRST_INSTANT,
            le=LAST_INSTANT,
            tz_constraint="aware",
        )
        stored = core_schema.no_info_after_validator_function(methodcaller("astimezone", UTC), text)
        return core_schema.json_or_python_schema(stored, handler(source))


_FIRST_INSTANT: Final = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
Instant = Annotated[AwareDatetime, AfterValidator(to_utc), BeforeValidator(reject_number), _StoredInstant()]
"""A point on the time line, in UTC. JSON: RFC 3339 (``2027-01-01T09:00:00Z``)."""

InputInstant = Annotated[
    Instant,
    BeforeValidator(_parse_rfc3339),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2027-01-01T09:00:00Z"]}),
]
"""RFC 3339 with an offset."""

Duration = Annotated[timedelta, BeforeValidator(_read_seconds), PlainSerializer(to_seconds)]
"""A length of time. JSON: a number of seconds, or an ISO 8601 duration (``PT5M``)."""

Integer = Annotated[int, BeforeValidator(_reject_non_number)]
"""A whole number as JSON has it: 3 or 3.0, and neither ``"3"`` nor ``true``."""


class StoredEnum(StrEnum):
    """The values of a field, in UPPER_SNAKE. They are read in any case, and as camelCase, as early versions wrote some.

    Writing one as JSON reads its `value`, which the standard library does slowly.
    """

    if not TYPE_CHECKING:
        value = property(attrgetter("_value_"))

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls.__members__.get(to_upper_snake(value)) if isinstance(value, str) else None


Member = TypeVar("Member", bound=StrEnum)
Row = TypeVar("Row")


def complete_table(members: type[Member], rows: Mapping[Member, Row]) -> Mapping[str, Row]:
    """Return a table by the members of a closed set, or by their texts.

    One that lacks a row is refused at import.

    If the rows are code, write a `match` that returns in each case instead: the type check finds what is missing.
    """
    missing = [each.name for each in members if each not in rows]
    if missing:
        raise TypeError(f"A table of {members.__name__} has no row for {', '.join(missing)}.")
    return {str(member): row for member, row in rows.items()}


class WireModel(BaseModel):
    """An immutable part of a document, camelCase on the wire. An unknown field is an error.

    Its `repr` has the fields in `identified_by`, or if there are none, those that differ from their defaults.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="forbid",
        ser_json_bytes="base64",
        defer_build=True,  # a process validates few of them, and building one takes a millisecond and more
    )
    identified_by: ClassVar[tuple[str, ...]] = ()

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return [(name, getattr(self, name)) for name in self.identified_by] or list_given(self)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with these fields changed, which are not validated.

        It does the same as pydantic for a frozen model, in a quarter of the time. An occurrence makes a dozen
        copies.
        """
        if deep or self.__pydantic_private__ is not None or self.__pydantic_extra__ is not None:
            return super().model_copy(update=update, deep=deep)
        changes = update or {}
        fields_set = self.__pydantic_fields_set__
        if not fields_set.issuperset(changes):
            # Else both share it: nothing changes the one of a frozen model.
            fields_set = {*fields_set, *changes}
        kind = type(self)
        copied = kind.__new__(kind)
        _set_values(copied, {**self.__dict__, **changes})
        _set_fields_set(copied, fields_set)
        _set_extra(copied, None)
        _set_private(copied, None)
        return copied

    @classmethod
    def build(cls, **values: Any) -> Self:
        """Return an object of values that are known to be valid: they are not validated again.

        Validation takes ten times as long. Use it only for objects that every occurrence makes out of a
        validated document.
        """
        required, template = _build_template(cls)
        content = {**template, **values}
        fields_set = set(values)
        if len(content) != len(template) or not required <= fields_set:
            wrong = sorted((values.keys() - template.keys()) | (required - values.keys()))
            raise TypeError(f"{cls.__name__}: {', '.join(wrong)} are missing or unknown")
        built = cls.__new__(cls)
        _set_values(built, content)
        _set_fields_set(built, fields_set)
        _set_extra(built, None)
        _set_private(built, None)
        return built

    def to_wire(self) -> dict[str, Any]:
        """Return the object as JSON types with camelCase keys, without the fields that are None."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)  # which pydantic does not export


class _Explained(ModelMetaclass):
    """A metaclass of models that Python code builds: what is wrong raises an error of this package."""

    if not TYPE_CHECKING:  # type checkers read the fields

        def __call__(cls, *arguments, **values):  # noqa: ANN002, ANN003, ANN204, N805 - of a metaclass
            try:
                return super().__call__(*arguments, **values)
            except ValidationError as error:
                raise _explain(cls, find_first_error(error, "extra_forbidden")) from None


def _explain(model: type[BaseModel], error: Mapping[str, Any]) -> InvalidInput:
    field = ".".join(map(str, error["loc"])) or model.__name__
    if error["type"] != "extra_forbidden":
        return InvalidInput(field, *describe_error(error, {}))
    from difflib import get_close_matches  # noqa: PLC0415 - needed only for errors

    near = get_close_matches(field, model.model_fields, n=1)
    if near:
        hint = f"Did you mean {near[0]}?"
    else:
        hint = f"There are {', '.join(model.model_fields)}."
    return InvalidInput(field, f"is no field of {model.__name__}", hint)


class InputModel(WireModel, metaclass=_Explained):
    """A part of a task that Python code makes by hand, such as a policy.

    A mistake in it raises InvalidInput.
    """


_AS_STORED: Final[dict[str, Any]] = {
    "by_alias": True,
    "exclude_none": True,
    "exclude_defaults": True,
    "context": STORED_CONTEXT,
}


class Document(WireModel):
    """An object that is stored as a document of its own.

    Fields that have their defaults are not in it.
    """

    always_stored: ClassVar[frozenset[str]] = frozenset({"schema_version"})
    """The fields that are stored even if they have their default: queries, rules or readers rely on them."""

    schema_version: int = SCHEMA_VERSION
    """The version of the form that this document is stored in."""

    def to_stored(self) -> dict[str, Any]:
        """Return the document as the store's types (instants stay datetimes) with camelCase keys."""
        self.require_readable()
        values = self.__dict__
        packed = _list_packed(type(self))
        data = self.model_dump(mode="python", exclude={*packed}, **_AS_STORED)
        data |= {key: pack(values[name]) for name, (key, pack) in packed.items() if values[name]}
        return {**{key: values[name] for name, key, default, _ in _always_stored(type(self))}, **data}

    def to_stored_json(self, changes: Collection[str] | None = None) -> str:
        """Return the document as JSON with camelCase keys, for stores that keep text.

        `changes` are the fields that differ from what was read.
        """
        self.require_readable(changes)
        values = self.__dict__
        packed = _list_packed(type(self))
        body = self.model_dump_json(exclude={*packed}, **_AS_STORED)[1:]
        for name, (key, pack) in packed.items():
            if values[name]:
                body = f'"{key}":{to_json(pack(values[name])).decode()},{body}'
        for name, _, default, text in _always_stored(type(self)):
            if values[name] == default:
                body = f"{text},{body}"
        return "{" + body

    def require_readable(self, names: Collection[str] | None = None) -> None:
        """Check computed instants of the document, or of some fields, since reading will check them again."""
        parts: list[tuple[tuple[str, ...], Any]] = [((), self)]
        for path, value in parts:  # which the parts of each join at the end
            kind: type[WireModel] = type(value)
            if isinstance(value, datetime):
                if value.tzinfo is None or not FIRST_YEAR <= value.year <= LAST_YEAR:
                    problem = f"is {value.isoformat()}, which no document can hold"
                    hint = f"Give a year from {FIRST_YEAR} to {LAST_YEAR}, with a zone."
                    raise InvalidInput(".".join(map(to_camel, path)), problem, hint)
            elif isinstance(value, tuple):
                for number, item in enumerate(value):
                    parts.append(((*path, str(number)), item))
            elif hasattr(kind, "to_wire"):  # a WireModel: isinstance is slow for pydantic's classes
                inner = value.__dict__
                for name in _fields_with_instants(kind):
                    if inner[name] and (path or names is None or name in names):
                        parts.append(((*path, name), inner[name]))

    @classmethod
    def from_stored(cls, key: str, data: object) -> Self:
        """Read a stored document.

        Raises UnsupportedDocument if a newer cloudsched wrote it, else DamagedDocument.
        """
        if not isinstance(data, dict):
            raise DamagedDocument(cls.__name__, key, "it is not an object")
        version = data.get("schemaVersion")
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise UnsupportedDocument(key, version, SCHEMA_VERSION)
        if not isinstance(version, int):
            raise DamagedDocument(cls.__name__, key, "its schemaVersion is no number")
        try:
            return cls.model_validate(data, context=STORED_CONTEXT)
        except ValidationError as error:  # its text has the values, which are not for everybody
            first = find_first_error(error)
            place = ".".join(str(part) for part in first["loc"]) or "(document)"
            raise DamagedDocument(cls.__name__, key, f"{place} is not valid ({first['type']})") from None

    @classmethod
    def from_stored_json(cls, key: str, body: bytes) -> Self:
        """Read a document that is stored as JSON, as `from_stored` does."""
        try:
            document = cls.model_validate_json(body, context=STORED_CONTEXT)
        except ValidationError:
            try:
                data = json.loads(body)
            except (ValueError, RecursionError) as error:
                raise DamagedDocument(cls.__name__, key, "it is not JSON") from error
            return cls.from_stored(key, data)  # raises what is wrong with it
        if document.schema_version > SCHEMA_VERSION:
            raise UnsupportedDocument(key, document.schema_version, SCHEMA_VERSION)
        return document


@cache
def _build_template(model: type[WireModel]) -> tuple[frozenset[str], dict[str, Any]]:
    """Return the names of the fields that `build` requires, and all fields in order with their defaults.

    Required are those without a default, and those whose default is made for each object. A default must not
    be mutable, because objects share it.
    """
    fields = model.model_fields
    required = frozenset(name for name, field in fields.items() if field.is_required() or field.default_factory)
    template = {name: None if name in required else field.get_default() for name, field in fields.items()}
    for name, default in template.items():
        if isinstance(default, dict | list | set):
            raise TypeError(f"{model.__name__}.{name} has a default that is not to be shared")
    return required, template


@cache
def _always_stored(model: type[Document]) -> tuple[tuple[str, str, object, str], ...]:
    """Return the fields that are stored even with their default: name, key, default, and default as JSON."""
    fields = model.model_fields
    return tuple(
        (name, key, default, f"{json.dumps(key)}:{json.dumps(default)}")
        for name, key, _, _ in list_stored_fields(model)
        if name in model.always_stored and (default := get_default(fields[name])) is not NO_DEFAULT
    )


@cache
def _list_packed(model: type[Document]) -> dict[str, tuple[str, Callable[[Any], object]]]:
    """Return the packed fields, by their names, with their keys and what packs them.

    None is stored if it is empty.
    """
    return {name: (key, pack) for name, key, _, pack in list_stored_fields(model) if pack is not None}


@cache
def _fields_with_instants(model: type[WireModel]) -> tuple[str, ...]:
    return tuple(name for name, field in model.model_fields.items() if _may_hold_instant(field.annotation))


def _may_hold_instant(annotation: object) -> bool:
    if annotation in (AwareDatetime, datetime):
        return True
    if isinstance(annotation, type):
        return issubclass(annotation, WireModel) and bool(_fields_with_instants(annotation))
    return any(map(_may_hold_instant, get_args(annotation)))
