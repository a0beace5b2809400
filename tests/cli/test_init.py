"""``cloudsched init``: the project that it writes runs green as it is, and nothing of yours is overwritten."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.cli.conftest import CommandResult
from tests.harness import run_to_end

from cloudsched.cli.init import AGENTS, FILES

Run = Callable[..., CommandResult]


def execute(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return run_to_end(command, cwd=folder, env=environment)


@pytest.fixture(name="project", scope="module")
def write_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "My Shop"
    written = execute(folder.parent, sys.executable, "-m", "cloudsched", "init", "My Shop")
    assert written.returncode == 0, written.stderr
    return folder


def test_the_tests_of_a_new_project_pass(project: Path) -> None:
    """All of them, and warnings are errors."""
    command = (sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider")
    done = execute(project, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_the_commands_of_its_readme_work(project: Path) -> None:
    """Those that need no network: each handler runs from its folder, and the declared task is in the local stack."""
    text = (project / "README.md").read_text()
    for command, result in (
        ("""cloudsched run remind --payload '{"text": "Tea"}'""", '"Tea"\n'),
        ("cloudsched run onboard --durable --skip-waits", '"started"\n'),
    ):
        assert command in text
        done = execute(project, "/bin/sh", "-c", command.replace("cloudsched", f"{sys.executable} -m cloudsched", 1))
        assert (done.returncode, done.stdout) == (0, result), done.stderr
    cloudsched = (sys.executable, "-m", "cloudsched")
    done = execute(project, *cloudsched, "dev", "--store", "sqlite", "--", *cloudsched, "tasks", "list", "--json")
    assert '"id": "report"' in done.stdout, done.stderr


def test_its_files_are_well_formed(project: Path) -> None:
    """Ruff, the shell, YAML and TOML find nothing; the functions are importable; no placeholder is left."""
    assert {path.relative_to(project).as_posix() for path in project.rglob("*.*") if path.is_file()} >= set(FILES)
    for path in FILES:
        assert "{{" not in (project / path).read_text("utf-8").replace("${{", "")
    lint = execute(project, sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F,B,UP,D1", ".")
    assert lint.returncode == 0, lint.stdout
    assert execute(project, sys.executable, "-m", "ruff", "format", "--isolated", "--check", ".").returncode == 0
    sourced = execute(project, "bash", "-euc", "source infra/config.sh && test -f $FUNCTIONS_DIR/main.py")
    assert sourced.returncode != 0, "quoted paths only: the folder has a blank"
    sourced = execute(project, "bash", "-euc", 'source infra/config.sh && test -f "$FUNCTIONS_DIR/main.py"')
    assert sourced.returncode == 0, sourced.stderr
    assert "test" in yaml.safe_load((project / ".github/workflows/ci.yml").read_text())["jobs"]
    assert tomllib.loads((project / "pyproject.toml").read_text())["project"]["name"] == "my-shop"
    functions = execute(project / "functions", sys.executable, "-c", "import main; main.api, main.execute, main.sweep")
    assert functions.returncode == 0, functions.stderr


@pytest.mark.parametrize("agent", AGENTS)
def test_a_project_with_an_agent_passes_its_tests(agent: str, tmp_path: Path) -> None:
    """Of each framework. Its requirements name the framework, and its files are well formed."""
    assert execute(tmp_path, sys.executable, "-m", "cloudsched", "init", "--agent", agent).returncode == 0
    done = execute(tmp_path, sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    texts = {Path(each).name: (tmp_path / each).read_text("utf-8") for each in FILES}
    assert not [name for name, text in texts.items() if "{{" in text.replace("${{", "")]
    project = tomllib.loads(texts["pyproject.toml"])
    assert project["project"]["dependencies"][0].startswith(f"cloudsched[{agent}]")
    assert project["dependency-groups"]["dev"][0].startswith(f"cloudsched[dev,{agent}]"), "its tests need it"
    assert set(project["project"]["dependencies"][1:]) <= set(project["dependency-groups"]["dev"])
    assert texts["requirements.txt"].startswith(f"cloudsched[gcp,{agent}]")
    assert "cloudsched run" not in texts["README.md"]
    lint = execute(tmp_path, sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F,B,UP", ".")
    assert lint.returncode == 0, lint.stdout
    assert execute(tmp_path, sys.executable, "-m", "ruff", "format", "--isolated", "--check", ".").returncode == 0


def test_no_file_is_overwritten(tmp_path: Path, run_command: Run) -> None:
    """If one exists, nothing is written, not even the others."""
    taken = "infra/config.sh"
    (tmp_path / taken).parent.mkdir()
    (tmp_path / taken).write_text("mine")
    refused = run_command("init", str(tmp_path))
    assert refused.code == 2
    assert taken in refused.err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / taken]
    assert (tmp_path / taken).read_text() == "mine"
