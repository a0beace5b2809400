"""How many steps a task takes through the code: what somebody must read to follow it."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.steps import CREATE, RUN, RUN_WITH_CONTEXT, count_all

LIMITS = {CREATE: (149, 34), RUN: (254, 42), RUN_WITH_CONTEXT: (255, 42)}
"""The most calls, and the most files. Whoever needs more says why in the commit; whoever needs fewer lowers them."""


def test_a_task_takes_no_more_steps_than_are_known(tmp_path: Path) -> None:
    """A creation and a dispatch call no more of our functions, in no more files, than the table says."""
    found = {name: (each.count, each.files) for name, each in count_all(tmp_path).items()}
    exceeded = {
        name: steps for name, steps in found.items() if steps[0] > LIMITS[name][0] or steps[1] > LIMITS[name][1]
    }
    assert not exceeded, f"python -m benchmarks.steps --list '{next(iter(exceeded))}' names each function"


def test_the_page_of_benchmarks_says_the_same() -> None:
    """Its table has the counts that are held here."""
    page = (Path(__file__).parents[2] / "docs/explanation/benchmarks.md").read_text("utf-8")
    rows = re.findall(r"^\| (a [^|]*) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert {name: (int(calls), int(files)) for name, calls, files in rows} == LIMITS


def test_steps_are_counted_alike_each_time(tmp_path: Path) -> None:
    """The same code takes the same steps, in another folder too, whether or not its process has counted before."""
    counts = [count_all(_make(tmp_path / name)) for name in ("first", "second", "third")]
    assert counts[0] == counts[1] == counts[2]


def _make(folder: Path) -> Path:
    folder.mkdir()
    return folder
