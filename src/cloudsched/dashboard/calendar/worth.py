"""Which lines of a day's table are shown where it has room for only some of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime, timedelta

    from cloudsched.dashboard.calendar.entries import Entry

_RANKS: Final = {"failed": 0, "late": 0, "open": 1, "offered": 1}
"""The kinds of entries that need somebody, the most urgent first."""
_BUSY: Final = 2
_OTHER: Final = 3


def choose_lines(lines: Mapping[str, Sequence[Entry]], busy: AbstractSet[str], now: datetime, most: int) -> set[str]:
    """Return the names of the lines that are worth most: what failed or is late, then what is open, then busy tasks.

    Of each of these, the nearest to now of each handler come first, so that many of one do not hide those of another.
    """
    found = sorted((*_rate(line, busy, now), name) for name, line in lines.items())
    seen: Counter[tuple[int, str]] = Counter()
    worths = []
    for rank, distance, cause, name in found:
        worths.append((rank, seen[rank, cause], distance, name))
        seen[rank, cause] += 1
    return {name for *_, name in sorted(worths)[:most]}


def _rate(line: Sequence[Entry], busy: AbstractSet[str], now: datetime) -> tuple[int, timedelta, str]:
    """Return the rank of a line, its distance from now, and its cause: those of its most urgent entry."""
    rank, distance, kind, handler = min(
        (_RANKS.get(each.kind, _BUSY if each.task_id in busy else _OTHER), abs(now - each.at), each.kind, each.handler)
        for each in line
    )
    return rank, distance, f"{kind} {handler}"
