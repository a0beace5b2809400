"""The pictures of docs/contributors/engine.md are those of the code."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "src" / "cloudsched" / "engine"
PAGE = (ROOT / "docs" / "contributors" / "engine.md").read_text("utf-8")
ROOMS, _, LIFE = re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)


def find_imports() -> dict[str, set[str]]:
    """Return which rooms of the engine each imports, typing-only imports included."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in ENGINE.rglob("*.py"):
        room = path.relative_to(ENGINE).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("cloudsched.engine."):
                found[room].add(str(node.module).split(".")[2])
    return {room: rooms - {room} for room, rooms in found.items()}


def test_an_arrow_between_rooms_is_an_import() -> None:
    """And no room imports what its arrows do not reach."""
    imports = find_imports()
    arrows: dict[str, set[str]] = defaultdict(set)
    for above, below in re.findall(r"(\w+) --> (\w+)", ROOMS):
        assert below in imports[above], f"{above} does not import {below}"
        arrows[above].add(below)

    def reach(room: str) -> set[str]:
        return arrows[room].union(*map(reach, arrows[room]))

    assert {room: rooms - reach(room) for room, rooms in imports.items() if rooms - reach(room)} == {}


def test_a_box_of_the_life_of_an_attempt_is_a_function() -> None:
    """It is in the file that the box names."""
    boxes = re.findall(r'\["(\S+\.py): ([\w.]+)"\]', LIFE)
    assert len(boxes) > 1
    for file, name in boxes:
        *outer, function = name.split(".")
        body: list[ast.stmt] = ast.parse((ROOT / "src/cloudsched" / file).read_text("utf-8")).body
        for each in outer:
            body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == each)
        assert any(isinstance(node, ast.FunctionDef) and node.name == function for node in body), f"{file}: {name}"
