"""The fields that the payload of a task or an event may have, by the pydantic schema of its annotation.

A model that says nothing about unknown fields ignores them at a run, so that an older task still runs after a
field was removed. In the creation or edit of a task, an unknown field is a mistake: it is found here. A model
that says how it treats them (``extra=``), or that has a validator that runs before its fields, is left to
itself.
"""

from __future__ import annotations

import difflib
import inspect
import re
import traceback
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from pydantic import AliasChoices, BaseModel, Secret, SecretBytes, SecretStr, TypeAdapter, ValidationError

from cloudsched.domain.documents.json_limits import exception_text
from cloudsched.domain.documents.model_json import NO_SCHEMAS, WITH_FIELDS, read_json
from cloudsched.domain.in_words import list_errors
from cloudsched.domain.raised_errors import get_traceback, type_name
from cloudsched.domain.transitions.validation_errors import to_invalid_input
from cloudsched.engine.durable.suspension import is_handler_failure
from cloudsched.errors import InvalidInput, InvalidPayload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import CodeType

    from pydantic.fields import FieldInfo
    from pydantic_core import CoreSchema

Schema = dict[str, Any]

_TRANSPARENT = {"default", "nullable", "function-after"}
"""The kinds of schema that take what the schema inside takes."""
MOST_LISTED: Final = 20
"""The most fields that are listed."""


class UnknownField(NamedTuple):
    """A field that a payload has and its model does not know."""

    path: str
    model: str
    hint: str
    """The nearest field, or all of them."""
    meant: str | None = None
    """The nearest field."""


def accepts_field(schema: CoreSchema, field: str) -> bool:
    """Return whether a field would be used: False only for a plain model that rejects or ignores it.

    True for a model with a validator that runs before its fields: it may accept anything.
    """
    named = _definitions(schema)
    fields = _fields_of(_unwrap(dict(schema), named), named)
    return fields is None or fields.takes_any or field in fields.by_name


_SCALARS: Final = frozenset(
    {
        "str",
        "int",
        "float",
        "bool",
        "none",
        "date",
        "time",
        "datetime",
        "timedelta",
        "decimal",
        "uuid",
        "url",
        "enum",
    }
)
"""The kinds of schema whose values have no fields."""


@lru_cache(maxsize=1000)
def list_plain_fields(payload: TypeAdapter[Any]) -> frozenset[str]:
    """Return the fields of a payload in whose values nothing can be unknown. Most payloads have no others."""
    named = _definitions(payload.core_schema)
    fields = _fields_of(_unwrap(dict(payload.core_schema), named), named)
    known = {} if fields is None else fields.by_name
    return frozenset(name for name, kind in known.items() if _unwrap(kind, named)["type"] in _SCALARS)


def find_unknown_fields(schema: CoreSchema, value: object) -> list[UnknownField]:
    """Return the payload's fields that its models do not know: `MOST_LISTED` or a few more."""
    return _find(dict(schema), _definitions(schema), value, "")


def describe_fields(schema: CoreSchema, path: tuple[int | str, ...]) -> str | None:
    """Return the fields of the model at a path, with their types, None if there is no model."""
    named = _definitions(schema)
    kind = _unwrap(dict(schema), named)
    for step in path:
        if isinstance(step, int):
            inner = None
            if isinstance(kind.get("items_schema"), dict):
                inner = kind.get("items_schema")
        elif (fields := _fields_of(kind, named)) is not None:
            inner = fields.by_name.get(step)
        else:
            inner = kind.get("values_schema")
        if inner is None:
            return None
        kind = _unwrap(inner, named)
    described = _fields_of(kind, named)
    return None if described is None else described.describe()


def list_fields(schema: CoreSchema) -> dict[str, bool]:
    """Return the fields of a payload's model by their names in JSON, True for required ones.

    Empty if unknown.
    """
    named = _definitions(schema)
    fields = _fields_of(_unwrap(dict(schema), named), named)
    if fields is None:
        return {}
    return {name: name in fields.required for name in fields.shown.values()}


def find_missing_fields(schema: CoreSchema, payload: Mapping[str, object]) -> list[str]:
    """Return the required fields that a payload does not have under any of their names. Runs no code of the model."""
    named = _definitions(schema)
    fields = _fields_of(_unwrap(dict(schema), named), named)
    if fields is None:
        return []
    given = {id(fields.by_name[name]) for name in payload if name in fields.by_name}
    return [name for name in fields.shown.values() if name in fields.required and id(fields.by_name[name]) not in given]


def find_secret_field(annotation: object, path: str = "") -> str | None:
    """Return the path of a field that pydantic would write out as stars, None if an annotation has none.

    A field that its model writes out with a serializer of its own is no secret to the model's author.
    """
    return _find_secret(annotation, path, set())


