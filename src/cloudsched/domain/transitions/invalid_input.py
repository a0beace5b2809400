"""What pydantic finds wrong with a caller's data, as an error of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from pydantic import StringConstraints

from cloudsched.domain.documents.pull import QueueName, Skill
from cloudsched.domain.documents.task import EventName, Owner, TaskId
from cloudsched.domain.first_error import FEW, find_first_error
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic import ValidationError


def to_invalid_input(error: ValidationError, prefix: str = "", kind: type[InvalidInput] = InvalidInput) -> InvalidInput:
    """Convert pydantic's first error; `field` is the path as the caller wrote it, and `others` are the further ones."""
    found = _convert(find_first_error(error), prefix, kind)
    found.others = list_others(error, found, prefix, kind)
    return found


def list_others(
    error: ValidationError, known: InvalidInput, prefix: str = "", kind: type[InvalidInput] = InvalidInput
) -> tuple[InvalidInput, ...]:
    """Return pydantic's errors but the one that is known, each place once; none if there are too many to be read."""
    if error.error_count() > FEW:
        return ()
    converted = (_convert(dict(each), prefix, kind) for each in error.errors(include_url=False, include_input=False))
    places = {each.field: each for each in converted}
    places.pop(known.field, None)
    return tuple(places.values())


def _convert(first: dict[str, Any], prefix: str, kind: type[InvalidInput]) -> InvalidInput:
    parts = (*((prefix,) if prefix else ()), *first["loc"])
    path = ".".join(str(part) for part in parts) or "(body)"
    hint = {
        "extra_forbidden": "Remove it, or check its spelling; names are camelCase.",
        "timezone_aware": "Give the offset from UTC, as in 2027-01-01T09:00:00Z.",
        "missing": "It is required.",
        "tuple_type": "Put it into a list, also if it is one: [value].",
    }.get(first["type"], "")
    said = "Input should be a list" if first["type"] == "tuple_type" else first["msg"].removeprefix("Value error, ")
    problem = _PATTERN_DESCRIPTIONS.get(str(first.get("ctx", {}).get("pattern")))
    made = kind(path, problem or said, hint)
    made.path = parts
    return made


def _pattern_text(kind: object) -> str:
    return next(str(each.pattern) for each in get_args(kind) if isinstance(each, StringConstraints))


_PATTERN_DESCRIPTIONS = {
    _pattern_text(kind): f"must be {words}"
    for kind, words in (
        (TaskId, "1 to 128 letters, digits, hyphens and underscores"),
        (Owner, "1 to 128 characters, none of them a slash or a control character"),
        (EventName, "1 to 128 letters, digits, dots, hyphens and underscores"),
        (QueueName, "1 to 64 letters, digits, hyphens and underscores"),
        (Skill, "1 to 64 letters, digits, dots, hyphens and underscores"),
    )
}
"""The patterns of names in words."""
