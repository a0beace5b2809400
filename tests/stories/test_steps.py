"""How many steps a task takes through the code: `python -m benchmarks.steps` counts what you must read to follow it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.steps import PAGE, Steps, count_all, find_excess, read_recorded


def test_steps_are_counted_alike_each_time(tmp_path: Path) -> None:
    """The same code takes the same steps, in another folder too, whether or not its process has counted before."""
    counts = [count_all(_make(tmp_path / name)) for name in ("first", "second", "third")]
    assert counts[0] == counts[1] == counts[2]
    assert read_recorded(PAGE.read_text("utf-8")).keys() == counts[0].keys()


def test_only_more_than_a_tenth_too_many_is_a_fault() -> None:
    """A helper function more is none."""
    steps = Steps(Counter({("a.py", "f"): 10, ("b.py", "g"): 1}))
    assert find_excess({"a creation": steps}, {"a creation": (10, 2)}) == []
    assert find_excess({"a creation": steps}, {"a creation": (9, 1)}) == [
        "a creation: 11 calls, recorded 9",
        "a creation: 2 files, recorded 1",
    ]


def _make(folder: Path) -> Path:
    folder.mkdir()
    return folder
