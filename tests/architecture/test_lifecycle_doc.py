"""The diagrams of docs/start/concepts.md are the tables of the code."""

from __future__ import annotations

import re
from pathlib import Path

from cloudsched import ExecutionStatus, TaskStatus
from cloudsched.domain.transitions.lifecycle import ALLOWED

TEXT = (Path(__file__).parents[2] / "docs" / "start" / "concepts.md").read_text("utf-8")
DIAGRAMS = re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", TEXT, re.DOTALL)
ARROW = re.compile(r"^\s*(\[\*\]|\w+) --> (\[\*\]|\w+)(?::\s*(.+))?$", re.MULTILINE)


def arrows(diagram: str) -> list[tuple[str, str, str]]:
    lines = [line for line in diagram.splitlines() if line.strip()]
    found: list[tuple[str, str, str]] = [match.groups("") for match in ARROW.finditer(diagram)]  # type: ignore[misc]
    assert len(found) == len(lines), "every line of the diagram is an arrow"
    return found


def test_the_tasks_diagram_is_the_table() -> None:
    """Every change that the code allows is drawn, every one that is drawn is allowed, and a task begins ACTIVE."""
    drawn = arrows(DIAGRAMS[0])
    assert {(a, b) for a, b, _ in drawn if a != "[*]"} == {(a, b) for a in ALLOWED for b in ALLOWED[a]}
    assert [(a, b) for a, b, _ in drawn if a == "[*]"] == [("[*]", TaskStatus.ACTIVE)]
    assert all(why for *_, why in drawn), "each arrow says what leads there"


def test_the_executions_diagram_knows_every_status() -> None:
    """Each status is drawn; nothing leads on from success."""
    drawn = arrows(DIAGRAMS[1])
    names = {name for arrow in drawn for name in arrow[:2]} - {"[*]"}
    assert names == set(ExecutionStatus)
    assert not [arrow for arrow in drawn if arrow[0] == ExecutionStatus.SUCCEEDED]
    final = {status for status in ExecutionStatus if status.is_final}
    assert {b for a, b, _ in drawn if a in final} <= {ExecutionStatus.RETRYING}, "only a retry by hand reopens a record"
