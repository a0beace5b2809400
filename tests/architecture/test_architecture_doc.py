"""The pictures of packages and rooms, the table of guarantees and CONTRIBUTING speak of the code as it is."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.test_imports import BELOW, SOURCE
from tests.cases import try_each

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8").partition("## The way of a dispatch")[0]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
ENGINE_PAGE = (ROOT / "docs" / "explanation" / "engine.md").read_text("utf-8")
TO_ADD = re.findall(r"^\| (?:a|an|another) [^|]+ \|([^|]+)\|([^|]+)\|([^|]+)\|$", CONTRIBUTING, re.MULTILINE)


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


def test_every_file_of_an_attempt_s_way_and_of_the_reading_path_exists() -> None:
    """A file that moves is moved on the page, too."""
    named = set(re.findall(r"[\"`]([\w/]+/\w+\.py)", ENGINE_PAGE.partition("## The life of one attempt")[2]))
    assert named
    assert sorted(path for path in named if not (SOURCE / path).is_file()) == []


def test_every_room_is_described() -> None:
    """The table has a row for each room, and none for one that is gone."""
    rooms = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.glob("*/*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+/\w+)` \|", PAGE, re.MULTILINE)) == rooms


def test_what_contributing_names_exists() -> None:
    """Each typical change says where to start, what follows and where the proof goes; the paths are there."""
    assert TO_ADD
    for start, then, proof in TO_ADD:
        assert re.search(r"`[\w/]+\.py`", start)
        for path in re.findall(r"`([\w/]+/[\w.]+|engine/ports|adapters)`", start + then):
            assert (SOURCE / path).exists(), path
        for path in re.findall(r"`([\w/.]+)`", proof):
            assert (ROOT / "tests" / path).exists(), path
        for path, name in re.findall(r"`([\w/]+\.py)`: `(\w+)`", start):
            assert re.search(rf"^(class )?{name}\b", (SOURCE / path).read_text("utf-8"), re.MULTILINE), name
