"""A payload as the texts of a form's fields, and the payload that such texts give."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cloudsched.dashboard.forms.payload_schema import (
    AS_JSON,
    CHOICE,
    GROUP,
    INTEGER,
    JSON_TEXT,
    LINES,
    LONG,
    NUMBER,
    OTHERS,
    PLAIN,
    TEXT,
    YES_NO,
    PayloadField,
    write_option,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

ABSENT: Final = object()


def write_texts(slot: PayloadField, value: object) -> dict[str, str]:
    """Return the texts of the fields that show a value, or none for `ABSENT`."""
    if slot.kind == GROUP and isinstance(value, dict):
        texts: dict[str, str] = {}
        for part in slot.slots:
            texts |= write_texts(part, value.get(part.key, ABSENT))
        others = {key: each for key, each in value.items() if key not in {part.key for part in slot.slots}}
        if others:
            texts[slot.name + OTHERS] = _write_json(others)
        return texts

    if value is ABSENT or (value is None and not slot.is_required and slot.default is None):
        return {}
    if slot.kind == JSON_TEXT:
        return {slot.name: _write_json(value)}
    plain = _write_plain(slot, value)
    if plain is None:
        return {slot.name + AS_JSON: _write_json(value)}
    return {slot.name: plain}


def _write_plain(slot: PayloadField, value: object) -> str | None:
    """Return a value as the text of its slot. None if the slot cannot hold it and give it back unchanged."""
    if slot.kind == LINES and slot.item is not None and isinstance(value, list):
        return _write_lines(slot.item, value)
    if slot.kind not in PLAIN:
        return None
    text = write_option(value) if slot.kind == CHOICE or isinstance(value, str) else json.dumps(value)
    if "\r" in text:  # browsers and forms know one line break only
        return None
    errors: dict[str, str] = {}
    found = _read_plain(slot, text, errors)
    if errors or found != value or type(found) is not type(value):
        return None
    return text


def _write_lines(item: PayloadField, values: list[object]) -> str | None:
    """Return the elements of a list, one a line. None if one of them would not be one line."""
    lines = []
    for value in values:
        line = _write_plain(item, value)
        if not line or line.strip() != line or len(line.splitlines()) > 1:
            return None
        lines.append(line)
    return "\n".join(lines)


def read_value(slot: PayloadField, texts: Mapping[str, str], errors: dict[str, str]) -> Any:  # noqa: ANN401 - any JSON
    """Return the value that the fields give, or `ABSENT`. Problems go to `errors`, by the field's name."""
    if slot.name + AS_JSON in texts:
        return _read_json(slot.name + AS_JSON, texts[slot.name + AS_JSON], errors)
    if slot.kind == GROUP:
        return _read_group(slot, texts, errors)
    text = texts.get(slot.name, "").replace("\r\n", "\n")
    if slot.kind == JSON_TEXT:
        return _read_json(slot.name, text, errors)
    if not text.strip() and not (slot.kind in {TEXT, LONG} and slot.name in texts and slot.is_required):
        return [] if slot.is_required and slot.kind == LINES else ABSENT

    found: Any
    if slot.kind == LINES and slot.item is not None:
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        found = [_read_plain(slot.item, line, errors, slot.name) for line in lines]
    else:
        found = _read_plain(slot, text, errors)
    if slot.name in errors:
        return ABSENT
    return found


def _read_group(slot: PayloadField, texts: Mapping[str, str], errors: dict[str, str]) -> Any:  # noqa: ANN401 - any JSON
    others_name = slot.name + OTHERS
    others = _read_json(others_name, texts.get(others_name, ""), errors)
    found: dict[str, Any] = {}
    if isinstance(others, dict):
        found = dict(others)
    elif others is not ABSENT:
        errors[others_name] = "is no JSON object"
    has_text = any(name.startswith(f"{slot.name}.") and text.strip() for name, text in texts.items())
    if not slot.is_required and not has_text:  # it may be omitted, and nothing below it was filled in
        return found or ABSENT
    for part in slot.slots:
        value = read_value(part, texts, errors)
        if value is not ABSENT:
            found[part.key] = value
    return found


def _read_plain(slot: PayloadField, text: str, errors: dict[str, str], name: str = "") -> Any:  # noqa: ANN401 - any JSON
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


def _read_number(slot: PayloadField, text: str, errors: dict[str, str], name: str) -> int | float | None:
    number = None
    with suppress(ValueError, RecursionError):
        if text.isascii():
            number = json.loads(text)
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
    except ValueError as error:
        errors[name] = f"is not JSON: {error}"
    except RecursionError:
        errors[name] = "is nested too deeply"
    return ABSENT


def _write_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
