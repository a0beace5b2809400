"""The pictures of packages and rooms speak of the code as it is."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.test_imports import BELOW, SOURCE
from tests.cases import try_each

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributors" / "architecture.md").read_text("utf-8").partition("## The way of a dispatch")[0]


def _find_nodes(page: str) -> set[str]:
    return set(re.findall(r'^    (\w+)\["', page, re.MULTILINE))


def _find_arrows(page: str) -> list[tuple[str, str]]:
    return re.findall(r"^    (\w+) --> (\w+)$", page, re.MULTILINE)


def _reachable(page: str, node: str) -> set[str]:
    found: set[str] = set()
    waiting = {node}
    while waiting:
        following = {target for source, target in _find_arrows(page) if source in waiting}
        waiting = following - found
        found |= following
    return found


def test_the_picture_shows_every_package() -> None:
    """Each package and top-level module has a box, and no box is of something that is gone."""
    there = {path.stem for path in SOURCE.iterdir() if path.name not in {"py.typed", "__pycache__"}}
    assert there - {"__init__", "__main__"} == _find_nodes(PAGE)


@try_each("part", sorted(BELOW))
def test_the_picture_allows_what_the_code_may_import(part: str) -> None:
    """What the import test allows a package is what its box reaches by arrows; `cli` may import everything."""
    assert BELOW[part] <= _reachable(PAGE, part)


def test_every_room_is_described() -> None:
    """The table has a row for each room, and none for one that is gone."""
    rooms = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.glob("*/*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+/\w+)` \|", PAGE, re.MULTILINE)) == rooms
