"""Lists whose filter no index has: documents are read in the list's order, and those that do not match are passed over.

Both stores look through such a list by this code, so that a page ends at the same document in each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

R = TypeVar("R")

MAX_LOOKED_THROUGH: Final = 1_000
"""How many documents a page looks through at most. One that ends there is shorter, perhaps empty, and has a token."""


@dataclass(frozen=True, slots=True)
class MatchingRows(Generic[R]):
    """The rows of a page."""

    rows: Sequence[R]
    last: R | None
    """The row after which the next page starts; None if this page is the last one."""
    passed_over: int
    """How many rows were read that do not match."""


def find_matching_rows(
    read: Callable[[R | None, int], Sequence[R]],
    is_match: Callable[[R], bool],
    limit: int,
    *,
    is_bounded: bool,
) -> MatchingRows[R]:
    """Return the first rows of a list that match.

    Args:
        read: Returns so many rows after a row, or the first ones; fewer only at the end of the list.
        is_match: Whether the list has a row.
        limit: How many rows to return at most.
        is_bounded: Whether to stop after `MAX_LOOKED_THROUGH` rows, rather than to go on until the page is full.
    """
    most = MAX_LOOKED_THROUGH if is_bounded else None
    found: list[R] = []
    last: R | None = None
    read_count = 0
    while True:
        missing, misses = limit + 1 - len(found), read_count - len(found)
        count = max(missing, misses)  # the fewer match, the more are read at once
        if most is not None:
            count = min(count, most - read_count)
        part = read(last, count)
        read_count += len(part)
        found += filter(is_match, part)
        if len(found) > limit:
            page = found[:limit]
            return MatchingRows(page, page[-1], read_count - len(found))
        if len(part) < count:
            return MatchingRows(found, None, read_count - len(found))
        last = part[-1]
        if read_count == most:
            return MatchingRows(found, last, read_count - len(found))
