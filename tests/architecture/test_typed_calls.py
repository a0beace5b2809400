"""Typed calls: both type checkers accept and reject exactly what the examples say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cloudsched.domain.transitions.drafts import TaskDraft
from cloudsched.engine.handlers.typed_calls import CallFields, TaskFields

EXAMPLES = Path(__file__).with_name("typed_calls.py")
MARKED = {
    number
    for number, line in enumerate(EXAMPLES.read_text("utf-8").splitlines(), 1)
    if re.search(r"# rejected: ", line)
}


def test_mypy_rejects_exactly_the_marked_lines() -> None:
    """Each mistake is found, and nothing else is."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", EXAMPLES.name]
    run = subprocess.run(command, capture_output=True, text=True, cwd=EXAMPLES.parent, check=False)  # noqa: S603 - ours
    found = {int(number) for number in re.findall(rf"^{EXAMPLES.name}:(\d+): error", run.stdout, re.MULTILINE)}
    assert MARKED, "no line is marked"
    assert found == MARKED, run.stdout + run.stderr


def test_pyright_rejects_exactly_the_marked_lines() -> None:
    """Each mistake is found, and nothing else is."""
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, EXAMPLES.name]
    run = subprocess.run(command, capture_output=True, text=True, cwd=EXAMPLES.parent, check=False)  # noqa: S603 - ours
    problems = json.loads(run.stdout)["generalDiagnostics"]
    found = {each["range"]["start"]["line"] + 1 for each in problems if each["severity"] == "error"}
    assert found == MARKED, run.stdout + run.stderr


def test_the_fields_of_typed_calls_are_those_of_a_task() -> None:
    """A field that a task gains is known to typed calls as well."""
    explicit = {"handler", "payload", "owner", "schedule"}
    assert set(TaskFields.__annotations__) - {"timezone"} == set(TaskDraft.model_fields) - explicit
    assert set(TaskFields.__annotations__) - set(CallFields.__annotations__) == {"id", "timezone"}
