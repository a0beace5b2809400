"""What may be stored as a payload, a result or a context: JSON, within the limits that every store keeps.

The limits are Firestore's (cloud.google.com/firestore/quotas), held for the embedded store too, so that what passes a
test on a laptop passes in the cloud: integers of 64 bits, maps nested 20 deep at the most (some of which the document
itself uses), no map key that is empty or looks like ``__this__``, and a document of 1 MiB, which a task shares with its
open runs.
"""

from __future__ import annotations

import json
import math
from typing import Any

from cloudsched.errors import InvalidInput

MAX_PAYLOAD = 128 * 1024
MAX_CONTEXT = 64 * 1024
MAX_CONTENT = 512 * 1024
"""The size of a task's payload, its source's context and an execution's result, in bytes as JSON."""
MAX_DEPTH = 16
MAX_KEY_BYTES = 1500
_INT_64 = range(-(2**63), 2**63)


def require_storable(field: str, value: object, max_bytes: int) -> None:
    """Check that a value is JSON that every store can keep.

    Raises:
        InvalidInput: It is not; `field` is the path of what is wrong.
    """
    _check(field, value, 0)
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        hint = f"At most {max_bytes} bytes as JSON are kept; put large data elsewhere and pass a reference to it."
        raise InvalidInput(field, f"has {size} bytes", hint)


def storable_text(text: str) -> str:
    """Return a text with what UTF-8 cannot say (lone surrogates) put as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _check(field: str, value: object, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidInput(field, f"is nested more than {MAX_DEPTH} deep", "Flatten it.")
    match value:
        case list() | tuple():
            for index, item in enumerate(value):
                _check(f"{field}.{index}", item, depth + 1)
        case dict():
            for key, item in value.items():
                _check_key(field, key)
                _check(f"{field}.{key}", item, depth + 1)
        case _:
            _check_scalar(field, value)


def _check_scalar(field: str, value: object) -> None:
    match value:
        case None | bool():
            return
        case int():
            if value not in _INT_64:
                raise InvalidInput(field, "is an integer beyond 64 bits", "Give it as a string.")
        case float():
            if not math.isfinite(value):
                raise InvalidInput(field, f"is {value}, which JSON cannot say", "Give a finite number or null.")
        case str():
            _check_text(field, value)
        case _:
            hint = "Use strings, numbers, booleans, lists, maps and null, or a pydantic model."
            raise InvalidInput(field, f"is a {type(value).__name__}, which JSON cannot say", hint)


def _check_key(field: str, key: Any) -> None:  # noqa: ANN401 - a key of a dict that nobody has checked yet
    if not isinstance(key, str):
        raise InvalidInput(field, f"has the key {key!r}, which is not a string", "Use strings as keys.")
    if not key or (key.startswith("__") and key.endswith("__")):
        raise InvalidInput(field, f"has the key {key!r}", "Keys are not empty, and __names__ are reserved.")
    _check_text(field, key)
    if len(key.encode()) > MAX_KEY_BYTES:
        raise InvalidInput(field, f"has the key {key[:20]!r}…", f"A key has at most {MAX_KEY_BYTES} bytes.")


def _check_text(field: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, "has a lone surrogate, which UTF-8 cannot say", "Repair the text.") from None
