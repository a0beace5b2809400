"""What a handler's JSON schema asks for, as the slots of a form.

A plain rule says how each part is asked for: text, numbers, yes or no, choices, dates, objects within objects, and
lists of such plain values, one a line. Anything else is a slot for JSON text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

Schema = dict[str, Any]

TEXT, LONG, NUMBER, INTEGER, YES_NO, CHOICE = "text", "long", "number", "integer", "yes or no", "choice"
DATE, TIME, LINES, GROUP, JSON_TEXT = "date", "time", "lines", "group", "JSON"
PLAIN: Final = frozenset({TEXT, LONG, NUMBER, INTEGER, YES_NO, CHOICE, DATE, TIME})
_LONG_TEXT, _MAX_DEPTH, _MAX_SLOTS = 200, 4, 200
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


@dataclass(frozen=True, slots=True)
class Slot:
    """One part of a payload."""

    name: str
    """Its path, such as ``payload.customer.name``: the name of its field in the form."""
    key: str
    label: str
    kind: str
    hint: str = ""
    is_required: bool = False
    options: tuple[Any, ...] = ()
    slots: tuple[Slot, ...] = ()
    """The parts of an object."""
    item: Slot | None = None
    """What a list consists of."""
    takes_more: bool = False
    """Whether an object may have fields beside its parts."""
    default: Any = None


def read_schema(schema: Schema | None, name: str = "payload") -> Slot:
    """Return the slots of a payload; one slot for JSON if no form can ask for it."""
    if not schema:
        return Slot(name, name, "Payload", JSON_TEXT, "a JSON object", is_required=True)
    found = _Reader(schema).read(schema, name, name, depth=0, seen=(), is_required=True)
    return found if found.kind == GROUP else Slot(name, name, "Payload", JSON_TEXT, "a JSON object", is_required=True)


class _Reader:
    """Reads one schema document; a schema may refer to its definitions, and to itself."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._count = 0

    def read(
        self, schema: Schema, name: str, key: str, *, depth: int, seen: tuple[str, ...], is_required: bool
    ) -> Slot:
        self._count += 1
        about = schema
        schema, seen = self._resolve(schema, seen)
        label = str(about.get("title") or schema.get("title") or key.replace("_", " ").capitalize())
        default = about.get("default")
        common: dict[str, Any] = {"is_required": is_required, "default": default}
        description = str(about.get("description") or schema.get("description") or "")
        kind, options = _find_kind(schema)
        is_deep = depth >= _MAX_DEPTH or self._count > _MAX_SLOTS
        if kind == GROUP and not is_deep and len(set(seen)) == len(seen):
            return self._read_group(schema, Slot(name, key, label, GROUP, description, **common), depth, seen)
        if kind == LINES and isinstance(schema.get("items"), dict):
            item = self.read(schema["items"], name, key, depth=_MAX_DEPTH, seen=seen, is_required=True)
            if item.kind in PLAIN - {LONG}:
                hint = _join(description, f"one a line, each {item.hint or item.kind}", *_limits(schema))
                return Slot(name, key, label, LINES, hint, item=item, **common)
        if kind in PLAIN:
            words = {TEXT: "text", LONG: "text", CHOICE: ""}.get(kind, kind)
            hint = _join(description, words if kind != YES_NO else "", *_limits(schema), _describe_format(schema))
            return Slot(name, key, label, kind, hint, options=options, **common)
        return Slot(name, key, label, JSON_TEXT, _join(description, "JSON"), **common)

    def _read_group(self, schema: Schema, group: Slot, depth: int, seen: tuple[str, ...]) -> Slot:
        required = schema.get("required", ())
        slots = tuple(
            self.read(part, f"{group.name}.{key}", key, depth=depth + 1, seen=seen, is_required=key in required)
            for key, part in schema["properties"].items()
            if isinstance(part, dict)
        )
        takes_more = bool(schema.get("additionalProperties")) or bool(schema.get("patternProperties"))
        return Slot(
            group.name,
            group.key,
            group.label,
            GROUP,
            group.hint,
            group.is_required,
            slots=slots,
            takes_more=takes_more,
            default=group.default,
        )

    def _resolve(self, schema: Schema, seen: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """Follow references, and take what may be null as what it is otherwise; remember the way."""
        for _ in range(20):
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
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}


def _find_kind(schema: Schema) -> tuple[str, tuple[Any, ...]]:
    if "const" in schema:
        return CHOICE, (schema["const"],)
    if isinstance(schema.get("enum"), list):
        return CHOICE, tuple(schema["enum"])
    type_ = schema.get("type")
    if type_ == "string":
        is_long = schema.get("maxLength", 0) > _LONG_TEXT
        return _FORMATS.get(str(schema.get("format")), LONG if is_long else TEXT), ()
    if type_ == "object" and isinstance(schema.get("properties"), dict) and schema["properties"]:
        return GROUP, ()
    kinds = {"integer": INTEGER, "number": NUMBER, "boolean": YES_NO, "array": LINES}
    return kinds.get(str(type_), JSON_TEXT), ()


def _describe_format(schema: Schema) -> str:
    formats = {
        "date-time": "an instant with its offset, such as 2027-03-28T09:00:00+02:00",
        "duration": "a duration, such as PT15M",
        "email": "an e-mail address",
        "uri": "an address that begins with https://",
    }
    return formats.get(str(schema.get("format")), "")


def _limits(schema: Schema) -> list[str]:
    return [text.format(schema[name]) for name, text in _LIMITS.items() if name in schema]


def _join(description: str, kind: str, *more: str) -> str:
    """Return a hint: what it is, and what it may be."""
    limits = ", ".join(each for each in (kind, *more) if each)
    sentence = description.strip()
    if sentence and limits:
        return f"{sentence.rstrip('.')}. {limits[0].upper()}{limits[1:]}."
    return sentence or limits


def write_option(value: object) -> str:
    """Return a choice as the form names it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
