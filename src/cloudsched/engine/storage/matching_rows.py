"""What every store reads of a list: as many rows as fill a page, and no more than a request may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from cloudsched.domain.recurrence.allowance import get_bytes_left, spend_bytes
from cloudsched.engine.storage.pages import MAX_PAGE_BYTES, Page, make_token, skip_unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

T = TypeVar("T")
R = TypeVar("R")

MAX_LOOKED_THROUGH: Final = 1_000
"""The most documents that a page looks through. One that ends there is shorter, perhaps empty, and has a token."""

FIRST_READ: Final = 201
"""The number of rows of a list that are read at first: as many as most pages have, and one more."""
READ_BYTES: Final = 4_000_000
"""The most bytes of rows in a further read, if they are as large as those before them."""


@dataclass(frozen=True, slots=True)
class MatchingRows(Generic[R]):
    """The rows of a page."""

    rows: Sequence[R]
    last: R | None
    """The row after which the next page starts. None if this page is the last one."""
    passed_over: int
    """The number of rows that were read but do not match."""
    size: int
    """The size of the rows together, in bytes."""

    def to_page(
        self,
        query: object,
        parse: Callable[[R], tuple[str, Callable[[], T]]],
        locate: Callable[[R], tuple[datetime, str]],
    ) -> Page[T]:
        """Return the page, without what cannot be read. Its token belongs to `query`.

        `parse` returns a row's name, and how to parse it. `locate` returns its sort instant and its id.
        """
        items = skip_unreadable(parse(row) for row in self.rows)
        token = None if self.last is None else make_token(query, *locate(self.last))
        return Page(items, token, len(self.rows) - len(items), self.passed_over, self.size)


def find_matching_rows(
    read: Callable[[R | None, int], Sequence[R]],
    is_match: Callable[[R], bool],
    size_of: Callable[[R], int],
    *,
    limit: int,
    max_bytes: int = MAX_PAGE_BYTES,
    most_read: int | None = None,
) -> MatchingRows[R]:
    """Return the first matching rows of a list whose filter no index has, and pass over the others.

    Both stores make their pages by this code, so that a page ends at the same document in each of them. It reads in
    parts, so that large documents are not in memory all at once, and ends early once a request has read all it may.
    `read` returns fewer rows than asked for only at the end of the list. Stop after `most_read` rows.
    """
    found: list[R] = []
    last: R | None = None
    passed_over = size = read_count = read_bytes = 0
    allowed = get_bytes_left()
    most = min(max_bytes, allowed)
    while True:
        count = max(limit + 1 - len(found), passed_over)  # the fewer match, the more are read at once
        count = min(count, max(1, read_count * READ_BYTES // read_bytes) if read_bytes else FIRST_READ)
        if most_read is not None:
            count = min(count, most_read - read_count)
        part = read(last, count)
        read_count += len(part)
        part_bytes = sum(map(size_of, part))
        spend_bytes(part_bytes)
        read_bytes += part_bytes
        matching = list(filter(is_match, part))
        passed_over += len(part) - len(matching)
        for row in matching:
            if len(found) == limit:
                return MatchingRows(found, found[-1], passed_over, size)
            found.append(row)
            size += size_of(row)
            if size >= most:
                limit = len(found)
        if len(part) < count:
            return MatchingRows(found, None, passed_over, size)
        last = part[-1]
        if read_count == most_read or read_bytes >= allowed:
            return MatchingRows(found, last, passed_over, size)


def list_keys(find_next: Callable[[str], str | None], *, limit: int, prefix: str, after: str) -> list[str]:
    """Return the first keys after one, with a prefix. `find_next` returns the first key that comes after another."""
    keys, last = list[str](), max(after, prefix)
    while len(keys) < limit and (found := find_next(last)) is not None and found.startswith(prefix):
        keys.append(found)
        last = found
    return keys
