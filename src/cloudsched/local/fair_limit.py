"""Keep a limit on what strangers make: who makes the most loses the oldest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

T = TypeVar("T")


def list_superfluous(places: Sequence[tuple[Hashable, T]], room: int) -> list[T]:
    """Return what is too much, given what takes each place, and whose it is, the oldest first.

    It is the oldest of those who have the most places: nobody takes another's by taking more and more.
    """
    ended: list[T] = []
    left = list(places)
    counts = Counter(owner for owner, _ in left)
    while len(left) > room:
        largest = max(counts, key=counts.__getitem__)
        oldest = next(each for each in left if each[0] == largest)
        left.remove(oldest)
        counts[largest] -= 1
        ended.append(oldest[1])
    return ended
