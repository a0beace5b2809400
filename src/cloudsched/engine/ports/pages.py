"""One page of a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list, and the token of the next; no token means that this is the last page.

    A page with a token may be shorter than asked, even empty, if it looked through many documents to find few.
    """

    items: Sequence[T]
    next_page_token: str | None = None
    unreadable: int = 0
    """How many documents of this page were skipped because they are damaged or of a newer version."""
    passed_over: int = 0
    """How many documents were read for it that do not match: there is no index for all that was asked for."""

    @property
    def read(self) -> int:
        """How many documents were read for it, at least one: a query that finds nothing is billed as a read."""
        return max(1, len(self.items) + self.unreadable + self.passed_over)
