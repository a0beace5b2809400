"""A payload as the texts of a form's fields, and back. What was typed is never lost: a refusal keeps the texts."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

from cloudsched.dashboard.payload_schema import (
    CHOICE,
    GROUP,
    INTEGER,
    JSON_TEXT,
    LINES,
    NUMBER,
    PLAIN,
    TEXT,
    YES_NO,
    Slot,
    write_option,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

AS_JSON: Final = ":json"
"""Ends the name of a field that has JSON text although its slot could have had something plainer."""
OTHERS: Final = ".*"
"""Ends the name of the field with what an object has beside its parts."""
ABSENT: Final = object()


def write_texts(slot: Slot, value: object) -> dict[str, str]:
    """Return the texts of the fields that show a value; `ABSENT` for none."""
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
    """Return a value as the text of its slot; None if the slot cannot have it and give it back unchanged."""
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
    """Return the value that the fields give, or `ABSENT`; what is wrong goes to `errors`, by the field's name."""
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
        found = [_read_plain(slot.item, line.strip(), errors, slot.name) for line in text.split("\n") if line.strip()]
        return ABSENT if slot.name in errors else found
    found = _read_plain(slot, text, errors)
    return ABSENT if slot.name in errors else found


def _read_group(slot: Slot, texts: Mapping[str, str], errors: dict[str, str]) -> Any:  # noqa: ANN401 - any JSON
    others_name = slot.name + OTHERS
    others = _read_json(others_name, texts.get(others_name, ""), errors)
    if others is not ABSENT and not isinstance(others, dict):
        errors[others_name] = "is no JSON object"
    found = {} if not isinstance(others, dict) else dict(others)
    wanted = slot.is_required or _has_text(slot, texts)
    if not wanted:
        return found or ABSENT
    for part in slot.slots:
        value = read_value(part, texts, errors)
        if value is not ABSENT:
            found[part.key] = value
    return found


def _has_text(slot: Slot, texts: Mapping[str, str]) -> bool:
    """Return whether anything was filled in below an object that may be left out."""
    return any(name.startswith(f"{slot.name}.") and text.strip() for name, text in texts.items())


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
