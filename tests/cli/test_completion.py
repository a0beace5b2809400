"""Completion: what each shell loads, and what it then completes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import CommandResult

Run = Callable[..., CommandResult]


@pytest.fixture
def complete(run_command: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return what the package answers to bash for the last word."""

    def ask(*words: str) -> list[str]:
        monkeypatch.setenv("_CLOUDSCHED_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["cloudsched", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return [line.partition(",")[2] for line in run_command().out.splitlines()]

    return ask


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("im",), {"import"}),
        (("r",), {"run"}),
        (("tasks", "tr"), {"tree", "trigger"}),
        (("import", "cl"), {"cloud-scheduler"}),
        (("dev", "--st"), {"--store"}),
        (("dev", "--store", "s"), {"sqlite"}),
        (("completion", ""), {"bash", "zsh", "fish"}),
    ],
    ids=lambda each: " ".join(sorted(each)) if isinstance(each, set) else " ".join(each),
)
def test_commands_options_and_values_are_completed(
    complete: Callable[..., list[str]], words: tuple[str, ...], expected: set[str]
) -> None:
    """At each place, those that fit and no others."""
    assert set(complete(*words)) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_accepts_its_script(shell: str, run_command: Run, tmp_path: Path) -> None:
    """Its own syntax check passes, where the shell is installed; the script always asks this program."""
    script = run_command("completion", shell).out
    assert "_CLOUDSCHED_COMPLETE" in script
    assert "cloudsched" in script.strip().splitlines()[-1] or shell == "zsh"
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(script)
        done = subprocess.run([program, "-n", str(tmp_path / "script")], capture_output=True, check=False)  # noqa: S603
        assert done.returncode == 0, done.stderr


def test_bash_completes_with_the_script(tmp_path: Path, run_command: Run) -> None:
    """The whole way: the script is loaded, and its function asks the program and fills COMPREPLY."""
    bash = shutil.which("bash")
    assert bash is not None
    program = tmp_path / "cloudsched"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m cloudsched "$@"\n')
    program.chmod(0o755)
    (tmp_path / "script").write_text(run_command("completion", "bash").out)
    text = (
        f"source {tmp_path}/script; COMP_WORDS=(cloudsched imp); COMP_CWORD=1; "
        '_cloudsched_completion cloudsched; echo "${COMPREPLY[@]}"'
    )
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [bash, "-c", text]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert done.stdout.strip() == "import"
