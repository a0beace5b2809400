"""One page of a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list, and the token of the next; no token means that this is the last page."""

    items: Sequence[T]
    next_page_token: str | None = None
    unreadable: int = 0
    """How many documents of this page were skipped because they are damaged or of a newer version."""
