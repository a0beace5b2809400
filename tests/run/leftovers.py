"""Whether a run leaves a process or a file behind: then it fails, although all its tests have passed.

All processes that come from a run inherit a mark in their environment, and the run has a folder for temporary files of
its own, beside those of pytest. So nothing else that happens on the machine counts. The home folder and the checkout
are looked at in CI only, where nobody else works in them, and processes on Linux only, which has `/proc`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MARK = "CLOUDSCHED_TEST_RUN"
PATIENCE = 10.0
"""How many seconds a process that was told to end has for it, before it counts as left behind."""
TOOLS = {".cache", ".config", ".gunicorn", ".java", ".local", ".npm", ".pki", ".rustup"}
"""Where gcloud, npm, Chromium, gunicorn, pip and others keep what they need again, in the home folder."""
_BEFORE = pytest.StashKey[set[str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Mark what comes from this run, before xdist starts its processes."""
    if hasattr(config, "workerinput") or config.option.collectonly or MARK in os.environ:
        return
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # pytest's own stay, to look at
    os.environ[MARK] = str(uuid.uuid4())
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="cloudsched-tests-")
    before = _list_files()
    config.stash[_BEFORE] = before


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if it leaves something behind; xdist's processes have ended by then."""
    before = session.config.stash.get(_BEFORE, None)
    if before is None:
        return
    give_up_at = time.monotonic() + PATIENCE
    while (processes := _list_processes()) and time.monotonic() < give_up_at:
        time.sleep(0.05)
    found = [*processes, *sorted(_list_files() - before)]
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    for each in found:
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        if terminal is not None:
            terminal.write_line(f"\nERROR the run left behind {each}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folder."""
    if _BEFORE in config.stash:
        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)


def _list_processes() -> list[str]:
    """Return the processes that come from this run, but for this one and those that only wait to be looked after."""
    found = []
    mark = f"{MARK}={os.environ[MARK]}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0") and int(folder.name) != os.getpid():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"the process {folder.name}: {command[:200]}")
    return found


def _list_files() -> set[str]:
    """Return what is in the run's folder and, in CI, in the home folder and among the changes of the checkout."""
    files = {*Path(os.environ["TMPDIR"]).iterdir()}
    found = {str(each) for each in files if not each.name.startswith("cloudsched-dev-") or any(each.iterdir())}
    git = shutil.which("git")
    if "CI" in os.environ:
        found |= {str(each) for each in Path.home().iterdir() if each.name not in TOOLS}
    if "CI" in os.environ and git is not None:
        command = [git, "status", "--porcelain", "--untracked-files=all"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
        found.update(done.stdout.splitlines())
    return found
