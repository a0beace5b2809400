"""Node tools that check the API's description and our iCalendar: from npm, for development, optional on a laptop."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "node"
_TIMEOUT_SECONDS = 300
_ENVIRONMENT = {
    "REDOCLY_TELEMETRY": "off",
    "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    "npm_config_update_notifier": "false",
}


def install_node_tools(source: Path = SOURCES) -> Path:
    """Return a folder with what a folder's lock file names, installed into the virtual environment if necessary.

    Skips the test where npm is missing or cannot install them, but fails it where ``CI`` is set.
    """
    files = [source / "package.json", source / "package-lock.json"]
    if shutil.which("npm") is None:
        _give_up("npm is not installed, so the tools of this test are missing.")
    wanted = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    folder = Path(sys.prefix) / "node-tools" / wanted  # branches that share an environment have their own
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may need them at once
        stamp = folder / "installed"
        if stamp.exists():
            return folder
        for file in files:
            shutil.copy(file, folder)
        done = _run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder)
        if done.returncode != 0:
            _give_up(f"npm could not install the tools of this test: {done.stderr[-2000:]}")
        stamp.touch()
    return folder


def run_node_tool(folder: Path, tool: str, *arguments: str, cwd: Path) -> str:
    """Run one of the installed tools and return its output; it must succeed."""
    done = _run([str(folder / "node_modules" / ".bin" / tool), *arguments], cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_node_script(folder: Path, script: str, *arguments: str, cwd: Path) -> str:
    """Run one of our scripts beside the installed tools, which it imports, and return its output; it must succeed."""
    shutil.copy(SOURCES / script, folder)
    done = _run(["node", str(folder / script), *arguments], cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_SECONDS,
        cwd=cwd,
        env={**os.environ, **_ENVIRONMENT},
    )


def _give_up(reason: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
