"""The command that a message tells to write works in another terminal, too."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from cloudsched.config.own_command import find_own_command


def test_a_program_that_starts_us_names_itself() -> None:
    """As ``./emulator.sh`` does in a clone, whatever its folder is called."""
    assert shlex.split(find_own_command({"CLOUDSCHED_COMMAND": "../my clone/run.sh"})) == ["../my clone/run.sh"]


def test_the_command_is_named_only_where_it_is_found(tmp_path: Path) -> None:
    """On a path without it, Python is: what is printed runs there."""
    other = tmp_path / "cloudsched"
    other.write_text("#!/bin/sh\nexit 7\n", "utf-8")
    other.chmod(0o755)
    for path in ("", str(tmp_path)):  # the other one is not this installation's
        command = [*shlex.split(find_own_command({"PATH": path})), "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own program
        assert "cloudsched" in done.stdout
    assert find_own_command({"PATH": str(Path(sys.executable).parent)}) == "cloudsched"
