"""The fields of a form as templates show them, and what becomes of a form that was sent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cloudsched.dashboard.words import join_phrases, only_if
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
_MOST_ROWS: Final = 20


def read_key(texts: Mapping[str, str]) -> str:
    """Return the form's key, by which the API knows a second request with the same form. Empty if it is none."""
    key = texts.get("key", "")
    return only_if(key.isascii() and key.isalnum() and len(key) <= _LONGEST_KEY, key)


@dataclass(frozen=True, slots=True)
class SelectOption:
    """A choice."""

    value: str
    label: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Field:
    """A field."""

    name: str
    label: str
    control: str
    """``input``, ``area``, ``select`` or ``checks``."""
    text: str = ""
    hint: str = ""
    error: str = ""
    rows: int = 0
    is_code: bool = False
    options: tuple[SelectOption, ...] = ()
    suggestions: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Return its id on the page."""
        return f"f-{self.name}"


PAYLOAD: Final = "payload"
"""The name of the field with the payload, which is JSON, as the API takes it."""


def make_payload(schema: Json | None, texts: Mapping[str, str], errors: Mapping[str, str]) -> Field:
    """Return the field of a payload. The names in its schema, if it has one, are its hint."""
    required = (schema or {}).get("required", ())
    names = [
        join_phrases(
            f"{name}{only_if(name not in required, ' (optional)')}", about.get("description", ""), separator=": "
        )
        for name, about in (schema or {}).get("properties", {}).items()
    ]
    text = texts.get(PAYLOAD, "")
    return Field(
        PAYLOAD,
        "A JSON object",
        "area",
        text,
        hint="; ".join(names),
        error=errors.get(PAYLOAD, ""),
        rows=min(_MOST_ROWS, text.count("\n") + 4),
        is_code=True,
    )


def write_payload(payload: object) -> str:
    """Return a payload as its field has it. Empty if it has nothing."""
    return json.dumps(payload, indent=2, ensure_ascii=False) if payload else ""


def read_payload(texts: Mapping[str, str], errors: dict[str, str]) -> Any:  # noqa: ANN401 - any JSON
    """Return the payload that was typed: an empty one if there is none. What is no JSON goes to `errors`."""
    try:
        return read_json(texts.get(PAYLOAD, "").strip() or "{}")
    except InvalidInput as error:
        errors[PAYLOAD] = f"{error.problem}"
        return {}


def choose(pairs: Iterable[tuple[str, str]], text: str) -> tuple[SelectOption, ...]:
    """Return choices, if there are any. A text that is not among them is added."""
    known = list(pairs)
    if known and text and text not in {value for value, _ in known}:
        known.append((text, text))
    return tuple(SelectOption(value, label, value == text) for value, label in known)


def read_json(text: str) -> object:
    """Return the JSON that was typed. Raises InvalidInput."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("payload", f"is not JSON: {error}", 'Write JSON, such as {"by": "grace"}.') from error
