"""Where the package of an extra is not installed, every entry point names the pip command that brings it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness import run_to_end

from cloudsched.config.imports import require_extra

RUN = "import sys; sys.modules[{package!r}] = None; sys.argv[1:1] = []; {code}"
"""A module that is None in sys.modules cannot be imported; what it raises is the same as for one that is not there."""
COMMAND = "from cloudsched.__main__ import main; main()"
HANDLERS = "from cloudsched import App\napp = App()\n@app.handler('note')\ndef note() -> None: ...\n"


def run(folder: Path, package: str, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code where a package cannot be imported."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLOUDSCHED_")}
    (folder / "handlers.py").write_text(HANDLERS, encoding="utf-8")
    return run_to_end(
        [sys.executable, "-c", RUN.format(package=package, code=code), *arguments],
        cwd=folder,
        env=kept,
        stdin=subprocess.DEVNULL,
    )


def names_extra(line: str, package: str, extra: str) -> bool:
    """Return whether a line ends with how to install an extra, from where cloudsched itself was installed."""
    remedy = rf"(pip install 'cloudsched\[{extra}\]( @ \S+)?'|install cloudsched with its extra {extra})"
    return re.search(rf"needs {package}, which is not installed: {remedy}$", line) is not None


@pytest.mark.parametrize(
    ("package", "command", "extra"),
    [
        ("click", "--help", "server"),
        ("grpc", "demo", "dev"),
        ("aiohttp", "dev --port 0 --tasks-port 0 -- true", "dev"),
        ("h2", "emulator --port 0", "dev"),
    ],
)
def test_a_command_names_what_to_install(tmp_path: Path, package: str, command: str, extra: str) -> None:
    """One line on standard error, without a traceback, and an exit code that is not 0."""
    done = run(tmp_path, package, COMMAND, *command.split())
    assert done.returncode != 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("cloudsched: cloudsched")
    assert names_extra(line, package, extra)


@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [
        ("httpx", "from cloudsched.client import Client", "worker"),
        ("jwt", "from cloudsched.emulator import CloudTasksEmulator", "dev"),
    ],
)
def test_an_import_names_what_to_install(tmp_path: Path, package: str, code: str, extra: str) -> None:
    """`from cloudsched.client import Client` and the like say it in the last line."""
    done = run(tmp_path, package, code)
    assert done.returncode == 1
    assert names_extra(done.stderr.splitlines()[-1], package, extra)


@pytest.mark.parametrize(("module", "importer"), [("cloudsched.no_such", "cloudsched.app"), ("no_such", "handlers")])
def test_other_failures_stay_what_they_are(module: str, importer: str) -> None:
    """A mistake of ours, and what a user's own code fails to import, are not blamed on an extra."""
    with pytest.raises(ModuleNotFoundError), require_extra("This", "dev"):
        exec(f"import {module}", {"__name__": importer})  # noqa: S102 - what they would do
