"""A creation and a dispatch call no more of our functions than docs/contributors/benchmarks.md says."""

from pathlib import Path

from benchmarks.steps import PAGE, count_all, find_excess, read_recorded


def test_a_creation_and_a_dispatch_take_no_more_steps_than_the_page_says(tmp_path: Path) -> None:
    """An exact count. Where it falls, write the lower one: `python -m benchmarks.steps` prints it."""
    assert find_excess(count_all(tmp_path), read_recorded(PAGE.read_text("utf-8"))) == []
