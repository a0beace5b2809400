"""Whether a run leaves a process, a port or a file behind: then it fails, although all its tests have passed.

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
_STATE = pytest.StashKey["Before"]()
_LISTENS = "0A"
TOOLS = {".cache", ".config", ".gunicorn", ".java", ".local", ".npm", ".pki", ".rustup"}
"""Where gcloud, npm, Chromium, gunicorn, pip and others keep what they need again, in the home folder."""


class Before:
    def __init__(self) -> None:
        self._usual = {name: os.environ.get(name) for name in (MARK, "TMPDIR", "PYTEST_DEBUG_TEMPROOT")}
        self.mark = f"{MARK}={uuid.uuid4()}"
        os.environ[MARK] = self.mark.partition("=")[2]
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # pytest's own stay, to look at
        self.temporary = Path(tempfile.mkdtemp(prefix="cloudsched-tests-"))
        os.environ["TMPDIR"] = str(self.temporary)
        tempfile.tempdir = None  # found again
        self._home, self._checkout = _list_home(), _list_changes()

    def list_leftovers(self) -> list[str]:
        """Return what is there now and was not before, once what is ending has had the time for it."""
        give_up_at = time.monotonic() + PATIENCE
        while (processes := _list_processes(self.mark)) and time.monotonic() < give_up_at:
            time.sleep(0.05)
        return [
            *(f"a process: {pid} {_describe(pid)}" for pid in processes),
            *(f"a file: {each}" for each in _list_files(self.temporary)),
            *(f"a file: {each}" for each in sorted(_list_home() - self._home)),
            *(f"a change in the checkout: {each}" for each in sorted(_list_changes() - self._checkout)),
        ]

    def close(self) -> None:
        """Forget the mark and the folder."""
        for name, value in self._usual.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        tempfile.tempdir = None
        shutil.rmtree(self.temporary, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Mark what comes from this run, before xdist starts its processes."""
    if not hasattr(config, "workerinput") and not config.option.collectonly and MARK not in os.environ:
        config.stash[_STATE] = Before()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if it leaves something behind; xdist's processes have ended by then."""
    state = session.config.stash.get(_STATE, None)
    if state is not None:
        found = state.list_leftovers()
        if found and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        if found and terminal is not None:
            text = "\n".join(("The run left behind:", *found))
            where = ("tests/run/leftovers.py", None, "the whole run")
            error = pytest.TestReport("the whole run", where, {}, "failed", text, "teardown")
            terminal.stats.setdefault("error", []).append(error)  # counted in pytest's own last line


def pytest_unconfigure(config: pytest.Config) -> None:
    state = config.stash.get(_STATE, None)
    if state is not None:
        state.close()


def _list_processes(mark: str) -> list[int]:
    """Return the processes that come from this run, but for this one and those that only wait to be looked after."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environment = (folder / "environ").read_bytes().split(b"\0")
            if mark.encode() in environment and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


def _describe(pid: int) -> str:
    """Return the command of a process, and the ports that it listens on."""
    with suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        ports = ", ".join(map(str, _list_ports(pid)))
        return f"{command[:200]}{f' (listens on {ports})' if ports else ''}"
    return "(has ended since)"


def _list_ports(pid: int) -> list[int]:
    """Return the TCP ports on which a process listens."""
    own = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()]
    return sorted(
        {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _LISTENS and f"socket:[{row[9]}]" in own}
    )


def _list_files(folder: Path) -> list[Path]:
    """Return what lies in a folder for temporary files; one that `cloudsched dev` keeps counts unless it is empty."""
    found = sorted(folder.iterdir())
    return [each for each in found if not each.name.startswith("cloudsched-dev-") or any(each.iterdir())]


def _list_home() -> set[Path]:
    return {each for each in Path.home().iterdir() if each.name not in TOOLS} if os.environ.get("CI") else set()


def _list_changes() -> set[str]:
    """Return what Git says of the checkout, in CI; nothing where there is no Git."""
    git = shutil.which("git") if os.environ.get("CI") else None
    command = ["status", "--porcelain", "--untracked-files=all"]
    done = git and subprocess.run([git, *command], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    return set(done.stdout.splitlines()) if done else set()
