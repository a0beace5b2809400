"""What may not change between two surfaces, as `surface.describe` returns them. ``docs/reference/compatibility.md``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

Json = Mapping[str, Any]
NAMES: Final = ("settings", "extras", "scripts", "pythons")
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")


def find_breaks(old: Json, new: Json) -> list[str]:
    """Return what programs that were written for the old surface would miss in the new one."""
    breaks = [f"{name}: {each} is gone" for name in NAMES for each in old[name] if each not in new[name]]
    codes = new["exit codes"]
    breaks += [f"exit code {name} was {code}" for name, code in old["exit codes"].items() if codes.get(name) != code]
    breaks += _compare_operations(old, new)
    for name, each in old["python"].items():
        breaks += _compare_names(name, each, new["python"].get(name))
    for name, each in old["commands"].items():
        breaks += _compare_commands(f"command {name}", each, new["commands"].get(name))
    return breaks


# The API


def _compare_operations(old: Json, new: Json) -> Iterator[str]:
    for place, operation in old["operations"].items():
        present = new["operations"].get(place)
        if present is None:
            yield f"{place} is gone"
            continue
        if operation["operationId"] != present["operationId"]:
            yield f"{place} was {operation['operationId']}, as generated clients call it"
        yield from _compare_parameters(place, old, operation, new, present)
        yield from _compare_bodies(place, old, operation, new, present)
        yield from _compare_answers(place, old, operation, new, present)


def _compare_parameters(place: str, old: Json, before: Json, new: Json, after: Json) -> Iterator[str]:
    known = {(each["in"], each["name"]): each for each in before.get("parameters", ())}
    present = {(each["in"], each["name"]): each for each in after.get("parameters", ())}
    for where, each in known.items():
        if where not in present:
            yield f"{place}: the parameter {where[1]} is gone"
        else:
            yield from _Requests(old, new).compare(f"{place} {where[1]}", each["schema"], present[where]["schema"])
    for where, each in present.items():
        if each.get("required") and not known.get(where, {}).get("required"):
            yield f"{place}: the parameter {where[1]} is required"


def _compare_bodies(place: str, old: Json, before: Json, new: Json, after: Json) -> Iterator[str]:
    known = before.get("requestBody", {})
    present = after.get("requestBody", {})
    if present.get("required") and not known.get("required"):
        yield f"{place}: a body is required"
    yield from _compare_contents(f"{place}: the body", _Requests(old, new), known, present)


def _compare_answers(place: str, old: Json, before: Json, new: Json, after: Json) -> Iterator[str]:
    for status, answer in before["responses"].items():
        present = after["responses"].get(status)
        if present is None:
            yield f"{place}: the answer {status} is gone"
            continue
        for name in answer.get("headers", ()):
            if name not in present.get("headers", ()):
                yield f"{place}: the header {name} of {status} is gone"
        yield from _compare_contents(f"{place}: {status}", _Answers(old, new), answer, present)


def _compare_contents(place: str, schemas: _Schemas, old: Json, new: Json) -> Iterator[str]:
    for kind, content in old.get("content", {}).items():
        present = new.get("content", {}).get(kind)
        if present is None:
            yield f"{place} is no longer {kind}"
        elif "schema" in content:
            yield from schemas.compare(place, content["schema"], present.get("schema", {}))


class _Schemas:
    """Compares the schemas of two documents in one direction."""

    def __init__(self, old: Json, new: Json, seen: Iterable[tuple[str, str]] = ()) -> None:
        self._old = old
        self._new = new
        self._seen = set(seen)

    def compare(self, place: str, old: Json, new: Json) -> Iterator[str]:
        """Yield what the new schema breaks."""
        names = old.get("$ref", ""), new.get("$ref", "")
        if all(names) and names in self._seen:
            return
        self._seen.add(names)
        before = _resolve(self._old, old)
        after = _resolve(self._new, new)
        if "anyOf" in before or "anyOf" in after:
            yield from self._compare_choices(place, before.get("anyOf", [before]), after.get("anyOf", [after]))
            return
        yield from self._compare_kinds(place, before, after)
        yield from self._compare_fields(place, before, after)
        for part in ("items", "additionalProperties", "propertyNames"):
            if isinstance(before.get(part), Mapping) and isinstance(after.get(part), Mapping):
                yield from self.compare(f"{place}[]", before[part], after[part])

    def _compare_choices(self, place: str, old: list[Json], new: list[Json]) -> Iterator[str]:
        narrow, wide = self._order(old, new)
        for each in narrow:
            if all(self._differ(place, each, other) for other in wide):
                yield f"{place}: {each.get('$ref') or each.get('type') or each} is not one of its kinds"

    def _differ(self, place: str, narrow: Json, wide: Json) -> bool:
        old, new = self._order(narrow, wide)
        fresh = type(self)(self._old, self._new, self._seen)
        return any(True for _ in fresh.compare(place, old, new))

    def _order(self, old: Any, new: Any) -> tuple[Any, Any]:  # noqa: ANN401 - two of one kind
        """Return the side all of whose kinds the other side has to have, and that side. It is its own inverse."""
        raise NotImplementedError

    def _compare_kinds(self, place: str, old: Json, new: Json) -> Iterator[str]:
        raise NotImplementedError

    def _compare_fields(self, place: str, old: Json, new: Json) -> Iterator[str]:
        fields = new.get("properties", {})
        for name, each in old.get("properties", {}).items():
            if name not in fields:
                yield f"{place}: the field {name} is gone"
            else:
                yield from self.compare(f"{place}.{name}", each, fields[name])


class _Requests(_Schemas):
    """What was accepted is accepted, and means the same."""

    def _order(self, old: Any, new: Any) -> tuple[Any, Any]:  # noqa: ANN401 - two of one kind
        return old, new

    def _compare_kinds(self, place: str, old: Json, new: Json) -> Iterator[str]:
        if "type" in new and not _types(old) <= _types(new):
            yield f"{place}: it is no {old.get('type')} any more"
        if "enum" in new and not {*map(repr, old.get("enum", [object()]))} <= {*map(repr, new["enum"])}:
            yield f"{place}: a member of {old.get('enum', 'any value')} is gone"
        if old.get("default") != new.get("default"):
            yield f"{place}: its default was {old.get('default')!r}"
        if new.get("additionalProperties") is False and old.get("additionalProperties") is not False:
            yield f"{place}: further fields are refused"
        yield from self._compare_limits(place, old, new)

    def _compare_limits(self, place: str, old: Json, new: Json) -> Iterator[str]:
        for key in _UPPER:
            if key in new and new[key] < old.get(key, float("inf")):
                yield f"{place}: its {key} is lower"
        for key in _LOWER:
            if key in new and new[key] > old.get(key, float("-inf")):
                yield f"{place}: its {key} is higher"
        for key in ("pattern", "format"):
            if key in new and new[key] != old.get(key):
                yield f"{place}: its {key} is another one"

    def _compare_fields(self, place: str, old: Json, new: Json) -> Iterator[str]:
        yield from super()._compare_fields(place, old, new)
        for name in {*new.get("required", ())} - {*old.get("required", ())}:
            yield f"{place}: the field {name} is required"


class _Answers(_Schemas):
    """What was sent is sent, in the same form. Members and fields may come."""

    def _order(self, old: Any, new: Any) -> tuple[Any, Any]:  # noqa: ANN401 - two of one kind
        return new, old

    def _compare_kinds(self, place: str, old: Json, new: Json) -> Iterator[str]:
        if "type" in old and not _types(new) <= _types(old):
            yield f"{place}: it may be another kind than {old['type']}"
        if old.get("format") != new.get("format"):
            yield f"{place}: its format was {old.get('format')}"

    def _compare_fields(self, place: str, old: Json, new: Json) -> Iterator[str]:
        yield from super()._compare_fields(place, old, new)
        for name in {*old.get("required", ())} - {*new.get("required", ())}:
            if name in new.get("properties", {}):
                yield f"{place}: the field {name} may be missing"


def _resolve(document: Json, schema: Json) -> Json:
    while "$ref" in schema:
        schema = document["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _types(schema: Json) -> set[str]:
    kinds = schema.get("type", ("string", "integer", "number", "boolean", "array", "object", "null"))
    return {kinds} if isinstance(kinds, str) else {*kinds}


# Python


def _compare_names(name: str, old: Json, new: Json | None) -> Iterator[str]:
    if new is None or new["is"] != old["is"]:
        yield f"{name} is gone"
        return
    for base in old.get("bases", ()):
        if base not in new.get("bases", ()):
            yield f"{name} is no {base} any more"
    if "takes" in old:
        yield from compare_calls(name, old["takes"], new.get("takes", []))
    for member, each in old.get("members", {}).items():
        if member not in new["members"]:
            yield f"{name}.{member} is gone"
        elif isinstance(each, list) and isinstance(new["members"][member], list):
            yield from compare_calls(f"{name}.{member}", each, new["members"][member])
        elif each != new["members"][member]:
            yield f"{name}.{member} was {'an attribute' if each is None else each}"


def compare_calls(name: str, old: Iterable[list[Any]], new: Iterable[list[Any]]) -> Iterator[str]:
    """Yield the ways to call the old function in which the new one cannot be called, or does something else."""
    before = {each[0]: each for each in old}
    after = {each[0]: each for each in new}
    old_places = [each for each, kind, _ in before.values() if kind.startswith("POSITIONAL")]
    new_places = [each for each, kind, _ in after.values() if kind.startswith("POSITIONAL")]
    takes_any = any(kind == "VAR_KEYWORD" for _, kind, _ in after.values())
    for place, each in enumerate(old_places):
        if [each] != new_places[place : place + 1]:
            yield f"{name}({each}) is no longer parameter {place + 1}"
    for each, kind, default in before.values():
        present = after.get(each)
        if present is None:
            if not (takes_any and kind == "KEYWORD_ONLY"):
                yield f"{name}({each}) is gone"
            continue
        if kind != "POSITIONAL_ONLY" and present[1] == "POSITIONAL_ONLY":
            yield f"{name}({each}) cannot be named any more"
        if default is not None and present[2] != default:
            yield f"{name}({each}) was {default} if it is left out"
    for each, _, default in after.values():
        if default is None and each not in before:
            yield f"{name}({each}) is required"


# Commands


def _compare_commands(name: str, old: Json, new: Json | None) -> Iterator[str]:
    if new is None:
        yield f"{name} is gone"
        return
    for option, each in old["options"].items():
        if option not in new["options"]:
            yield f"{name} {option} is gone"
        else:
            yield from _compare_words(f"{name} {option}", each, new["options"][option])
    for option, each in new["options"].items():
        if each["required"] and option not in old["options"]:
            yield f"{name} {option} is required"
    for place, each in enumerate(new["arguments"]):
        known = old["arguments"][place : place + 1]
        if known:
            yield from _compare_words(f"{name} {each['name']}", known[0], each)
        elif each["required"]:
            yield f"{name} {each['name']} is required"
    if len(new["arguments"]) < len(old["arguments"]):
        yield f"{name} takes fewer arguments"


def _compare_words(name: str, old: Json, new: Json) -> Iterator[str]:
    if new["required"] and not old["required"]:
        yield f"{name} is required"
    if (old.get("is_flag"), old["nargs"]) != (new.get("is_flag"), new["nargs"]) or old["multiple"] > new["multiple"]:
        yield f"{name} takes other words"
    if "choices" in new and not {*old.get("choices", ["any"])} <= {*new["choices"]}:
        yield f"{name} has fewer choices"
