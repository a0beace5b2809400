"""`pytest --changed`: the tests that belong to what differs from main, about a minute of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.run.shards import TESTS, seconds_of

ROOT = TESTS.parent
MOST = 90.0
"""How many seconds of tests are chosen: they run in less than a minute."""
BESIDE = {
    "src/cloudsched/engine/ports": ("contract",),
    "src/cloudsched/adapters": ("contract",),
    "src/cloudsched/app.py": ("engine/tasks/test_schedule_forms.py", "doors"),
    "docs": ("docs",),
    "README.md": ("docs", "stories/test_tutorial.py"),
    "infra": ("deployables",),
    "functions": ("deployables/test_functions.py",),
    "clients": ("clients",),
}
"""Where tests of a part are, besides the folder of the same name in `tests`."""
_CHOSEN = pytest.StashKey["set[Path] | None"]()
_LEFT_OUT = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run the tests of what differs from main, those nearest to a change first, about a minute of them"
    parser.getgroup("cloudsched").addoption("--changed", action="store_true", help=text)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what was chosen, and what there was no time for."""
    chosen = find_changed(config)
    if chosen is None:
        return None
    late = config.stash.get(_LEFT_OUT, 0)
    more = f"; {late} more belong to it, which take too long" if late else ""
    return f"changed: {len(chosen)} files of tests belong to what differs from main{more}"


def find_changed(config: pytest.Config) -> set[Path] | None:
    if not config.getoption("--changed"):
        return None
    if _CHOSEN not in config.stash:
        chosen: set[Path] = set()
        budget, late = MOST, 0
        for file in dict.fromkeys(order_tests(list_changes())):
            budget -= seconds_of(file)
            chosen.update([file] if budget >= 0 or not chosen else [])
            late += budget < 0
        config.stash[_CHOSEN], config.stash[_LEFT_OUT] = chosen, late
    return config.stash[_CHOSEN]


def list_changes() -> list[str]:
    """Return the paths that differ from main, and those that Git does not know yet."""
    base = _git("merge-base", "HEAD", "main") or _git("merge-base", "HEAD", "origin/main")
    changed = _git("diff", "--name-only", *(base or ["HEAD"]))
    return [*changed, *_git("ls-files", "--others", "--exclude-standard")]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603, S607
    return done.stdout.splitlines() if done.returncode == 0 else []


def order_tests(changes: list[str]) -> list[Path]:
    """Return tests from near to far: changed ones, those of a changed module, its room's, those beside it."""
    paths = [Path(each) for each in changes]
    rooms = [(path, folder) for path in paths for folder in _list_rooms(path)]
    beside = [
        TESTS / place
        for path in paths
        for start, places in BESIDE.items()
        if path.is_relative_to(start)
        for place in places
    ]
    rings: list[Iterable[Path]] = [
        (ROOT / path for path in paths),
        (found for path, folder in rooms for found in sorted(folder.glob(f"test_{path.stem.lstrip('_')}*.py"))),
        (found for _, folder in rooms for found in sorted(folder.glob("test_*.py"))),
        (found for place in beside for found in (sorted(place.rglob("test_*.py")) if place.is_dir() else [place])),
        (found for _, folder in rooms for found in sorted(folder.rglob("test_*.py"))),
    ]
    return [path for ring in rings for path in ring if _is_test(path)]


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_") and path.suffix == ".py" and path.is_relative_to(TESTS) and path.exists()


def _list_rooms(path: Path) -> list[Path]:
    """Return the folder of tests that mirrors a source's, or the nearest one above it."""
    if path.is_relative_to("src/cloudsched"):
        room = TESTS / path.relative_to("src/cloudsched").parent
    elif path.is_relative_to("tests") and path.suffix == ".py":
        room = TESTS.parent / path.parent
    else:
        return []
    while not room.is_dir():
        room = room.parent
    return [] if room == TESTS else [room]
