"""The commands of ``docs/guides/workers.md``, exactly as they are written there."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests.harness import ROOT, free_port, process

GUIDE = (ROOT / "docs" / "guides" / "workers.md").read_text()


def read_blocks(language: str) -> list[str]:
    """Return the page's blocks of code in a language."""
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_every_command_of_the_guide_works(tmp_path: Path) -> None:
    """The stack, the task, the worker and the client that waits for a result work as written.

    Except for the ports, and a frame takes no second. The client is started before the worker, which therefore finds
    work for it without polling again.
    """
    port = str(free_port())
    stack, (client, commands) = (
        read_blocks("sh")[0].strip(),
        (read_blocks("python")[1], read_blocks("sh")[1].replace("8080", port)),
    )
    handlers = read_blocks("python")[0]
    assert "time.sleep(1)" in handlers
    (tmp_path / "handlers.py").write_text(handlers.replace("time.sleep(1)", "time.sleep(0)"))
    (tmp_path / "wait.py").write_text(client.replace("8080", port))
    around = {name: value for name, value in os.environ.items() if not name.startswith("CLOUDSCHED_")}
    env = {**around, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    options = f"--store sqlite --port {port} --tasks-port 0"
    with process("bash", "-c", f"{stack} {options}", env=env, cwd=tmp_path) as dev:
        dev.wait_for("Ready")
        with process(sys.executable, "wait.py", env=env, cwd=tmp_path) as waiting:
            dev.wait_for(r"\S+ created\b")
            with process("bash", "-c", commands, env=env, cwd=tmp_path) as worker:
                said = worker.wait_for(
                    r"(?m)^\S+: (queue gpu, .*)\n(?:.*\n)*?succeeded +film +A short film +\(\d+\.\d s\)"
                )
                assert said[1] in GUIDE.replace("8080", port)
                assert waiting.wait() == 0, waiting.output
                assert "{'rendered': 2}" in waiting.output.splitlines()
