"""What Firestore takes of writes: into each sequential range of an index, to each document, and of growing traffic."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from tests.scale.google_limits import (
    DOCUMENT_WINDOW,
    DOCUMENT_WRITES_PER_SECOND,
    RANGE_WRITES_PER_SECOND,
    Ramp,
    RateWindows,
)
from tests.scale.index_ranges import Range

_MIN_UNITS: Final = 50
"""How many writes of one owner a window has room for, at least."""
_MIN_COUNT: Final = 30
"""How many writes of a part say something about the whole."""


class RangeLimits:
    """Writes into sequential index ranges, of which a part of all that a deployment makes is simulated.

    A range of a shard that is simulated takes as much as in the deployment (or the part of it that the simulated shard
    has); any other range has its writes from all shards, so of those that are simulated it takes as large a part.

    Args:
        fraction: The part of the deployment.
        share: The part of each simulated shard.
        shards: The shards that are simulated; all if None. What is written into another one comes from all shards.
    """

    def __init__(self, fraction: float = 1.0, share: float = 1.0, shards: Collection[int] | None = None) -> None:
        self._shards = shards
        self._found: dict[Range, RateWindows] = {}
        self._of_shards = RateWindows(RANGE_WRITES_PER_SECOND * share)
        self._of_all = RateWindows(RANGE_WRITES_PER_SECOND * fraction)
        # An owner has little of a small part: over one second that would say nothing about the whole.
        rate = RANGE_WRITES_PER_SECOND * fraction
        self._of_owners = RateWindows(rate, max(1.0, _MIN_UNITS / rate))

    def find(self, place: Range) -> RateWindows:
        found = self._found.get(place)
        if found is None:
            unsharded = self._of_owners if place.is_owned else self._of_all
            found = self._found[place] = self._of_shards if self.is_of_shard(place) else unsharded
        return found

    def is_of_shard(self, place: Range) -> bool:
        """Return whether a range has what one of the simulated shards writes, and nothing else."""
        return place.shard is not None and (self._shards is None or place.shard in self._shards)

    def find_hottest(self, since: float, until: float) -> tuple[Range, float]:
        """Return the range with the most writes a second in the deployment, and how many."""
        found = []
        for limit in (self._of_shards, self._of_all, self._of_owners):
            part = limit.rate / RANGE_WRITES_PER_SECOND
            counts = limit.sum_by_key(since, until)
            span = limit.width * math.ceil((until - since) / limit.width)  # windows are whole
            found += [(count / span / part, count, place) for place, count in counts.items()]
        certain = [each for each in found if each[1] >= _MIN_COUNT] or found
        rate, _, place = max(certain, key=lambda each: each[0])
        return place, rate

    def clear(self) -> None:
        for each in (self._of_shards, self._of_all, self._of_owners):
            each.counts.clear()


@dataclass(slots=True)
class StoreLimits:
    """What Firestore takes of writes.

    Attributes:
        ranges: Writes into each sequential index range.
        documents: Writes to each document.
        ramp: Operations on all tasks; None if they do not count.
        is_enforced: Whether writes are counted, and a commit above the limits is aborted.
    """

    ranges: RangeLimits = field(default_factory=RangeLimits)
    documents: RateWindows = field(default_factory=lambda: RateWindows(DOCUMENT_WRITES_PER_SECOND, DOCUMENT_WINDOW))
    ramp: Ramp | None = None
    is_enforced: bool = True
