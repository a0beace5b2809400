"""A handler's JSON schema as the slots of a form.

The type of each part determines its slot: text, numbers, yes or no, choices, dates, objects within objects, and lists
of such plain values, one a line. Anything else is a slot for JSON text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final = "text"
LONG: Final = "long"
NUMBER: Final = "number"
INTEGER: Final = "integer"
YES_NO: Final = "yes or no"
CHOICE: Final = "choice"
DATE: Final = "date"
TIME: Final = "time"
LINES: Final = "lines"
GROUP: Final = "group"
JSON_TEXT: Final = "JSON"
PLAIN: Final = frozenset({TEXT, LONG, NUMBER, INTEGER, YES_NO, CHOICE, DATE, TIME})
AS_JSON: Final = ":json"
"""The end of the name of a field that has JSON text although its slot could have a plainer value."""
OTHERS: Final = ".*"
"""The end of the name of the field for an object's fields beside its parts."""
_LONG_TEXT: Final = 200
_MAX_DEPTH: Final = 4
_MAX_SLOTS: Final = 200
_MAX_REFERENCES: Final = 20
_FORMATS: Final = {"date": DATE, "time": TIME}
_LIMITS: Final = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minItems": "at least {} of them",
    "maxItems": "at most {} of them",
    "pattern": "matching {}",
}
_KIND_WORDS: Final = {LONG: "text", CHOICE: "", YES_NO: ""}
"""The words for the kinds that are not called so, or whose field says what it takes."""
_KINDS: Final = {"integer": INTEGER, "number": NUMBER, "boolean": YES_NO, "array": LINES}
_FORMAT_WORDS: Final = {
    "date-time": "an instant with its offset, such as 2027-03-28T09:00:00+02:00",
    "duration": "a duration, such as PT15M",
    "email": "an e-mail address",
    "uri": "an address that begins with https://",
}


@dataclass(frozen=True, slots=True)
class PayloadField:
    """One part of a payload."""

    name: str
    """Its path, such as ``payload.customer.name``: the name of its field in the form."""
    key: str
    label: str
    kind: str
    hint: str = ""
    is_required: bool = False
    options: tuple[Any, ...] = ()
    slots: tuple[PayloadField, ...] = ()
    """The parts of an object."""
    item: PayloadField | None = None
    """The element of a list."""
    takes_more: bool = False
    """True if an object may have fields beside its parts."""
    default: Any = None


def read_schema(schema: Schema | None, name: str = "payload") -> PayloadField:
    """Return the slots of a payload. If no form can ask for it, return one slot for JSON."""
    if schema:
        found = _SchemaReader(schema).read(schema, name, name, depth=0, seen=(), is_required=True)
        if found.kind == GROUP:
            return found
    return PayloadField(name, name, "Payload", JSON_TEXT, "a JSON object", is_required=True)


class _SchemaReader:
    """Reads one schema document. A schema may refer to its definitions, and to itself."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._count = 0

    def read(
        self, schema: Schema, name: str, key: str, *, depth: int, seen: tuple[str, ...], is_required: bool
    ) -> PayloadField:
        self._count += 1
        about = schema
        schema, seen = self._resolve(schema, seen)
        label = str(about.get("title") or schema.get("title") or key.replace("_", " ").capitalize())
        description = str(about.get("description") or schema.get("description") or "")
        slot = PayloadField(name, key, label, JSON_TEXT, "", is_required=is_required, default=about.get("default"))

        kind, options = _find_kind(schema)
        is_deep = depth >= _MAX_DEPTH or self._count > _MAX_SLOTS
        if kind == GROUP and not is_deep and len(set(seen)) == len(seen):
            return self._read_group(schema, replace(slot, kind=GROUP, hint=description), depth, seen)
        if kind == LINES and isinstance(schema.get("items"), dict):
            item = self.read(schema["items"], name, key, depth=_MAX_DEPTH, seen=seen, is_required=True)
            if item.kind in PLAIN - {LONG}:
                hint = _join(description, f"one a line, each {item.hint or item.kind}", *_limits(schema))
                return replace(slot, kind=LINES, hint=hint, item=item)
        if kind in PLAIN:
            words = _KIND_WORDS.get(kind, kind)
            return replace(slot, kind=kind, hint=_join(description, words, *_limits(schema)), options=options)
        return replace(slot, hint=_join(description, "JSON"))

    def _read_group(self, schema: Schema, group: PayloadField, depth: int, seen: tuple[str, ...]) -> PayloadField:
        required = schema.get("required", ())
        slots = tuple(
            self.read(part, f"{group.name}.{key}", key, depth=depth + 1, seen=seen, is_required=key in required)
            for key, part in schema["properties"].items()
            if isinstance(part, dict)
        )
        takes_more = bool(schema.get("additionalProperties")) or bool(schema.get("patternProperties"))
        return replace(group, slots=slots, takes_more=takes_more)

    def _resolve(self, schema: Schema, seen: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """Return a schema with its references followed and null dropped, and the references so far."""
        for _ in range(_MAX_REFERENCES):
            if isinstance(reference := schema.get("$ref"), str):
                seen = (*seen, reference)
                schema = self._find(reference)
                continue
            parts = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
            if not isinstance(parts, list):
                break
            others = [part for part in parts if isinstance(part, dict) and part.get("type") != "null"]
            if len(others) != 1:
                return {}, seen
            schema = others[0]
        return schema, seen

    def _find(self, reference: str) -> Schema:
        found: Any = self._root
        for part in reference.removeprefix("#/").split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or not isinstance(found.get(name), dict):
                return {}
            found = found[name]
        return dict(found)


def _find_kind(schema: Schema) -> tuple[str, tuple[Any, ...]]:
    if "const" in schema:
        return CHOICE, (schema["const"],)
    if isinstance(schema.get("enum"), list):
        return CHOICE, tuple(schema["enum"])
    type_ = schema.get("type")
    if type_ == "string":
        length = LONG if schema.get("maxLength", 0) > _LONG_TEXT else TEXT
        return _FORMATS.get(str(schema.get("format")), length), ()
    if type_ == "object" and isinstance(schema.get("properties"), dict) and schema["properties"]:
        return GROUP, ()
    return _KINDS.get(str(type_), JSON_TEXT), ()


def _limits(schema: Schema) -> list[str]:
    limits = [text.format(schema[name]) for name, text in _LIMITS.items() if name in schema]
    return [*limits, _FORMAT_WORDS.get(str(schema.get("format")), "")]


def _join(description: str, kind: str, *more: str) -> str:
    limits = ", ".join(each for each in (kind, *more) if each)
    sentence = description.strip()
    if sentence and limits:
        return f"{sentence.rstrip('.')}. {limits[0].upper()}{limits[1:]}."
    return sentence or limits


def write_option(value: object) -> str:
    """Return a choice as the form names it: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
