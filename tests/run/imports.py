"""Each process of a run begins its imports at another place, so that a fresh checkout is compiled once, not by each.

All import every module of the tests, in whatever order. In the same order, they would all compile the same one at the
same time, and pytest's rewriting of assertions makes that slow. So each comes to what the others have compiled.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

TESTS = Path(__file__).parents[1]


def pytest_collection(session: pytest.Session) -> None:
    """Import all test modules, in a process of xdist that is about to collect all of them."""
    own: dict[str, object] | None = getattr(session.config, "workerinput", None)
    is_whole = [Path(each).resolve() for each in session.config.args] in ([TESTS], [TESTS.parent])
    if own is None or not is_whole or session.config.getoption("--quick"):
        return
    files = sorted(TESTS.rglob("test_*.py"))
    for path in begin_at(files, int(str(own["workerid"]).removeprefix("gw")), int(str(own["workercount"]))):
        with suppress(Exception):  # pytest imports it again, and reports what is wrong with it
            import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))


def begin_at(files: Sequence[Path], process: int, processes: int) -> list[Path]:
    """Return all files, from the place on where one of several processes begins."""
    start = len(files) * process // processes
    return [*files[start:], *files[:start]]
