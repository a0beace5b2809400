"""The fields of a form as templates show them, and what becomes of a form that was sent."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.forms.payload_schema import (
    AS_JSON,
    CHOICE,
    DATE,
    GROUP,
    INTEGER,
    JSON_TEXT,
    LINES,
    LONG,
    NUMBER,
    OTHERS,
    TIME,
    YES_NO,
    PayloadField,
    write_option,
)
from cloudsched.dashboard.words import join_phrases, only_if
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cloudsched.dashboard.api import Json


@dataclass(frozen=True, slots=True)
class Submitted:
    """The form was carried out."""

    path: str
    """The path to go to, below the mount."""
    said: str
    """The message that is shown there: a name in `routes.DONE`."""

    @property
    def address(self) -> str:
        """Return the path with the message's name in it, and with the message's place, where the browser scrolls."""
        separator = "&" if "?" in self.path else "?"
        return f"{self.path}{separator}done={self.said}#said"


@dataclass(frozen=True, slots=True)
class Again:
    """The form is shown again, with the typed texts."""

    answer: Json
    """The answer from which the view is built."""
    status: int = 200
    """The status of the page: 200 for a check, or that of the API's refusal."""


_LONGEST_KEY: Final = 64


def read_key(texts: Mapping[str, str]) -> str:
    """Return the form's key, by which the API knows a second request with the same form. Empty if it is none."""
    key = texts.get("key", "")
    return only_if(key.isascii() and key.isalnum() and len(key) <= _LONGEST_KEY, key)


_TYPES: Final = {DATE: "date", TIME: "time"}
_MODES: Final = {INTEGER: "numeric", NUMBER: "decimal"}
_AREAS: Final = {LONG: 3, LINES: 3, JSON_TEXT: 4}
"""The kinds of slots whose fields have several rows, and how many."""
_CONTROLS: Final = {CHOICE: "select", YES_NO: "select", LONG: "area", LINES: "area"}
_MOST_ROWS: Final = 20


@dataclass(frozen=True, slots=True)
class SelectOption:
    """A choice."""

    value: str
    label: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Field:
    """A field, or a group of them."""

    name: str
    id: str
    label: str
    control: str
    """``input``, ``area``, ``select``, ``checks`` or ``group``."""
    text: str = ""
    path: str = ""
    """Its path in the task, which is shown beside the label of a field of the payload."""
    hint: str = ""
    error: str = ""
    type: str = "text"
    mode: str = ""
    rows: int = 0
    is_code: bool = False
    options: tuple[SelectOption, ...] = ()
    fields: tuple[Field, ...] = ()
    suggestions: tuple[str, ...] = ()


def make_fields(slot: PayloadField, texts: Mapping[str, str], errors: Mapping[str, str]) -> tuple[Field, ...]:
    """Return the fields of a payload's slot."""
    if slot.name + AS_JSON in texts:
        return (_make_json(slot.name + AS_JSON, slot.label, slot.name, texts, errors, "JSON"),)
    if slot.kind == GROUP:
        return (_make_group(slot, texts, errors),)
    if slot.kind == JSON_TEXT:
        return (_make_json(slot.name, slot.label, slot.name, texts, errors, _write_hint(slot)),)
    text = texts.get(slot.name, "")
    error = errors.get(slot.name, "")

    field = Field(
        slot.name,
        field_id(slot.name),
        slot.label,
        _CONTROLS.get(slot.kind, "input"),
        text,
        slot.name,
        _write_hint(slot),
        error,
        mode=_MODES.get(slot.kind, ""),
        rows=_AREAS.get(slot.kind, 0),
        options=choose(_list_choices(slot), text),
    )
    if not error:  # a browser would drop a text that is no date
        field = replace(field, type=_TYPES.get(slot.kind, "text"))
    return (field,)


def choose(pairs: Iterable[tuple[str, str]], text: str) -> tuple[SelectOption, ...]:
    """Return choices, if there are any. A text that is not among them is added."""
    known = list(pairs)
    if known and text and text not in {value for value, _ in known}:
        known.append((text, text))
    return tuple(SelectOption(value, label, value == text) for value, label in known)


def _list_choices(slot: PayloadField) -> Iterator[tuple[str, str]]:
    """Yield the values of a slot with their labels, and first none. Nothing if it takes any text."""
    if slot.kind not in {CHOICE, YES_NO}:
        return
    yield "", "choose" if slot.is_required else "not set"
    if slot.kind == YES_NO:
        yield from (("true", "yes"), ("false", "no"))
    for each in map(write_option, slot.options):
        yield each, each


def _make_group(slot: PayloadField, texts: Mapping[str, str], errors: Mapping[str, str]) -> Field:
    fields = tuple(field for part in slot.slots for field in make_fields(part, texts, errors))
    others = slot.name + OTHERS
    if slot.takes_more or others in texts:
        label = f"Other fields of {slot.label[0].lower()}{slot.label[1:]}"
        fields = (*fields, _make_json(others, label, others, texts, errors, "a JSON object"))
    hint = slot.hint
    if not slot.is_required:
        hint = f"{hint} May be left out.".strip()
    return Field(slot.name, field_id(slot.name), slot.label, "group", path=slot.name, hint=hint, fields=fields)


def _make_json(
    name: str, label: str, path: str, texts: Mapping[str, str], errors: Mapping[str, str], hint: str
) -> Field:
    text = texts.get(name, "")
    error = errors.get(name, "")
    rows = min(_MOST_ROWS, max(_AREAS[JSON_TEXT], text.count("\n") + 2))
    return Field(name, field_id(name), label, "area", text, path, hint, error, rows=rows, is_code=True)


def _write_hint(slot: PayloadField) -> str:
    if slot.is_required:
        return slot.hint
    if slot.default in (None, "", [], {}):
        left = "optional"
    elif slot.kind == YES_NO:
        left = "yes if not set" if slot.default else "no if not set"
    else:
        left = f"{json.dumps(slot.default, ensure_ascii=False)} if empty"
    return join_phrases(slot.hint, left, separator="; ")


def field_id(name: str) -> str:
    """Return the id of the field of that name for stylesheets: letters and digits, with other characters as numbers."""
    return "f-" + "".join(letter if letter.isalnum() and letter.isascii() else f"-{ord(letter):x}-" for letter in name)


def list_names(fields: Iterable[Field]) -> list[str]:
    """Return the names of all fields, also of those in groups."""
    return [name for field in fields for name in list_names(field.fields) or [field.name]]


def read_json(text: str) -> object:
    """Return the JSON that was typed. Raises InvalidInput."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput("payload", f"is not JSON: {error}", 'Write JSON, such as {"by": "grace"}.') from error
