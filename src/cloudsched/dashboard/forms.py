"""Forms: the fields as templates show them, and the results of a form that was sent.

A field has a name, texts, hints, and its errors. A form is carried out, or shown again with its errors in words for
people.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.payload_schema import (
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
    Slot,
    write_option,
)
from cloudsched.errors import (
    CloudschedError,
    Forbidden,
    InvalidInput,
    NotAllowed,
    NotFound,
    PreconditionFailed,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
)

if TYPE_CHECKING:
    from cloudsched.dashboard.visit import Json

_THEN: Final[tuple[tuple[type[CloudschedError], int, str], ...]] = (
    (Unauthenticated, 401, "The key is missing or no longer valid: start with --key, or CLOUDSCHED_KEY."),
    (Forbidden, 403, "You may look, and not act."),
    (NotFound, 404, "It may have been deleted meanwhile, or it is not yours."),
    (NotAllowed, 409, "Nothing was changed; this is its present state."),
    (
        PreconditionFailed,
        412,
        "Somebody has changed this task since you opened it; this is its present state.",
    ),
    (InvalidInput, 400, ""),
    (QuotaExceeded, 429, "Too much at once: try again a little later."),
    (Unavailable, 503, "Nothing is lost: dispatches wait. Reload the page, or leave it open: it asks again by itself."),
)


def describe_problem(error: CloudschedError) -> tuple[int, str, str]:
    """Return an error's HTTP status, its problem in the API's words, and the consequence."""
    if isinstance(error, QuotaExceeded) and error.retry_after:
        return 429, str(error), f"Try again in {error.retry_after} s."
    if isinstance(error, Unavailable) and ": 500: " in str(error):
        return (
            502,
            str(error),
            "The other views work. If this names a damaged document, docs/guarantees.md says what to do.",
        )
    for kind, status, then in _THEN:
        if isinstance(error, kind):
            return status, str(error), then
    return 500, str(error), ""


@dataclass(frozen=True, slots=True)
class Done:
    """The form was carried out."""

    path: str
    """The path to go to, below the mount."""
    said: str
    """The message that is shown there: a name in `routes.DONE`."""


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
    return key if key.isascii() and key.isalnum() and len(key) <= _LONGEST_KEY else ""


_TYPES: Final = {DATE: "date", TIME: "time"}
_MODES: Final = {INTEGER: "numeric", NUMBER: "decimal"}
_AREAS: Final = {LONG: 3, LINES: 3, JSON_TEXT: 4}


@dataclass(frozen=True, slots=True)
class Option:
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
    options: tuple[Option, ...] = ()
    fields: tuple[Field, ...] = ()
    suggestions: tuple[str, ...] = ()


def make_fields(slot: Slot, texts: Mapping[str, str], errors: Mapping[str, str]) -> tuple[Field, ...]:
    """Return the fields of a payload's slot."""
    if slot.name + AS_JSON in texts:
        return (_make_json(slot.name + AS_JSON, slot.label, slot.name, texts, errors, "JSON"),)
    if slot.kind == GROUP:
        return (_make_group(slot, texts, errors),)
    if slot.kind == JSON_TEXT:
        return (_make_json(slot.name, slot.label, slot.name, texts, errors, _write_hint(slot)),)
    text, error = texts.get(slot.name, ""), errors.get(slot.name, "")
    is_choice = slot.kind in {CHOICE, YES_NO}
    field = Field(
        slot.name,
        field_id(slot.name),
        slot.label,
        "select" if is_choice else "area" if slot.kind in _AREAS else "input",
        text,
        slot.name,
        _write_hint(slot),
        error,
        type="text" if error else _TYPES.get(slot.kind, "text"),  # a browser would drop a text that is no date
        mode=_MODES.get(slot.kind, ""),
        rows=_AREAS.get(slot.kind, 0),
        options=_choices(slot, text) if is_choice else (),
    )
    return (field,)


def choose(pairs: Iterable[tuple[str, str]], text: str) -> tuple[Option, ...]:
    """Return choices. A text that is not among them is added."""
    known = list(pairs)
    if text and text not in {value for value, _ in known}:
        known.append((text, text))
    return tuple(Option(value, label, value == text) for value, label in known)


def _choices(slot: Slot, text: str) -> tuple[Option, ...]:
    options = ("true", "false") if slot.kind == YES_NO else tuple(write_option(each) for each in slot.options)
    labels = {"true": "yes", "false": "no"} if slot.kind == YES_NO else {}
    empty = "choose" if slot.is_required else "not set"
    return choose([("", empty), *((each, labels.get(each, each)) for each in options)], text)


def _make_group(slot: Slot, texts: Mapping[str, str], errors: Mapping[str, str]) -> Field:
    fields = tuple(field for part in slot.slots for field in make_fields(part, texts, errors))
    others = slot.name + OTHERS
    if slot.takes_more or others in texts:
        label = f"Other fields of {slot.label[0].lower()}{slot.label[1:]}"
        fields = (*fields, _make_json(others, label, others, texts, errors, "a JSON object"))
    hint = slot.hint if slot.is_required else f"{slot.hint} May be left out as a whole.".strip()
    return Field(slot.name, field_id(slot.name), slot.label, "group", path=slot.name, hint=hint, fields=fields)


def _make_json(
    name: str, label: str, path: str, texts: Mapping[str, str], errors: Mapping[str, str], hint: str
) -> Field:
    text, error = texts.get(name, ""), errors.get(name, "")
    rows = min(20, max(_AREAS[JSON_TEXT], text.count("\n") + 2))
    return Field(name, field_id(name), label, "area", text, path, hint, error, rows=rows, is_code=True)


def _write_hint(slot: Slot) -> str:
    if slot.is_required:
        return slot.hint
    if slot.default in (None, "", [], {}):
        left = "may be left empty"
    elif slot.kind == YES_NO:
        left = f"{'yes' if slot.default else 'no'} if not set"
    else:
        left = f"{json.dumps(slot.default, ensure_ascii=False)} if left empty"
    return f"{slot.hint}; {left}" if slot.hint else left


def field_id(name: str) -> str:
    """Return the id of the field of that name for stylesheets: letters and digits, with other characters as numbers."""
    return "f-" + "".join(letter if letter.isalnum() and letter.isascii() else f"-{ord(letter):x}-" for letter in name)


def place_error(field: str, names: Iterable[str]) -> str:
    """Return the form's field of an error of the API: that with the longest common path. Empty if there is none."""
    best = ""
    for name in names:
        path = name.removesuffix(AS_JSON).removesuffix(OTHERS)
        if (field == path or field.startswith(f"{path}.")) and len(path) > len(best.removesuffix(AS_JSON)):
            best = name
    return best


def place_faults(error: InvalidInput, names: Sequence[str], known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the problems by the form's fields, without the paths. Under "" are those that belong to none."""
    told: dict[str, str] = {}
    for each in error.faults:
        name = place_error((known or {}).get(each.field, each.field), names)
        said = str(each.args[0])
        said = said.removeprefix(f"{each.field}: ") if name else said
        told[name] = f"{told[name]}; {said}" if name in told else said
    return told


def list_names(fields: Iterable[Field]) -> list[str]:
    """Return the names of all fields, also of those in groups."""
    return [name for field in fields for name in (list_names(field.fields) if field.fields else [field.name])]


def read_json(text: str) -> object:
    """Return the JSON that was typed. Raises InvalidInput."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput("payload", f"is not JSON: {error}", 'Write JSON, such as {"by": "grace"}.') from error
