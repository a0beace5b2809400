"""Pydantic models as JSON that they can read again: in payloads, events, and results of steps and handlers.

What Pydantic writes is made for readers. It has computed fields, the names of `serialization_alias`, and no
field with `exclude=True`. A model may read something else. So a model is written by its *own input names*:
the first name under which its validation looks for each field, with `Json` fields as text, and without
computed fields. It is read in Pydantic's JSON mode, in which strict types accept what JSON has for them, such
as a text for an instant.
"""

# ruff: noqa: ANN401 - any JSON

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import SchemaSerializer, to_json, to_jsonable_python

from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic import TypeAdapter

PATH_MARK: Final = "\0"
"""Surrounds the number of a path in a name that stands for it while a model is written."""
Path = list[str | int]
_FIELDS: Final = frozenset({"model-field", "dataclass-field", "typed-dict-field"})
WITH_FIELDS: Final = frozenset({"model-fields", "dataclass-args", "typed-dict"})
_WITH_CONFIG: Final = frozenset({"model", "dataclass", "typed-dict"})
NO_SCHEMAS: Final = frozenset({"cls", "config", "default", "metadata", "expected", "members", "function"})
"""The keys of a schema below which there are no others: what is there may look like one."""


def read_json(adapter: TypeAdapter[Any], value: Any) -> Any:
    """Return JSON as a type. Raises ValidationError, or whatever a model's own validators raise."""
    try:
        content = to_json(value)
    except ValueError:  # a lone surrogate: storing it is refused, with a better message
        return adapter.validate_python(value)
    return adapter.validate_json(content)


@dataclass(frozen=True, slots=True)
class ModelWriter:
    """Writes the instances of one class as JSON."""

    serializer: SchemaSerializer
    paths: list[Path]

    def write(self, model: object, fallback: Callable[[Any], Any], *, keeps_subclasses: bool = False) -> Any:
        """Return the JSON that its class reads, before its paths are expanded. Raises ValueError.

        It has what a value of a subclass adds, in a field of its base, only with `keeps_subclasses`.
        """
        return self.serializer.to_python(
            model,
            mode="json",
            by_alias=True,
            round_trip=True,
            fallback=fallback,
            polymorphic_serialization=keeps_subclasses,
        )

    def dump(self, model: object) -> Any:
        """Return the same fields by the same names, with values as they are in Python."""
        return self.serializer.to_python(model, by_alias=True, round_trip=True)

    def expand(self, written: Any) -> Any:
        """Return JSON in which each name that stands for a path has become its maps and lists.

        Raises InvalidInput.
        """
        if not self.paths:
            return written
        if isinstance(written, list):
            return [self.expand(each) for each in written]
        if not isinstance(written, dict):
            return written
        made = {name: self.expand(each) for name, each in written.items() if not name.startswith(PATH_MARK)}
        for name, each in written.items():
            if name.startswith(PATH_MARK):
                _put(made, self.paths[int(name.split(PATH_MARK)[1])], self.expand(each))
        return made


def is_model(value: object) -> bool:
    """Return whether a value is an instance of a class that Pydantic validates."""
    return hasattr(type(value), "__pydantic_core_schema__")


@lru_cache(maxsize=2048)
def find_writer(kind: type[Any], *, keeps_excluded: bool) -> ModelWriter:
    """Return the writer of a class. It writes fields with `exclude=True`, too, or leaves them out."""
    paths: list[Path] = []
    schema = _Names(paths, keeps_excluded=keeps_excluded).rewrite(
        kind.__pydantic_core_schema__,
        by_alias=True,
    )
    return ModelWriter(SchemaSerializer(schema, _use_prebuilt=False), paths)


class _Names:
    """Rewrites a schema so that each field is written by the name under which it is read."""

    def __init__(self, paths: list[Path], *, keeps_excluded: bool) -> None:
        self._paths = paths
        self._keeps_excluded = keeps_excluded

    def rewrite(self, node: Any, *, by_alias: bool) -> Any:
        """Return a part of a schema rewritten.

        `by_alias` says whether the model that it belongs to reads aliases.
        """
        if isinstance(node, list | tuple):
            return type(node)(self.rewrite(each, by_alias=by_alias) for each in node)
        if not isinstance(node, Mapping):
            return node
        kind = None
        if isinstance(node.get("type"), str):
            kind = node.get("type")
        if kind in _WITH_CONFIG:
            by_alias = node.get("config", {}).get("validate_by_alias") is not False
        made = {
            name: part if kind is not None and name in NO_SCHEMAS else self.rewrite(part, by_alias=by_alias)
            for name, part in node.items()
        }
        if kind in _FIELDS:
            self._rename(made, by_alias=by_alias)
        elif kind in WITH_FIELDS:
            fields = made["fields"]
            if not isinstance(fields, dict):
                fields = {each["name"]: each for each in fields}
            self._separate(dict(fields))
        return made

    def _rename(self, field: dict[str, Any], *, by_alias: bool) -> None:
        field.pop("serialization_alias", None)
        alias = field.get("validation_alias") if by_alias else None
        if isinstance(alias, list):
            path = alias[0] if isinstance(alias[0], list) else alias
            alias = path[0] if len(path) == 1 else self._name_path(path)
        if alias is not None:
            field["serialization_alias"] = alias
        if self._keeps_excluded:
            field.pop("serialization_exclude", None)
            field.pop("serialization_exclude_if", None)

    def _separate(self, fields: dict[str, dict[str, Any]]) -> None:
        """Prevent a field of a model from overwriting another one of the same name: `_put` compares them."""
        names = {own: field.get("serialization_alias", own) for own, field in fields.items()}
        for own, name in names.items():
            if sum(name == each for each in names.values()) > 1:
                fields[own]["serialization_alias"] = self._name_path([name])

    def _name_path(self, path: Path) -> str:
        self._paths.append(path)
        return f"{PATH_MARK}{len(self._paths) - 1}{PATH_MARK}{'.'.join(map(str, path))}"


