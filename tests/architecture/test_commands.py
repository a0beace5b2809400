"""The commands that people type: what they are called, what they cost, and what they say."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    "grpc",
    "google.cloud.firestore",
    "google.cloud.tasks",
    "aiohttp",
    "pydantic",
    "functions_framework",
    "flask",
    "cheroot",
    "rich",
}


def run(*command: str, env: dict[str, str] | None = None, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - the tests' own commands
        command, capture_output=True, text=True, timeout=200, check=False, env=env, cwd=cwd, stdin=subprocess.DEVNULL
    )


def cloudsched(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "cloudsched", *arguments)


def test_help_names_every_command_and_imports_none() -> None:
    """`cloudsched --help` lists what there is, without paying for any of it."""
    show = (
        "import sys; from cloudsched.cli.main import cloudsched\n"
        "try:\n    cloudsched(['--help'])\nexcept SystemExit:\n    print(*sorted(sys.modules))"
    )
    said = run(sys.executable, "-c", show)
    *text, modules = said.stdout.splitlines()
    listed = {line.split()[0] for line in text[text.index("Commands:") + 1 :] if line.startswith("  ")}
    assert {"demo", "dev", "emulator", "next", "worker"} <= listed
    assert HEAVY & set(modules.split()) == set()


@pytest.mark.parametrize("command", ["demo", "dev", "emulator", "next", "worker"])
def test_every_command_explains_itself(command: str) -> None:
    """Each command of the list is there, and has a help of its own."""
    said = cloudsched(command, "--help")
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith(f"Usage: cloudsched {command}")


def test_the_version_is_the_package_s() -> None:
    """`cloudsched --version` says which one is installed."""
    assert cloudsched("--version").stdout.startswith("cloudsched, version 0.")


def test_an_unknown_command_is_refused() -> None:
    """A command that is not there is an error of use, exit code 2."""
    said = cloudsched("nothing")
    assert said.returncode == 2
    assert "No such command 'nothing'" in said.stderr


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
        (tools / tool).symlink_to(_which(tool))
    old = tools / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    said = run("bash", str(clone / "emulator.sh"), "demo", env={"PATH": str(tools)})
    assert said.returncode == 1
    assert "Python 3.11 or newer is needed" in said.stderr
    assert not (clone / ".venv").exists()


def _which(tool: str) -> str:
    return run("bash", "-c", f"command -v {tool}").stdout.strip()
