"""Page tokens: the position at which a list continues, opaque to clients.

A token is URL-safe base64 of JSON: the sort values of the last item, and a fingerprint of the query. A token
that was made up, truncated, or taken from another query gets a clear error rather than a wrong page.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

log = logging.getLogger(__name__)


MAX_PAGE = 500
"""The most items of one page."""


def check_page_size(limit: int) -> int:
    """Return the size of a page. Raises InvalidInput if it is too large, or not positive."""
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput("pageSize", f"is {limit}", f"Give a number from 1 to {MAX_PAGE}.")
    return limit


def make_token(query: object, at: datetime, key: str) -> str:
    """Return the token of the page after the item with this sort instant and id."""
    content = json.dumps([_fingerprint(query), at.astimezone(UTC).isoformat(), key], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def read_token(query: object, token: str) -> tuple[datetime, str]:
    """Return the sort instant and the id of the item after which the page starts.

    Raises:
        InvalidInput: It is not a token that was issued for this query.
    """
    hint = "Use nextPageToken of the previous page, unchanged and with the same filters."
    try:
        padded = token + "=" * (-len(token) % 4)
        fingerprint, at, key = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        instant = datetime.fromisoformat(at)
        is_valid = isinstance(key, str) and "/" not in key and instant.tzinfo is not None and bool(key.encode())
    except (binascii.Error, ValueError, TypeError, UnicodeError, RecursionError) as error:
        raise InvalidInput("pageToken", "is not a page token", hint) from error
    if not is_valid:
        raise InvalidInput("pageToken", "is not a page token", hint)
    if fingerprint != _fingerprint(query):
        raise InvalidInput("pageToken", "belongs to another list", hint)
    return instant, key


def skip_unreadable(documents: Iterable[tuple[str, Callable[[], T]]]) -> list[T]:
    """Return the documents that can be read, and log each of the others as ``unreadable``.

    A document of a newer version, or a damaged one, must not take a list, a sweep or a claim with it.

    Args:
        documents: Names, each with a function that parses the document and reads nothing else.
    """
    readable = []
    for name, read in documents:
        try:
            readable.append(read())
        except Exception:  # whatever is wrong with one document, the others can be read
            log.exception("unreadable document skipped", extra={"action": "unreadable", "document": name})
    return readable


def _fingerprint(query: object) -> str:
    return hashlib.sha256(repr(query).encode()).hexdigest()[:16]
