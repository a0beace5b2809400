"""Time several ways of doing one thing in alternation, so that other load on the machine slows all of them alike."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def time_alternately(
    candidates: Mapping[str, Callable[[int], object]], rounds: int, warm_up: int = 30
) -> dict[str, list[float]]:
    """Call each candidate once per round with the round's number; return the seconds that each call took.

    The first `warm_up` rounds, which come on top of `rounds`, are not counted.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    names = list(candidates)
    for number in range(warm_up + rounds):
        for name in names:
            start = time.perf_counter()
            candidates[name](number)
            if number >= warm_up:
                seconds[name].append(time.perf_counter() - start)
        names.append(names.pop(0))  # a different candidate goes first in each round
    return seconds


def show_comparison(
    title: str, seconds: Mapping[str, list[float]], subject: str, floors: Mapping[str, float | None]
) -> None:
    """Print the medians, and the ratio of `subject` to each floor with its maximum (None: no target)."""
    table = Table(title=title)
    for heading in ("candidate", "median ms", "90th percentile ms", f"{subject} / this", "target"):
        table.add_column(heading, justify="left" if heading == "candidate" else "right")
    for name, values in seconds.items():
        ratio = target = ""
        if name in floors:
            maximum = floors[name]
            ratio = f"{divide_medians(seconds[subject], values):.2f}"
            target = f"≤ {maximum:.2f}" if maximum is not None else "none"
        percentile = statistics.quantiles(values, n=10)[8]
        table.add_row(name, f"{statistics.median(values) * 1e3:.3f}", f"{percentile * 1e3:.3f}", ratio, target)
    Console(width=110).print(table)


def divide_medians(values: list[float], floor: list[float]) -> float:
    """Return the median of the values divided by the floor's median."""
    return statistics.median(values) / statistics.median(floor)
