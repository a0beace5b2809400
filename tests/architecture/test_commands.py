"""The commands that people type: what they are called, what they cost, and what they say."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_emulator_sh_says_which_python_it_needs(tmp_path: Path) -> None:
    """Without a Python that is new enough it says so in a sentence, and changes nothing."""
    clone, tools = tmp_path / "clone", tmp_path / "bin"
    clone.mkdir()
    tools.mkdir()
    (clone / "requirements").mkdir()
    locks = [path.relative_to(ROOT).as_posix() for path in (ROOT / "requirements").iterdir()]
    for name in ("emulator.sh", "pyproject.toml", *locks):
        (clone / name).write_bytes((ROOT / name).read_bytes())
    for tool in ("bash", "dirname", "cksum", "cat"):
        (tools / tool).symlink_to(shutil.which(tool) or tool)
    old = tools / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    command, bash = (str(clone / "emulator.sh"), "demo"), str(tools / "bash")
    said = subprocess.run((bash, *command), capture_output=True, text=True, check=False, env={"PATH": str(tools)})  # noqa: S603 - ours
    assert said.returncode == 1
    assert "Python 3.11 or newer is needed" in said.stderr
    assert not (clone / ".venv").exists()
