"""Typed calls: mypy accepts and rejects exactly what the examples say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.handlers.typed_calls import CallFields, TaskFields

EXAMPLES = Path(__file__).with_name("typed_calls.py")
MARKED = {
    number
    for number, line in enumerate(EXAMPLES.read_text("utf-8").splitlines(), 1)
    if re.search(r"# rejected: ", line)
}


def test_mypy_rejects_exactly_the_marked_lines() -> None:
    """Each mistake is found, and nothing else is.

    A file that uses each public name as its users do is accepted as well, and the wrong uses in it are refused: mypy
    says so if it is not told to ignore an error there that it does not find.
    """
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", EXAMPLES.name, "typing_public.py"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=EXAMPLES.parent, check=False)  # noqa: S603 - ours
    found = re.findall(r"^([\w./]+):(\d+): error", run.stdout, re.MULTILINE)
    assert MARKED, "no line is marked"
    assert set(found) == {(EXAMPLES.name, str(number)) for number in MARKED}, run.stdout + run.stderr


def test_the_fields_of_typed_calls_are_those_of_a_task() -> None:
    """A field that a task gains is known to typed calls as well."""
    explicit = {"handler", "payload", "owner", "schedule"}
    assert set(TaskFields.__annotations__) - {"timezone"} == set(TaskDraft.model_fields) - explicit
    assert set(TaskFields.__annotations__) - set(CallFields.__annotations__) == {"id", "timezone"}
