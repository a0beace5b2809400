"""An option is beside the core: without its file and its row, the rest runs as before."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

from cloudsched.engine.options.table import TABLE
from cloudsched.engine.state.options import Option

ROOT = Path(__file__).parents[3]
FILE = "src/cloudsched/engine/options/table.py"
CORE = [f"tests/engine/execution/test_{name}.py" for name in ("handler_outcomes", "early_deliveries", "lease_expiry")]


@pytest.mark.parametrize("option", ["usage", "zone_plans"])
def test_an_option_can_be_taken_out(option: str, tmp_path: Path) -> None:
    """The core's own tests pass on a copy of the project without its file and its row."""
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / FILE).with_name(f"{option}.py").unlink()
    table = (tmp_path / FILE).read_text("utf-8")
    row = rf'^    "cloudsched\.engine\.options\.{option}:.*\n'
    without, count = re.subn(row, "", table, flags=re.MULTILINE)
    assert count == 1
    (tmp_path / FILE).write_text(without, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CORE]
    environment = {"PYTHONPATH": f"{tmp_path}/src:{tmp_path}", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - pytest
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("place", TABLE)
def test_each_hook_of_an_option_is_called(place: str) -> None:
    """A hook that the table does not have would never be called, and nobody would be told."""
    defined = vars(resolve_name(place))
    assert {each for each in vars(Option) if each in defined and not each.startswith("_")} == {*TABLE[place]}
