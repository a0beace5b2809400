"""The pictures of packages and rooms, the table of guarantees and CONTRIBUTING speak of the code as it is."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.test_imports import BELOW, SOURCE, room_targets
from tests.cases import try_each

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8").partition("## The way of a dispatch")[0]
TESTS = (ROOT / "docs" / "explanation" / "tests.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
ENGINE_PAGE = (ROOT / "docs" / "explanation" / "engine.md").read_text("utf-8")
ENGINE = ENGINE_PAGE.partition("## A commit is a value")[0]
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


def test_the_engines_picture_shows_its_rooms_and_their_imports() -> None:
    """What a room imports is reached by its arrows, and each arrow is an import, drawn once; none leads upwards."""
    rooms = room_targets("engine")
    del rooms["__init__"]
    assert rooms.keys() == _find_nodes(ENGINE)
    assert not {room: missing for room, needed in rooms.items() if (missing := needed - _reachable(ENGINE, room))}
    arrows = _find_arrows(ENGINE)
    assert not [arrow for arrow in arrows if arrow[1] not in rooms[arrow[0]]]
    assert not [arrow for arrow in arrows if arrow[0] in _reachable(ENGINE, arrow[1])]
    assert len(arrows) == len(set(arrows)) > len(rooms)


def test_every_file_of_an_attempt_s_way_and_of_the_reading_path_exists() -> None:
    """A file that moves is moved on the page, too."""
    named = set(re.findall(r"[\"`]([\w/]+/\w+\.py)", ENGINE_PAGE.partition("## The life of one attempt")[2]))
    assert named
    assert sorted(path for path in named if not (SOURCE / path).is_file()) == []


def test_every_room_is_described() -> None:
    """The table has a row for each room, and none for one that is gone."""
    rooms = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.glob("*/*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+/\w+)` \|", PAGE, re.MULTILINE)) == rooms


def test_every_rule_names_the_tests_that_hold_it() -> None:
    """The eight rules have a row each, with an invariant, a situation and a process; all of the files exist."""
    rows = re.findall(r"^\| ([1-8]) \|(.*tests/.*)\|$", TESTS, re.MULTILINE)
    assert [number for number, _ in rows] == list("12345678")
    for _, cells in rows:
        columns = [re.findall(r"`(tests/[\w/]+\.py)`", cell) for cell in cells.split("|")]
        assert len(columns) == 3
        assert all(columns)
        for path in (path for column in columns for path in column):
            assert "def test_" in (ROOT / path).read_text("utf-8") or "/invariants_" in path, path


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
