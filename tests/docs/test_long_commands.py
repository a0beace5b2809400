"""What commands print that keep running: each is started as the page says."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from tests.doc_blocks import matches
from tests.docs import handlers
from tests.docs.test_shell_blocks import PAGES, Step, needs_process, read_steps
from tests.harness import free_port, process

STEPS = [
    (page, step) for page in PAGES for step in read_steps(page) if step.shown is not None and needs_process(step.text)
]

FIRST_SWEEP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ time zone data \w+\n?", re.MULTILINE)
"""What the first sweep logs, some moments after the start or before anybody has read what the start printed."""


@pytest.mark.parametrize(("page", "step"), STEPS, ids=[page.name for page, _ in STEPS])
def test_they_print_what_the_page_shows(tmp_path: Path, page: Path, step: Step) -> None:
    """But for the folder and the ports, which are this test's own."""
    assert step.shown is not None
    (tmp_path / "functions").mkdir()
    names = re.findall(r"handlers +(.*) \(", step.shown)
    text = Path(handlers.__file__).read_text("utf-8")
    if names:  # the page's own handlers, under their names
        text = "from cloudsched import App\n\napp = App()\n"
        text += "".join(f"@app.handler('{name}')\ndef {name}() -> None: ...\n" for name in names[0].split(", "))
    (tmp_path / "functions" / "handlers.py").write_text(text, "utf-8")
    ports = {
        port: str(free_port())
        for port in re.findall(r":(8080)\b|\b(8123)\b", step.text + step.shown)
        for port in port
        if port
    }
    command, shown = step.text, step.shown.replace("/srv/reminders", str(tmp_path))
    for usual, own in ports.items():
        command, shown = command.replace(usual, own), shown.replace(usual, own)
    if "--port" not in command:
        command += f" --port {ports['8080']}"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CLOUDSCHED_", "K_"))}
    env["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with process("/bin/bash", "-c", f"exec env {command}", env=env, cwd=tmp_path) as started:
        started.wait_for(re.escape(shown.strip().splitlines()[-1]))
        printed = FIRST_SWEEP.sub("", started.output)
        assert matches(shown, printed), f"{page.name} shows\n{shown}\nand this was printed:\n{printed}"
