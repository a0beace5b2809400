"""One page of a list, and the token by which the next one is asked for."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Generic, Never, TypeVar

from cloudsched.domain.own_logger import own_logger
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

T = TypeVar("T")
Row = TypeVar("Row")
_NO_LIST: Final = "A page is no list: its items are page.items, and page.next_page_token asks for the next page."


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list, and the token of the next. The last page has no token.

    A page with a token may be shorter than asked if its documents are large, and even empty if it looked through many
    documents to find few.
    """

    items: Sequence[T]
    next_page_token: str | None = None
    unreadable: int = 0
    """The number of documents of this page that were skipped because they are damaged or of a newer version."""
    passed_over: int = 0
    """The number of documents that were read but do not match: no index has all that was asked for."""
    size: int = 0
    """The size of the documents of this page, in bytes, as they are stored."""

    def __getitem__(self, index: Never) -> Never:
        """Refuse what a list can do, also for loops: the rest of a list would be missed in silence."""
        raise TypeError(_NO_LIST)

    def __len__(self) -> Never:
        """Refuse it likewise, and with it the question whether a page is empty."""
        raise TypeError(_NO_LIST)

    @property
    def read(self) -> int:
        """The number of documents read for it, at least one: a query that finds nothing is billed as a read."""
        return max(1, len(self.items) + self.unreadable + self.passed_over)


log: Final = own_logger(__name__)


def iterate_pages(read: Callable[[str | None], Page[T]]) -> Iterator[Page[T]]:
    """Yield all pages of a list. `read` returns the page of a token, None for the first one."""
    token: str | None = None
    while True:
        page = read(token)
        yield page
        token = page.next_page_token
        if token is None:
            return


def iterate_items(read: Callable[[str | None], Page[T]]) -> Iterator[T]:
    """Yield the items of all pages of a list. See `iterate_pages`."""
    for page in iterate_pages(read):
        yield from page.items


MAX_PAGE = 500
"""The most items of one page."""

MAX_PAGE_BYTES = 1_000_000
"""The most bytes of stored documents in a page, but for the last one: to read a megabyte takes some 50 ms."""


def check_page_size(limit: int) -> int:
    """Return the size of a page. Raises InvalidInput if it is too large, or not positive."""
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput("pageSize", f"is {limit}", f"Give a number from 1 to {MAX_PAGE}.")
    return limit


def make_token(query: object, at: datetime, key: str) -> str:
    """Return the token of the page after the item with this sort instant and id."""
    content = json.dumps([_fingerprint(query), at.astimezone(UTC).isoformat(), key], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def start_before(query: object, at: datetime | None, page_token: str | None) -> str | None:
    """Return the token of a page, or of the first one that begins before an instant, in a list of the latest first."""
    if at is None or page_token:
        return page_token
    return make_token(query, at, "!")  # no id is before that


def read_token(query: object, token: str) -> tuple[datetime, str]:
    """Return the sort instant and the id of the item after which the page starts. Raises InvalidInput."""
    try:
        padded = token + "=" * (-len(token) % 4)
        fingerprint, at, key = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        instant = datetime.fromisoformat(at)
        is_valid = isinstance(key, str) and "/" not in key and instant.tzinfo is not None and bool(key.encode())
    except (binascii.Error, ValueError, TypeError, UnicodeError, RecursionError) as error:
        raise bad_token() from error
    if not is_valid:
        raise bad_token()
    if fingerprint != _fingerprint(query):
        raise bad_token("belongs to another list")
    return instant, key


def bad_token(problem: str = "is not a page token") -> InvalidInput:
    """Return the error of a page token that was made up, or is of another list."""
    hint = "Use nextPageToken of the previous page, unchanged and with the same filters."
    return InvalidInput("pageToken", problem, hint)


def skip_unreadable(documents: Iterable[tuple[str, Callable[[], T]]]) -> list[T]:
    """Return the documents that can be read, and log each of the others as ``unreadable``.

    A document of a newer version, or a damaged one, must not take a list, a sweep or a claim with it.
    """
    readable = []
    for name, read in documents:
        try:
            readable.append(read())
        except Exception:  # whatever is wrong with one document, the others can be read
            log.exception("unreadable document skipped", extra={"action": "unreadable", "document": name})
    return readable


def collect_readable(
    read: Callable[[Row | None, int], Sequence[Row]], parse: Callable[[Row], tuple[str, Callable[[], T]]], limit: int
) -> list[T]:
    """Return the first documents of a list: one that is skipped as unreadable does not hide those after it.

    `read` gets the last row so far, and the most to return. `parse` returns a row's name, and how to parse it.
    """
    found, last = list[T](), None
    while len(found) < limit:
        missing = limit - len(found)
        rows = read(last, missing)
        found += skip_unreadable(parse(row) for row in rows)
        if len(rows) < missing:
            break
        last = rows[-1]
    return found


def _fingerprint(query: object) -> str:
    return hashlib.sha256(repr(query).encode()).hexdigest()[:16]