def _put(place: Any, path: Path, value: Any) -> None:
    """Put a value where a path leads from a map. Raises InvalidInput if something else is there."""
    for number, step in enumerate(path):
        if isinstance(place, list) and isinstance(step, int):
            place.extend([None] * ((step + 1 if step >= 0 else -step) - len(place)))
            found = place[step]
        elif isinstance(place, dict) and isinstance(step, str):
            found = place.get(step)
        else:
            break
        is_last = number == len(path) - 1
        if found is None:
            found = value
            if not is_last:
                found = [] if isinstance(path[number + 1], int) else {}
            place[step] = found
        if is_last and found == value:
            return
        place = found

    shown = ".".join(map(str, path))
    raise InvalidInput(
        shown,
        "has two values: two fields are read from it",
        "Give the fields aliases of their own.",
    )


_COLLECTIONS: Final = (dict, list, tuple, set, frozenset, deque)
_SCALARS: Final = frozenset({str, int, float, bool, NoneType})


def replace_models(field: str, value: Any, write: Callable[[str, Any], Any]) -> Any:
    """Return a value with each model in it replaced by what `write` returns for its place and itself."""
    if is_model(value):
        return write(field, value)
    if is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, dict):
        return {
            key: each if type(each) in _SCALARS else replace_models(f"{field}.{key}", each, write)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset | deque):
        return [
            each if type(each) in _SCALARS else replace_models(f"{field}.{number}", each, write)
            for number, each in enumerate(value)
        ]
    return value


def find_change(old: object, new: object) -> str | None:
    """Return where a value and what was read from its JSON differ in a model's class, a length or a value.

    Other values of two classes count as the same: `Any` reads a text for an instant, and defaults are not
    validated.
    """
    pairs: Any = ()
    if is_model(old) and is_model(new) and type(old) is not type(new):
        return ""
    if type(old) is type(new) and (is_model(old) or is_dataclass(old)):
        old, new = ({**vars(each), **(getattr(each, "__pydantic_extra__", None) or {})} for each in (old, new))
        # Without its cached properties.
        pairs = [(key, each, new[key]) for key, each in old.items() if key in new]
    elif isinstance(old, _COLLECTIONS) and isinstance(new, _COLLECTIONS):
        if len(old) != len(new):
            return ""
        if isinstance(old, dict) and isinstance(new, dict):
            pairs = [(key, each, new[key]) for key, each in old.items() if key in new]
        elif not isinstance(old, set | frozenset):
            pairs = zip(range(len(old)), old, new, strict=True)
    elif type(old) is type(new) and type(old).__eq__ is not object.__eq__ and old != new and str(old) != str(new):
        return ""
    found = ((key, find_change(one, other)) for key, one, other in pairs)
    return next((f".{key}{place}" for key, place in found if place is not None), None)


def find_equal_keys(value: object) -> tuple[object, object] | None:
    """Return two keys of one map that are the same in JSON, where all keys are texts, such as 1 and "1"."""
    parts = [value]
    seen = set[int]()
    while parts:
        part = parts.pop()
        seen.add(id(part))
        inside: Any = ()
        if isinstance(part, dict):
            names = dict[str, object]()
            for key in part if any(type(key) is not str for key in part) else ():
                name = str(next(iter(to_jsonable_python({key: None}))))
                if name in names:
                    return names[name], key
                names[name] = key
            inside = part.values()
        elif isinstance(part, list | tuple | set | frozenset | deque):
            inside = part
        elif is_model(part) or is_dataclass(part):
            inside = (getattr(part, "__dict__", None), getattr(part, "__pydantic_extra__", None))
        parts += [each for each in inside if type(each) not in _SCALARS and id(each) not in seen]

    return None
