"""`pytest --quick` has a test of every room, and a new room without one fails here."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from tests.harness import ROOT
from tests.run.quick import ROOMS, find_files

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = ROOT / "src" / "cloudsched"
NESTED = {"adapters", "domain", "emulator", "engine", "web"}


def list_rooms() -> list[str]:
    """Return the folders with code: those of the package, and those of its large rooms."""
    inside = [each for name in NESTED for each in (PACKAGE / name).iterdir()]
    folders = [PACKAGE, *PACKAGE.iterdir(), *inside]
    rooms = [each.relative_to(PACKAGE).as_posix() for each in folders if each.is_dir() and any(each.glob("*.py"))]
    return sorted("" if room == "." else room for room in rooms)


def list_imports(path: Path) -> set[str]:
    """Return the modules that a file imports, and those whose names it takes."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found


def test_every_room_has_a_quick_test() -> None:
    """The table names each room of `src/cloudsched`, and no other."""
    assert sorted(ROOMS) == list_rooms()


@pytest.mark.parametrize("room", ROOMS)
def test_the_quick_tests_of_a_room_are_about_it(room: str) -> None:
    """They exist, and the first lies in the folder of the room's name or imports from the room."""
    for path in find_files(room):
        assert "\ndef test_" in path.read_text("utf-8"), path
    first = find_files(room)[0]
    dotted = ".".join(("cloudsched", *room.split("/"))).removesuffix(".")
    at_home = room and first.parent == ROOT / "tests" / room
    assert at_home or any(each == dotted or each.startswith(f"{dotted}.") for each in list_imports(first)), first
