"""What a newcomer types first: one command shows the product, one passes the tests, and a clone has what they need."""

from __future__ import annotations

import re
from pathlib import Path

from tests.doc_blocks import read_blocks

ROOT = Path(__file__).parents[2]


def test_the_readme_has_both_commands_and_ci_calls_the_same_tests() -> None:
    """They stand in one block, with how long the tests take; CI hands its own arguments on to them."""
    (block,) = (each.text for each in read_blocks(ROOT / "README.md") if "emulator.sh demo" in each.text)
    assert re.search(r"^(\./emulator\.sh pytest) .*minutes", block, re.MULTILINE)
    assert '\n./emulator.sh pytest "$@" ' in (ROOT / ".ci" / "run").read_text()


def test_what_a_test_reads_lies_in_the_repository() -> None:
    """No path of a test leads out of the clone."""
    assert [
        f"{file.relative_to(ROOT)}: {beginning}.parents[{number}]"
        for file in (ROOT / "tests").rglob("*.py")
        for beginning, number in re.findall(r"([\w()]+)\.parents\[(\d+)\]", file.read_text("utf-8"))
        if not beginning.endswith("(__file__)") or int(number) >= len(file.relative_to(ROOT).parts)
    ] == []
