"""The commands of the tour and the README run as they are printed, whenever they are read."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness import free_port, process

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
TOUR = (ROOT / "docs" / "start" / "quickstart.md").read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", TOUR, re.DOTALL)
SHELL = re.findall(r"```sh\n(.*?)```", TOUR, re.DOTALL)
RUN_ELSEWHERE = ("./emulator.sh demo", "python3 -m venv")
"""Blocks that others run: the demo and the whole suite (`.ci/run`), and an installation, which needs an index."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the tour leaves it: the handlers of both blocks in one file."""
    tmp_path = tmp_path_factory.mktemp("tour")
    handlers = [block for block in PYTHON if block.startswith("# handlers.py")]
    (tmp_path / "handlers.py").write_text("\n\n".join(handlers))
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "cloudsched"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m cloudsched "$@"\n')
    command.chmod(0o755)
    return tmp_path


@pytest.fixture(scope="module")
def shell(folder: Path) -> Iterator[Callable[[str], str]]:
    """Run a block in that folder while `cloudsched dev` runs as the tour says, on ports of the test's own."""
    ports = {"8080": str(free_port()), "8123": str(free_port())}
    env = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(folder)}

    def with_ports(text: str) -> str:
        for usual, own in ports.items():
            text = text.replace(f":{usual}", f":{own}")
        return text

    def run(block: str) -> str:
        done = subprocess.run(  # noqa: S603 - our own page
            ["/bin/sh", "-ec", with_ports(block)], cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    (start,) = [line for block in SHELL for line in block.splitlines() if line.startswith("cloudsched dev")]
    command = start.partition("#")[0].split()
    options = ("--store", "sqlite", "--port", ports["8080"], "--tasks-port", ports["8123"])
    with process(sys.executable, "-m", "cloudsched", *command[1:], *options, env=env, cwd=folder) as dev:
        dev.wait_for("Ready")
        yield run


def test_every_block_is_run_by_a_test() -> None:
    """A block that is added here or elsewhere must be run by one of these tests, or by the others that are named."""
    own = ("cloudsched run", "curl", "# on that machine", "cloudsched next")
    for block in [*SHELL, *re.findall(r"```sh\n(.*?)```", README, re.DOTALL)]:
        assert block.startswith((*own, *RUN_ELSEWHERE)), block


def test_the_handler_of_the_tour_runs_from_the_shell(shell: Callable[[str], str]) -> None:
    """`cloudsched run` needs nothing that runs, and prints what the handler returned."""
    (line,) = [line for block in SHELL for line in block.splitlines() if line.startswith("cloudsched run")]
    assert "Tea" in shell(line)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_task_of_the_tour_runs_on_each_weekday(shell: Callable[[str], str]) -> None:
    """Its schedule begins whenever it is read: after thirty days there are about as many messages as weekdays."""
    (block,) = [block for block in SHELL if block.startswith("curl")]
    created, clock, inbox = _documents(shell(block))
    assert created["status"] == "ACTIVE"
    assert 19 <= clock["delivered"] <= 24
    assert {message["body"] for message in inbox["messages"]} == {"Room 2"}
    assert 19 <= len(inbox["messages"]) <= 23


def test_the_worker_of_the_tour_finds_its_api(shell: Callable[[str], str]) -> None:
    """Told to end when nothing waits, it ends well."""
    (block,) = [block for block in SHELL if block.startswith("# on that machine")]
    assert "queue gpu, from the API at" in shell(block.rstrip() + " --once\n")


def test_the_schedules_of_the_page_have_occurrences(shell: Callable[[str], str]) -> None:
    """Each `cloudsched next` shows instants."""
    (block,) = [block for block in SHELL if block.startswith("cloudsched next")]
    assert len(re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}", shell(block))) == 13


def _documents(text: str) -> list[dict[str, Any]]:
    """Return the JSON documents that follow one another in a text."""
    decoder, found, position = json.JSONDecoder(), list[dict[str, Any]](), 0
    while position < len(text):
        document, end = decoder.raw_decode(text, position)
        found.append(document)
        position = end + len(text[end:]) - len(text[end:].lstrip())
    return found
