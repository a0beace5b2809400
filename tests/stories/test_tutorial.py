"""The README, the quickstart and the tutorial: files, commands and outputs as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.doc_blocks import matches, read_blocks
from tests.harness import ROOT, Process, free_port, process, run_to_end, wait_until

STORIES = {
    "tutorial": sorted((ROOT / "docs" / "tutorial").glob("[1-9]-*.md")),
    "quickstart": [ROOT / "docs" / "start" / "quickstart.md"],
    "readme": [ROOT / "README.md"],
}
PORTS = re.compile(r"\b(8000|8080|8123)\b")
STARTED = {"dev": "Ready", "worker": r"succeeded +march", "uvicorn": "startup complete"}
"""The commands that keep running, and what they print once the reader may go on."""
NOT_TYPED = ("python3 -m venv", "./emulator.sh demo")
"""An installation, which needs an index, and what `test_demo.py` runs."""


@pytest.mark.parametrize("story", STORIES)
def test_every_step_does_as_it_says(story: str, tmp_path: Path) -> None:
    """Each file is written where its first line says, each command succeeds, each output is the one that is shown."""
    (tmp_path / "cloudsched").symlink_to(ROOT)
    folder = tmp_path / "digest"
    folder.mkdir()
    own = {port: str(free_port()) for port in ("8000", "8080", "8123")}
    around = {name: value for name, value in os.environ.items() if not name.startswith(("CLOUDSCHED_", "PYTEST_"))}
    env = {**around, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    printed = typed = ""
    running: dict[str, Process] = {}
    with ExitStack() as stack:
        for block in (each for page in STORIES[story] for each in read_blocks(page)):
            text = PORTS.sub(lambda port: own[port[0]], block.text)
            if block.language == "python":
                name = text.splitlines()[0].removeprefix("# ").partition(",")[0]
                with (folder / name).open("a", encoding="utf-8") as file:
                    file.write(text + "\n\n")
                if name == "handlers.py" and "dev" in running:
                    wait_for_handler(re.findall(r'@app\.handler\("(\w+)"', text)[-1], own["8080"])
            elif block.language == "text":
                if re.fullmatch(r"curl -s \S+/inboxes/\S+\n", typed):  # a message that comes a little later
                    wait_until(lambda: matches(block.text, run(typed, folder, env, str(block))), f"{block} is printed")  # noqa: B023
                else:
                    assert matches(block.text, printed), f"{block} is not what was printed:\n{printed}"
            elif (command := text.split()[:2][-1]) in STARTED:
                options = ("--store", "sqlite", "--port", own["8080"], "--tasks-port", own["8123"])
                words = ["env", *shlex.split(text, comments=True), *(options if command == "dev" else ())]
                running[command] = stack.enter_context(process(*words, env=env, cwd=folder))
                running[command].wait_for(STARTED[command])
            elif "infra/deploy.sh" in text and shutil.which("gcloud") is None and "CI" not in os.environ:
                pytest.skip("all but the last command of the tutorial, as there is no gcloud")
            elif not text.startswith(NOT_TYPED):
                assert block.language == "sh", block
                typed, printed = text, run(text, folder, env, str(block))
        assert "passed" in run("python -m pytest -q", folder, env, story)
    assert len(STORIES["tutorial"]) == 6


def wait_for_handler(name: str, port: str) -> None:
    """Wait until the stack has taken up an edit."""

    def is_there() -> bool:
        try:
            answer = httpx.get(f"http://127.0.0.1:{port}/v1/handlers", timeout=60)
        except httpx.TransportError:
            return False
        return f'"{name}"' in answer.text

    wait_until(is_there, f"the stack has the handler {name}")


def run(text: str, folder: Path, env: dict[str, str], where: str) -> str:
    """Return what a block of commands prints; each of them has to succeed."""
    done = run_to_end(["/bin/bash", "-ec", text], cwd=folder, env=env)
    assert done.returncode == 0, f"{where}:\n{done.stdout}{done.stderr}"
    return done.stderr + done.stdout
