"""Completion: what the program answers to a shell."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.cli.conftest import CommandResult


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("im",), {"import"}),
        (("tasks", "tr"), {"tree", "trigger"}),
        (("dev", "--st"), {"--store"}),
        (("dev", "--store", "s"), {"sqlite"}),
    ],
    ids=lambda each: " ".join(sorted(each)) if isinstance(each, set) else " ".join(each),
)
def test_commands_options_and_values_are_completed(
    words: tuple[str, ...],
    expected: set[str],
    run_command: Callable[..., CommandResult],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At each place, those that fit and no others."""
    monkeypatch.setenv("_CLOUDSCHED_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["cloudsched", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert {line.partition(",")[2] for line in run_command().out.splitlines()} == expected
