"""docs/guides/agent-schedules.md: each tab is an agent whose own test passes, and its other blocks do what they say."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.doc_blocks import read_blocks
from tests.harness import ROOT, run_to_end
from tests.instants import HOUR
from tests.recipes.conftest import Load

from cloudsched import App, Context
from cloudsched.testing import Simulation

PAGE = "agent-schedules.md"
FRAMEWORKS = ("ADK", "OpenAI Agents SDK", "Pydantic AI", "LangGraph")


def read_tabs(name: str) -> list[str]:
    """Return the code of that file in each tab."""
    code = [each.text for each in read_blocks(ROOT / "docs" / "guides" / PAGE) if each.language == "python"]
    return [each for each in code if each.startswith(f"# {name}\n")]


@pytest.mark.parametrize("number", range(4), ids=FRAMEWORKS)
def test_the_test_of_a_tab_passes(number: int, tmp_path: Path) -> None:
    """With the agent of that tab, and warnings are errors."""
    for name in ("handlers.py", "test_handlers.py"):
        (tmp_path / name).write_text(read_tabs(name)[number])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    path = os.pathsep.join([str(ROOT / "src"), str(tmp_path)])
    done = run_to_end(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_plain_functions_keep_schedules(load: Load) -> None:
    """Each is declared with its schema. What needs the person's word is refused, and says so."""
    plain = load(PAGE, "plain")
    plain.app.handler("remind", access="users")(lambda: None)
    names = {each["name"] for each in plain.DECLARED}
    assert {"create_task", "move_next", "answer"} < names
    with Simulation(plain.app):
        created = plain.call("create_task", {"title": "Tea", "handler": "remind", "when": "every day at 9:00"})
        assert "at 09:00 (Europe/Paris)" in created["told"]
        assert "agree" in plain.call("cancel_task", {"id": created["id"]})["refused"]
        assert plain.app.get(created["id"]).status == "ACTIVE"


def test_what_a_tool_has_waited_for_is_sent(load: Load) -> None:
    """By the three names that the tool was given. In a chat there is nothing to wait for."""
    ordering = load(PAGE, "ordering")
    assert ordering.order("tea") == {"state": "ordered"}
    app, seen = App(), list[Any]()

    @app.handler("wait")
    def wait(ctx: Context) -> None:
        seen.append(ctx.wait_for("order-1")["state"])

    with Simulation(app) as sim:
        task = app.create(handler="wait", owner="ada")
        sim.advance(HOUR)
        (run,) = app.get(task.id).runs
        ordering.note_arrival(app, {"task": task.id, "run": run.execution_id, "event": "order-1"})
        sim.advance(HOUR)
    assert seen == ["arrived"]
