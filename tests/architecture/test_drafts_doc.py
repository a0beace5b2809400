"""What the how-to of drafts shows is what a newcomer who types it gets."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from werkzeug.wrappers import Request

from cloudsched.cli.main import cloudsched
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "drafts.md").read_text("utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Simulation, str]]:
    """The page's own handlers, behind an API on this machine."""
    path = tmp_path / "handlers.py"
    path.write_text(blocks("python")[0])
    spec = importlib.util.spec_from_file_location("handlers_of_drafts_doc", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    with (
        Simulation(module.app) as sim,
        WebServer(Request.application(lambda request: serve_api(module.app, request))) as server,
    ):
        server.serve()
        yield sim, f"http://{server.address}"


def test_the_commands_do_as_they_say(served: tuple[Simulation, str]) -> None:
    """The first creates the task that the page shows, the second changes it."""
    sim, url = served
    created, changed = (block.strip() for block in blocks("sh")[:2])
    _, command, *words = shlex.split(created)
    said = CliRunner().invoke(cloudsched, [command, "--url", url, *words, "--yes"])
    assert said.exit_code == 0, said.output
    for line in blocks("text")[0].splitlines():
        if "…" not in line and not line.startswith("Create"):
            assert line in said.output.splitlines()
    (task,) = sim.app.tasks().items
    said = CliRunner().invoke(cloudsched, [command, "--url", url, *shlex.split(changed)[2:], "--yes"])
    assert said.exit_code == 0, said.output
    task = sim.app.get(task.id)
    assert (task.title, task.schedule.describe()) == ("Mum", "every Monday at 10:30, Europe/Paris")


def test_the_request_is_answered_as_shown(served: tuple[Simulation, str]) -> None:
    """Each field that the page shows, but for what it cuts short, stands in the answer."""
    _, url = served
    body = json.loads(shlex.split(blocks("sh")[2])[-1])
    answer = CliRunner().invoke(cloudsched, ["draft", "--url", url, body["text"], "--tz", body["timezone"], "--json"])
    content, shown = json.loads(answer.output), json.loads(blocks("json")[0])
    for name in ("decision", "description", "assumptions", "questions", "missing"):
        assert content[name] == shown[name], name
    assert content["next"][0] == shown["next"][0]
    task = {name: value for name, value in shown["task"].items() if name != "schedule"}
    assert {name: content["task"][name] for name in task} == task


def test_the_python_runs(served: tuple[Simulation, str]) -> None:
    """It confirms what it has drafted."""
    sim, url = served
    exec(blocks("python")[1].replace("http://127.0.0.1:8080", url), {})  # noqa: S102 - our own page
    assert [task.title for task in sim.app.tasks().items] == ["Call mum"]
