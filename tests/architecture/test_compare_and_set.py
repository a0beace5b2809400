"""Trying again after a conflict is one function, with one bound."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src/cloudsched"
HELPER = PACKAGE / "engine/state/commits.py"


def test_nothing_else_tries_again_after_a_conflict() -> None:
    """No other loop of the package catches a VersionConflict: `compare_and_set` does, and bounds how often."""
    looping = {
        path
        for path in PACKAGE.rglob("*.py")
        if "VersionConflict" in (text := path.read_text("utf-8"))
        for loop in ast.walk(ast.parse(text))
        if isinstance(loop, ast.For | ast.While)
        if any(_catches_conflict(each) for each in ast.walk(loop))
    }
    assert looping == {HELPER}


def _catches_conflict(node: ast.AST) -> bool:
    """Whether a handler of this error ends neither in a return nor in an error."""
    if not isinstance(node, ast.ExceptHandler) or node.type is None or "VersionConflict" not in ast.unparse(node.type):
        return False
    return not isinstance(node.body[-1], ast.Return | ast.Raise)
