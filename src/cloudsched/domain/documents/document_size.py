"""Firestore's limits of one document and one request. They are checked before writing, whatever the store.

What is too large would be refused by Firestore with an error that names no field, and a task that has grown too large
could never be written again. So what works on a laptop works in the cloud.

Sources: firebase.google.com/docs/firestore/quotas and …/storage-size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.json_limits import stored_size
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

MAX_DOCUMENT_BYTES = 1024 * 1024
"""The largest document, with its name, as Firestore counts it."""
MAX_REQUEST_BYTES = 10 * 1024 * 1024
"""The largest request, as it is sent: a commit is one. How many documents it writes is not limited any more: until
2023-03-29 there were at most 500 (cloud.google.com/firestore/docs/release-notes)."""
MAX_INDEXED_BYTES = 1500
"""The longest text that is indexed as a whole. Of a longer one only the beginning counts, so queries may go wrong."""

_MAX_CHARACTER_BYTES: Final = 4
_NAME_BYTES, _FIELDS_BYTES = 16, 32
"""What Firestore adds to a document's name, and to its fields."""
STORE_BYTES: Final = 256
"""What the fields take that a store adds for itself."""


def document_size(path: Iterable[str], data: Mapping[str, Any]) -> int:
    """Return the size of a document in bytes, as Firestore counts it.

    Args:
        path: The ids of its collections and documents, such as ``("tasks", "t1", "executions", "e1")``.
        data: Its fields, as stored.
    """
    name = sum(len(part.encode("utf-8", "surrogatepass")) + 1 for part in path) + _NAME_BYTES
    return name + stored_size(data) + _FIELDS_BYTES


def require_document_fits(path: Sequence[str], upper_bound: int, to_data: Callable[[], Mapping[str, Any]]) -> None:
    """Check that a document is not too large for Firestore.

    Args:
        path: The ids of its collections and documents.
        upper_bound: A size of the fields that Firestore's cannot exceed, which is cheap to know.
        to_data: Returns its fields; called only if the upper bound is too much.

    Raises:
        InvalidInput: It is too large; `field` names its largest part.
    """
    most_of_name = sum(map(len, path)) * _MAX_CHARACTER_BYTES + len(path) + _NAME_BYTES
    if upper_bound + most_of_name + _FIELDS_BYTES + STORE_BYTES <= MAX_DOCUMENT_BYTES:
        return
    data = to_data()
    size = document_size(path, data) + STORE_BYTES
    if size > MAX_DOCUMENT_BYTES:
        field, part = find_largest_part(data)
        problem = f"has {part} of the {size} bytes that {'/'.join(path)} would have as Firestore counts them"
        hint = f"At most {MAX_DOCUMENT_BYTES} are allowed; store large data elsewhere and pass a reference to it."
        raise InvalidInput(field, problem, hint)


def require_indexable(data: Mapping[str, Any], fields: Iterable[tuple[str, ...]]) -> None:
    """Check that the texts by which a document is found are indexed as a whole.

    Raises:
        InvalidInput: One of them is too long; `field` names it.
    """
    for path in fields:
        value: Any = data
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str) and len(value) * 4 > MAX_INDEXED_BYTES < len(value.encode("utf-8", "surrogatepass")):
            hint = f"At most {MAX_INDEXED_BYTES} bytes are indexed."
            raise InvalidInput(".".join(path), f"has {len(value.encode('utf-8', 'surrogatepass'))} bytes", hint)


def find_largest_part(data: Mapping[str, Any]) -> tuple[str, int]:
    """Return the path and the size of the part that makes a document large: it has most of what it is a part of."""
    path, size = list[str](), stored_size(data)
    value: Any = data
    while isinstance(value, dict | list | tuple) and value:
        parts: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        name, part = max(parts, key=lambda each: stored_size(each[1]))
        if path and stored_size(part) < size / 2:
            break
        path.append(str(name))
        value, size = part, stored_size(part)
    return ".".join(path) or "(body)", size
