"""The fields of a form as templates show them, and what becomes of a form that was sent."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cloudsched.dashboard.filters import name_filter
from cloudsched.dashboard.words import join_phrases, only_if
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
    from collections.abc import Mapping, Sequence

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
    options: tuple[tuple[str, str], ...] = ()
    """The choices: values and labels."""
    suggestions: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Return its id on the page."""
        return f"f-{self.name}"


def hash_text(text: str) -> str:
    """Return a short text by which a page or a form knows whether something has changed since."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


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


def read_json(text: str) -> object:
    """Return the JSON that was typed. Raises InvalidInput."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("payload", f"is not JSON: {error}", 'Write JSON, such as {"by": "grace"}.') from error


class FormProblem(NamedTuple):
    """A refusal, as a page tells it."""

    status: int
    """The status of the page."""
    what: str
    """The problem, in the API's words."""
    then: str
    """The consequence, or what to do."""

    def __str__(self) -> str:
        return f"{self.what} {self.then}".strip()


_THEN: Final[tuple[tuple[type[CloudschedError], int, str], ...]] = (
    (Unauthenticated, 401, "The key is missing or no longer valid: start with --key, or CLOUDSCHED_KEY."),
    (Forbidden, 403, ""),
    (NotFound, 404, "It may have been deleted, or it is not yours."),
    (NotAllowed, 409, "Nothing was changed. This is how it is now."),
    (PreconditionFailed, 412, "Somebody has changed this task since you opened it. This is how it is now."),
    (InvalidInput, 400, ""),
    (QuotaExceeded, 429, "Nothing was changed. Something has to end or be deleted first."),
    (Unavailable, 503, "Nothing is lost: dispatches wait. Reload the page, or leave it open: it asks again by itself."),
)


_NO_PAGE: Final = FormProblem(400, "This page of the list is no longer there.", "Start again at the first page.")


def describe_problem(error: CloudschedError) -> FormProblem:
    """Return what a page tells of an error. The dashboard's own refusals name no field: they are sentences."""
    if isinstance(error, InvalidInput) and error.field in {"", "pageToken"}:
        return _NO_PAGE if error.field else FormProblem(400, error.problem, error.hint)
    if isinstance(error, QuotaExceeded) and error.retry_after:
        return FormProblem(429, str(error), f"Try again in {error.retry_after} s.")
    if isinstance(error, Unavailable) and ": 500: " in str(error):
        then = "The other views work. If this names a damaged document, docs/guarantees.md says what to do."
        return FormProblem(502, _name_fault(error), then)
    if isinstance(error, Unavailable) and not error.is_retryable:
        return FormProblem(503, _name_fault(error), "")
    for kind, status, then in _THEN:
        if isinstance(error, kind):
            return FormProblem(status, _name_fault(error), then)
    return FormProblem(500, str(error), "")


def _name_fault(error: CloudschedError) -> str:
    """Return an error's message, without what a page does by itself: its forms have their keys."""
    if isinstance(error, Unavailable) and error.idempotency_key is not None:
        return f"{error.service} cannot be reached: {error.reason}."
    if isinstance(error, InvalidInput):
        return "; ".join(f"{name_field(each.field)}: {_write_fault(each)}" for each in error.faults)
    return str(error)


def name_field(path: str) -> str:
    """Return the words that forms have for a field of the API, such as ``New time`` for ``to``."""
    name = _KNOWN.get(path) or path.removeprefix("filter.").partition(".")[0]
    return _WORDS.get(name) or name_filter(name)


def _write_fault(error: InvalidInput) -> str:
    return f"{error.problem}{only_if(error.hint, f' ({error.hint})')}"


_WORDS: Final = {"to": "New time", "until": "Until"}
"""The words for fields in forms with one field."""
_KNOWN: Final = {"retry": "retries", "retry.maxRetries": "retries", "schedule.timezone": "timezone"}
"""The form's names for fields that the API calls otherwise."""


def place_faults(error: InvalidInput, names: Sequence[str]) -> dict[str, str]:
    """Return the problems by the form's fields, under "" those of none. Parts of a payload have their paths."""
    told: dict[str, list[str]] = {}
    for each in error.faults:
        name = _KNOWN.get(each.field) or each.field.partition(".")[0]
        part = each.field.removeprefix(PAYLOAD).removeprefix(".") if name == PAYLOAD else ""
        if name not in names:
            part, name = name_field(each.field), ""
        told.setdefault(name, []).append(join_phrases(part, _write_fault(each), separator=": "))
    return {name: "; ".join(said) for name, said in told.items()}


def refuse(answer: Json, error: CloudschedError, options: tuple[str, ...] = ()) -> Again:
    """Show a form that the API has refused again: what is said stands at its fields, or above them all."""
    problem = describe_problem(error)
    if isinstance(error, InvalidInput):
        told = place_faults(error, (*options, PAYLOAD))
        rest = told.pop("", "")
        if told:
            return Again({**answer, "errors": {**answer.get("errors", {}), **told}, "error": rest}, problem.status)
    return Again({**answer, "error": str(problem)}, problem.status)
