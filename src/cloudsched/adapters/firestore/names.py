"""Which paths are names of documents (firebase.google.com/docs/firestore/quotas)."""

from __future__ import annotations

import re

MAX_ID_BYTES = 1500
"""The most bytes of an id, or of a value in a query's filter."""
_SEGMENT = re.compile(r"(?!\.{1,2}$)(?!__.*__$)[^/]+", re.DOTALL)


def document_name(documents: str, *path: str) -> str | None:
    """Return a document's full name below the name of a database's documents, or None if it is none."""
    if not all(_SEGMENT.fullmatch(segment) and len(segment.encode()) <= MAX_ID_BYTES for segment in path):
        return None
    return "/".join((documents, *path))
