"""A handler's JSON schema as the slots of a form, and a payload as the texts in them.

The type of each part determines its slot: text, numbers, yes or no, choices, dates, objects within objects, and lists
of such plain values, one a line. Anything else is a slot for JSON text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
_FORMAT_WORDS: Final = {
    "date-time": "an instant with its offset, such as 2027-03-28T09:00:00+02:00",
    "duration": "a duration, such as PT15M",
    "email": "an e-mail address",
    "uri": "an address that begins with https://",
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
    """The element of a list."""
    takes_more: bool = False
    """True if an object may have fields beside its parts."""
    default: Any = None


def read_schema(schema: Schema | None, name: str = "payload") -> Slot:
    """Return the slots of a payload. If no form can ask for it, return one slot for JSON."""
    if not schema:
        return Slot(name, name, "Payload", JSON_TEXT, "a JSON object", is_required=True)
    found = _Reader(schema).read(schema, name, name, depth=0, seen=(), is_required=True)
    return found if found.kind == GROUP else Slot(name, name, "Payload", JSON_TEXT, "a JSON object", is_required=True)


class _Reader:
    """Reads one schema document. A schema may refer to its definitions, and to itself."""

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
            hint = _join(description, words if kind != YES_NO else "", *_limits(schema))
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
        return replace(group, slots=slots, takes_more=takes_more)

    def _resolve(self, schema: Schema, seen: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """Return a schema with its references followed and null dropped, and the references so far."""
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
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


AS_JSON: Final = ":json"
"""The end of the name of a field that has JSON text although its slot could have a plainer value."""
OTHERS: Final = ".*"
"""The end of the name of the field for an object's fields beside its parts."""
ABSENT: Final = object()


def write_texts(slot: Slot, value: object) -> dict[str, str]:
    """Return the texts of the fields that show a value, or none for `ABSENT`."""
    if slot.kind == GROUP and isinstance(value, dict):
        texts: dict[str, str] = {}
        for part in slot.slots:
            texts |= write_texts(part, value.get(part.key, ABSENT))
        others = {key: each for key, each in value.items() if key not in {part.key for part in slot.slots}}
        return {**texts, **({slot.name + OTHERS: _write_json(others)} if others else {})}
    if value is ABSENT or (value is None and not slot.is_required and slot.default is None):
        return {}
    if slot.kind == JSON_TEXT:
        return {slot.name: _write_json(value)}
    plain = _write_plain(slot, value)
    return {slot.name + AS_JSON: _write_json(value)} if plain is None else {slot.name: plain}


def _write_plain(slot: Slot, value: object) -> str | None:
    """Return a value as the text of its slot. None if the slot cannot hold it and give it back unchanged."""
    if slot.kind == LINES and slot.item is not None and isinstance(value, list):
        lines = [_write_plain(slot.item, each) for each in value]
        fits = all(line is not None and line.strip() == line != "" and len(line.splitlines()) == 1 for line in lines)
        return "\n".join(line for line in lines if line is not None) if fits else None
    if slot.kind not in PLAIN:
        return None
    text = write_option(value) if slot.kind == CHOICE or isinstance(value, str) else json.dumps(value)
    if "\r" in text:  # browsers and forms know one line break only
        return None
    errors: dict[str, str] = {}
    is_same = _read_plain(slot, text, errors)
    return text if not errors and is_same == value and type(is_same) is type(value) else None


def read_value(slot: Slot, texts: Mapping[str, str], errors: dict[str, str]) -> Any:  # noqa: ANN401 - any JSON
    """Return the value that the fields give, or `ABSENT`. Problems go to `errors`, by the field's name."""
    if slot.name + AS_JSON in texts:
        return _read_json(slot.name + AS_JSON, texts[slot.name + AS_JSON], errors)
    if slot.kind == GROUP:
        return _read_group(slot, texts, errors)
    text = texts.get(slot.name, "").replace("\r\n", "\n")
    if slot.kind == JSON_TEXT:
        return _read_json(slot.name, text, errors)
    if not text.strip() and not (slot.is_required and slot.kind in {TEXT, "long"} and slot.name in texts):
        return [] if slot.is_required and slot.kind == LINES else ABSENT
    if slot.kind == LINES and slot.item is not None:
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        found: Any = [_read_plain(slot.item, line, errors, slot.name) for line in lines]
    else:
        found = _read_plain(slot, text, errors)
    return ABSENT if slot.name in errors else found


def _read_group(slot: Slot, texts: Mapping[str, str], errors: dict[str, str]) -> Any:  # noqa: ANN401 - any JSON
    others_name = slot.name + OTHERS
    others = _read_json(others_name, texts.get(others_name, ""), errors)
    if others is not ABSENT and not isinstance(others, dict):
        errors[others_name] = "is no JSON object"
    found = {} if not isinstance(others, dict) else dict(others)
    has_text = any(name.startswith(f"{slot.name}.") and text.strip() for name, text in texts.items())
    if not slot.is_required and not has_text:  # it may be left out, and nothing below it was filled in
        return found or ABSENT
    for part in slot.slots:
        value = read_value(part, texts, errors)
        if value is not ABSENT:
            found[part.key] = value
    return found


def _read_plain(slot: Slot, text: str, errors: dict[str, str], name: str = "") -> Any:  # noqa: ANN401 - any JSON
    name = name or slot.name
    if slot.kind == CHOICE:
        for option in slot.options:
            if write_option(option) == text:
                return option
        errors[name] = f"{text!r} is none of {', '.join(map(write_option, slot.options))}"
    elif slot.kind == YES_NO:
        if text in {"true", "false"}:
            return text == "true"
        errors[name] = f"{text!r} is neither true nor false"
    elif slot.kind in {INTEGER, NUMBER}:
        return _read_number(slot, text.strip(), errors, name)
    return text


def _read_number(slot: Slot, text: str, errors: dict[str, str], name: str) -> int | float | None:
    try:
        number = json.loads(text) if text.isascii() else None
    except (ValueError, RecursionError):
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        errors[name] = f"{text!r} is no number"
        return None
    if slot.kind == INTEGER and not isinstance(number, int):
        errors[name] = f"{text} is no whole number"
    return number


def _read_json(name: str, text: str, errors: dict[str, str]) -> Any:  # noqa: ANN401 - any JSON
    if not text.strip():
        return ABSENT
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        errors[name] = f"is not JSON: {error}" if isinstance(error, ValueError) else "is nested too deeply"
        return ABSENT


def _write_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
