"""A real service whose process is killed while it runs an agent: what is finished is not paid for again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.agents.frameworks.scripted import FRAMEWORKS, TOKENS
from tests.harness import ROOT, request, wait_until
from tests.stories.test_serve import serve

HANDLERS = """
import os, signal, sys

sys.path.insert(0, {root!r})
from tests.agents.frameworks.scripted import FRAMEWORKS, World


def note(name):
    with open("made.txt", "a") as file:
        file.write(name + "\\n")
        file.flush()
        os.fsync(file.fileno())
    if len(open("made.txt").readlines()) == {at} and not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)


def decide(_, answers):
    note(f"turn {{len(answers)}}")
    return "done" if len(answers) == 2 else [("count", {{"number": len(answers)}})]


def count(number: int) -> dict[str, int]:
    \"\"\"Count.\"\"\"
    note(f"tool {{number}}")
    return {{"number": number}}


(framework,) = [each for each in FRAMEWORKS if each.name == {framework!r}]
app = World(framework, decide, count).app
"""


@pytest.mark.parametrize("at", range(1, 6))
@pytest.mark.parametrize("framework", [each.name for each in FRAMEWORKS])
def test_only_what_was_interrupted_is_repeated(framework: str, at: int, tmp_path: Path) -> None:
    """Whichever turn or tool it is. The next process goes on at once."""
    (tmp_path / "handlers.py").write_text(HANDLERS.format(root=str(ROOT), framework=framework, at=at))
    task = {"id": "morning", "owner": "ada", "handler": "wake", "payload": {"prompt": "Count"}}
    with serve(tmp_path) as (service, url):
        assert request(url, "POST", "/v1/tasks", task).status == 201
        service.wait()

    with serve(tmp_path) as (_, url):
        runs = "/v1/tasks/morning/executions"
        wait_until(
            lambda: [each["status"] for each in request(url, "GET", runs).body["executions"]] == ["SUCCEEDED"],
            "it has run",
        )
        (run,) = request(url, "GET", runs).body["executions"]

    expected = ["turn 0", "tool 0", "turn 1", "tool 1", "turn 2"]
    expected.insert(at - 1, expected[at - 1])
    assert (tmp_path / "made.txt").read_text().splitlines() == expected
    assert (run["content"], run["tokens"], run["queries"]) == ("done", 3 * TOKENS, 3)
