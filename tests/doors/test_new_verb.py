"""A verb is a row of the table, and a decision. All doors follow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_new_verb_is_found_at_all_doors() -> None:
    """In a process that adds one before anything reads the table. See `new_verb`."""
    options = ["-q", "--tb=short", "-p", "no:cacheprovider", "-p", "tests.doors.new_verb"]
    command = [sys.executable, "-m", "pytest", *options, "tests/doors/new_verb_cases.py"]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)  # noqa: S603 - ours
    assert run.returncode == 0, run.stdout + run.stderr
