"""What Firestore refuses of a commit, checked before it is sent: its own errors name no field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.adapters.firestore.queries import INDEXED_TEXTS
from cloudsched.domain.documents.json_limits import (
    MAX_INDEXED_BYTES,
    MAX_REQUEST_BYTES,
    require_document_fits,
    require_indexable,
)
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.adapters.google.channel import Message
    from cloudsched.domain.documents.document import Document

_MAX_EXPANSION = 2
"""How many times larger than its message a document can be as Firestore counts it: a small number takes 4 bytes there,
and counts as 8."""
_MAX_CHARACTER_BYTES = 4
_WRITE_OVERHEAD_BYTES = 200
"""More than a request needs besides its writes, for each of them."""


def require_write_fits(path: Sequence[str], write: Message, document: Document, stored: int = 0) -> None:
    """Check the write of a document.

    Args:
        path: The ids of its collections and documents.
        write: The write.
        document: The whole document.
        stored: How many bytes the document has at most, if the write changes only a part of it.

    Raises:
        InvalidInput: It is too large, or a text in it by which it is indexed; `field` names it.
    """
    require_document_fits(path, _MAX_EXPANSION * (stored + write.ByteSize()), document.to_stored)
    indexed = INDEXED_TEXTS.get(path[-2], ())
    if any(_text_length(write.update.fields, place) > MAX_INDEXED_BYTES // _MAX_CHARACTER_BYTES for place in indexed):
        require_indexable(document.to_stored(), indexed)


def _text_length(fields: Message, place: tuple[str, ...]) -> int:
    """Return how many characters a text has; 0 if there is none."""
    *path, last = place
    for name in path:
        if name not in fields:
            return 0
        fields = fields[name].map_value.fields
    return len(fields[last].string_value) if last in fields else 0


def require_request_fits(writes: Sequence[Message]) -> None:
    """Check the size of a commit. Each part of one is limited, so that it is not too large.

    Raises:
        InvalidInput: It is too large; `field` names the largest document.
    """
    sizes = [write.ByteSize() for write in writes]
    if sum(sizes) + len(sizes) * _WRITE_OVERHEAD_BYTES <= MAX_REQUEST_BYTES:
        return
    name = writes[sizes.index(max(sizes))].update.name.partition("/documents/")[2]
    problem = f"is {max(sizes)} of a commit's {sum(sizes)} bytes"
    raise InvalidInput(name, problem, f"At most {MAX_REQUEST_BYTES} are allowed; store large data elsewhere.")
