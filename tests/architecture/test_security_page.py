"""The page on security names, for each promise and each threat, tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cases import try_each
from tests.doc_blocks import read_section

ROOT = Path(__file__).parents[2]
ROWS = [
    line
    for heading in ("What security promises", "What attackers may try")
    for line in read_section(ROOT / "docs/guarantees.md", heading).splitlines()
    if line.startswith("| ") and not line.startswith(("| promise |", "| somebody tries |"))
]


@try_each("row", ROWS)
def test_each_promise_and_each_threat_has_its_tests(row: str) -> None:
    """The last column names files or folders of tests, modules that compare in constant time, or the type check."""
    *_, last, _end = row.split(" |")
    named = re.findall(r"`([^`]+)`", last)
    assert named or last.strip() == "the type check"
    for name in named:
        files = [*ROOT.glob(f"tests/**/{name}.py"), *ROOT.glob(f"src/**/{name}"), ROOT / name]
        assert any(each.exists() for each in files) or name == "hmac.compare_digest", name


def test_promises_and_threats_are_found() -> None:
    """So that a table that is written otherwise does not pass unseen."""
    assert len(ROWS) > 60