def _find_secret(annotation: Any, path: str, seen: set[int]) -> str | None:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, SecretStr | SecretBytes | Secret):
        return path.removeprefix(".") or annotation.__name__
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if id(annotation) in seen:
            return None
        seen.add(id(annotation))
        written = {
            name for each in annotation.__pydantic_decorators__.field_serializers.values() for name in each.info.fields
        }
        inside = [
            (each.annotation, f"{path}.{name}")
            for name, each in annotation.model_fields.items()
            if name not in written and "*" not in written
        ]
    else:
        inside = [(each, path) for each in get_args(annotation)]

    return next(
        (found for kind, where in inside if (found := _find_secret(kind, where, seen)) is not None),
        None,
    )


class _Fields(NamedTuple):
    model: type[Any]
    by_name: dict[str, Schema]
    """The schema of each field, by each of its names in JSON."""
    shown: dict[str, str]
    """The first name in JSON of each field, by its name in Python."""
    required: frozenset[str]
    takes_any: bool
    is_explicit: bool
    """True if the model says how it treats unknown fields."""

    def describe(self) -> str:
        annotations = {name: each.annotation for name, each in getattr(self.model, "model_fields", {}).items()}
        shown = []
        for own, name in list(self.shown.items())[:MOST_LISTED]:
            text = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", inspect.formatannotation(annotations.get(own, Any)))
            if name not in self.required:
                text += " (optional)"
            shown.append(f"{name}: {text}")
        rest = ", …" if len(self.shown) > MOST_LISTED else ""
        if shown:
            return f"{self.model.__name__} has {', '.join(shown)}{rest}"
        return f"{self.model.__name__} has no fields"


def _definitions(schema: CoreSchema) -> dict[str, Schema]:
    outer: Mapping[str, Any] = schema
    if outer["type"] != "definitions":
        return {}
    return {str(each.get("ref")): each for each in outer["definitions"]}


def _unwrap(kind: Schema, named: dict[str, Schema]) -> Schema:
    for _ in range(50):  # more than any annotation nests
        if kind["type"] == "definitions":
            kind = kind["schema"]
        elif kind["type"] == "definition-ref":
            found = named.get(kind["schema_ref"])
            if found is None:
                return kind
            kind = found
        elif kind["type"] in _TRANSPARENT:
            kind = kind["schema"]
        else:
            break
    return kind


def _fields_of(kind: Schema, named: dict[str, Schema]) -> _Fields | None:
    """Return the fields of a model, None for anything else, and for a model that may accept anything."""
    if kind["type"] != "model" or kind.get("root_model"):
        return None
    inner = _unwrap(kind["schema"], named)
    if inner["type"] != "model-fields":
        return None
    config = kind["cls"].model_config
    by_name = dict[str, Schema]()
    shown = dict[str, str]()
    required = set[str]()
    for name, field in inner["fields"].items():
        for accepted in _iter_names(name, field, config):
            by_name[accepted] = field["schema"]
            shown.setdefault(name, accepted)
            if field["schema"]["type"] != "default":
                required.add(accepted)
    extra = config.get("extra")
    return _Fields(kind["cls"], by_name, shown, frozenset(required), extra == "allow", extra is not None)


