"""What the table of mutations must keep, so that a test that goes red means something."""

from __future__ import annotations

import pytest
from tests.mutations.__main__ import RED, copy_project, judge
from tests.mutations.table import MUTATIONS, ROOT

ROWS = {row.name: row for row in MUTATIONS}


def test_each_row_finds_what_it_breaks_and_what_must_see_it() -> None:
    """A text that the code no longer has, or has twice, breaks nothing, or something else; a lost test sees nothing."""
    assert len(ROWS) == len(MUTATIONS)
    assert [row.name for row in MUTATIONS if not row.is_found] == []
    for row in MUTATIONS:
        file, test = row.test.split("::")
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), row.name


@pytest.mark.parametrize(
    "name", ["older revision", "lock takes one too many", "recorded step called again", "any token", "other owners"]
)
def test_a_broken_rule_turns_its_test_red(name: str) -> None:
    """Five rows; `python -m tests.mutations` tries all."""
    with copy_project() as copy:
        assert judge(copy, ROWS[name]) == RED
