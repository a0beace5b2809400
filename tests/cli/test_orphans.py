"""A command ends when nobody is left to see its result: its parent has died, or the reader of its output has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness import heed, wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it looks for processes in /proc")

HANDLERS = """
import os
from pathlib import Path

from cloudsched import App, Context

app = App()


def tell() -> None:
    Path("starting").write_text(str(os.getpid()))
    Path("starting").rename("started")


@app.handler("wait")
def wait(ctx: Context) -> None:
    tell()
    ctx.wait_for("word that nobody sends")


@app.handler("hang")
def hang() -> None:
    import time
    tell()
    time.sleep(600)
"""
COMMAND = """
# As `python -m cloudsched`, but it looks for its caller more often and gives itself less time to clean up.
from cloudsched.__main__ import main
from cloudsched.cli import run as orphans

orphans.CHECK_SECONDS, orphans.CLEANUP_SECONDS = 0.02, 0.2
main()
"""
PARENT = """
import subprocess, sys
subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL)
"""


def is_alive(process: int) -> bool:
    """Whether the process runs; one whose end nobody has asked for yet does not."""
    try:
        state = Path("/proc", str(process), "stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:  # it is gone
        return False
    return state != "Z"


@pytest.mark.parametrize("options", [["wait", "--durable"], ["hang", "--durable", "--skip-waits"], ["hang"]], ids=str)
@pytest.mark.parametrize("what_dies", ["parent", "reader"])
def test_a_run_ends_with_its_caller(options: list[str], what_dies: str, tmp_path: Path) -> None:
    """Whatever it is doing: waiting for an event, or running a handler that hangs, in the stack or without one."""
    (tmp_path / "handlers.py").write_text(HANDLERS)
    command = [sys.executable, "-c", COMMAND, "run", *options]
    output = subprocess.DEVNULL if what_dies == "parent" else subprocess.PIPE
    launcher = [sys.executable, "-c", PARENT] if what_dies == "parent" else []
    with heed(signal.SIGHUP):  # a command that nohup has started outlives its parent
        parent = subprocess.Popen(  # noqa: S603 - our own
            [*launcher, *command],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(tmp_path)},  # where its stack is left behind if the handler hangs
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.DEVNULL,
        )
    started = tmp_path / "started"
    try:
        wait_until(started.exists, "the handler runs")
        process = int(started.read_text())
        assert is_alive(process)
        if parent.stdout is None:
            parent.kill()
        else:
            parent.stdout.close()
        parent.wait(60)
        wait_until(lambda: not is_alive(process), "the command ends")
    finally:
        parent.kill()
        parent.wait(60)
        if started.exists() and is_alive(int(started.read_text())):
            os.kill(int(started.read_text()), signal.SIGKILL)
