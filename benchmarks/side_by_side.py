"""Timing several ways of doing one thing in one run: turn by turn, so that a busy machine slows all of them alike."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def timed(ways: Mapping[str, Callable[[int], object]], rounds: int, warm_up: int = 30) -> dict[str, list[float]]:
    """Call every way once a round with the round's number; return the seconds that each call took."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for number in range(warm_up + rounds):
        for name in names:
            began = time.perf_counter()
            ways[name](number)
            if number >= warm_up:
                seconds[name].append(time.perf_counter() - began)
        names.append(names.pop(0))  # nobody is always the first
    return seconds


def shown(title: str, seconds: Mapping[str, list[float]], of: str, floors: Mapping[str, float | None]) -> None:
    """Print medians, and the ratio of `of` to each floor, with the most that it may be (None: no target)."""
    table = Table(title=title)
    for heading in ("what", "median ms", "90 % below ms", f"{of} / this", "target"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for name, values in seconds.items():
        ratio = target = ""
        if name in floors:
            most = floors[name]
            ratio = f"{median_ratio(seconds[of], values):.2f}"
            target = f"≤ {most:.2f}" if most is not None else "none"
        ninety = statistics.quantiles(values, n=10)[8]
        table.add_row(name, f"{statistics.median(values) * 1e3:.3f}", f"{ninety * 1e3:.3f}", ratio, target)
    Console(width=110).print(table)


def median_ratio(values: list[float], floor: list[float]) -> float:
    """Return how many times the floor's median the values' median is."""
    return statistics.median(values) / statistics.median(floor)