def _iter_names(name: str, field: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    alias = field.get("validation_alias")
    if isinstance(alias, str):
        yield alias
    elif alias is not None:  # a path, or several of them
        paths = [alias] if isinstance(alias[0], str) else alias
        yield from (str(path[0]) for path in paths)
    if alias is None or config.get("populate_by_name") or config.get("validate_by_name"):
        yield name


def _find(kind: Schema, named: dict[str, Schema], value: object, path: str) -> list[UnknownField]:
    kind = _unwrap(kind, named)
    unknown: list[UnknownField] = []
    if kind["type"] in {"union", "tagged-union"}:
        return _find_in_union(kind, named, value, path)

    if isinstance(value, list | tuple) and isinstance(items := kind.get("items_schema"), dict):
        inside = [(items, item, f"{path}.{number}") for number, item in enumerate(value)]
    elif isinstance(value, dict) and kind["type"] == "dict" and isinstance(values := kind.get("values_schema"), dict):
        inside = [(values, item, f"{path}.{name}") for name, item in value.items()]
    elif isinstance(value, dict) and (fields := _fields_of(kind, named)) is not None:
        model = fields.model.__name__
        if not fields.is_explicit:
            names = [name for name in value if name not in fields.by_name]
            unknown = [UnknownField(f"{path}.{name}", model, *_hint(name, fields)) for name in names[:MOST_LISTED]]
        known = {name: kind for name, kind in fields.by_name.items() if name in value}
        inside = [(kind, value[name], f"{path}.{name}") for name, kind in known.items()]
    else:
        return []

    for each in inside:
        unknown += _find(each[0], named, each[1], each[2])
        if len(unknown) >= MOST_LISTED:
            break

    return unknown


def _find_in_union(kind: Schema, named: dict[str, Schema], value: object, path: str) -> list[UnknownField]:
    """Return unknown fields only if every member of the union has some."""
    choices = kind["choices"]
    if isinstance(choices, dict):
        choices = choices.values()
    members = [each[0] if isinstance(each, tuple) else each for each in choices]
    found = [_find(member, named, value, path) for member in members if isinstance(member, dict)]
    if [] in found or not found:
        return []
    return found[0]


def _hint(name: object, fields: _Fields) -> tuple[str, str | None]:
    near = difflib.get_close_matches(str(name), list(fields.shown.values()), n=1, cutoff=0.6)
    if near:
        return (f"Did you mean {near[0]!r}? {fields.describe()}.", near[0])
    return (f"{fields.describe()}.", None)


def find_reset_fields(
    before: object,
    after: object,
    given: Mapping[str, Any],
    path: str = "",
) -> Iterator[str]:
    """Yield the fields that a new payload omits although it would lose their old values.

    `given` is the new payload as its caller wrote it: a field with null is given, too.
    """
    if type(before) is not type(after):
        return
    if isinstance(before, BaseModel):
        names = {name: {name, *_iter_aliases(field)} for name, field in type(before).model_fields.items()}
        set_before = before.model_fields_set & names.keys()
    elif is_dataclass(before):
        names = {each.name: {each.name} for each in fields(before)}
        set_before = set(names)
    else:
        return
    for name in sorted(set_before):
        old = getattr(before, name)
        new = getattr(after, name)
        written = names[name] & given.keys()
        if not written:
            if old != new:
                yield f"{path}{name}"
            continue
        inside = given[written.pop()]
        if isinstance(inside, dict):
            yield from find_reset_fields(old, new, inside, f"{path}{name}.")


def _iter_aliases(field: FieldInfo) -> Iterator[str]:
    for alias in (field.alias, field.validation_alias):
        if isinstance(alias, str):
            yield alias
        elif isinstance(alias, AliasChoices):
            yield from (each for each in alias.choices if isinstance(each, str))


@dataclass(frozen=True, slots=True)
class EventType:
    """The type of an event's payload."""

    model: Any
    """As the handler has declared it."""
    adapter: TypeAdapter[Any]

    def read(self, payload: Any) -> Any:  # noqa: ANN401 - from any JSON to whatever was declared
        """Return an event's payload as its type. Raises InvalidPayload."""
        return read_payload(self.adapter, payload)


def read_payload(kind: TypeAdapter[Any], payload: Any) -> Any:  # noqa: ANN401 - the same
    """Return the payload of a task or an event as its type. Raises InvalidPayload."""
    try:
        return read_json(kind, payload)
    except ValidationError as error:
        raise explain_payload(error, kind) from None
    except BaseException as error:  # a model's validators are user code
        if issubclass(type(error), InvalidInput) or not is_handler_failure(error):
            raise
        place = f"payload{_find_validated(kind.core_schema, error)}"
        problem = f"makes its model raise {type_name(error)}: {exception_text(error)}"
        raise InvalidPayload(place, problem) from error


def _find_validated(schema: CoreSchema, error: BaseException) -> str:
    """Return the path of the field whose validator has raised an error.

    Empty if a model's has, or several share it.
    """
    for frame, _ in traceback.walk_tb(get_traceback(error)):
        places = {*_iter_validated(schema, frame.f_code)}
        if places:
            return places.pop() if len(places) == 1 else ""
    return ""


def _iter_validated(node: Any, code: CodeType) -> Iterator[str]:  # noqa: ANN401 - a part of a schema
    if isinstance(node, list | tuple):
        for each in node:
            yield from _iter_validated(each, code)
    if not isinstance(node, dict):
        return
    validator = node.get("function")
    if isinstance(validator, dict) and getattr(validator["function"], "__code__", None) is code:
        yield ""
    if node.get("type") not in WITH_FIELDS:
        yield from _iter_validated([part for name, part in node.items() if name not in NO_SCHEMAS], code)
        return
    fields = node["fields"]
    if not isinstance(fields, dict):
        fields = {each["name"]: each for each in fields}
    for name, field in fields.items():
        alias = field.get("validation_alias", name)
        shown = f".{alias if isinstance(alias, str) else name}"
        yield from (f"{shown}{place}" for place in _iter_validated(field["schema"], code))


def explain_payload(error: ValidationError, kind: TypeAdapter[Any]) -> InvalidInput:
    """Return what is wrong with a payload of a type.

    The fields of its models are listed where one is missing.
    """
    invalid = to_invalid_input(error, "payload", InvalidPayload)
    errors = {each["loc"]: each["type"] for each in list_errors(error)}
    for each in invalid.faults:
        place = (each.path or ())[1:]
        if errors.get(place) in {"missing", "extra_forbidden"}:
            fields = describe_fields(kind.core_schema, place[:-1])
            if fields is not None:
                each.hint = f"{fields}."
            each.args = InvalidPayload(each.field, each.problem, each.hint).args
    return invalid
