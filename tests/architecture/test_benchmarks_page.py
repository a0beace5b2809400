"""Every command of the page on benchmarks is there, and figures stand on that page only."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import machine
from tests.cases import try_each

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "benchmarks.md").read_text("utf-8")
ROWS = re.findall(r"^\| .*`python -m benchmarks\..*\|$", PAGE, re.MULTILINE)
FIGURES = re.compile(
    r"[\dµ] ?µs\b|\d microsecond|\btimes (?:as fast|faster|slower)\b|\d (?:tasks|creates) a second\b", re.IGNORECASE
)
"""How a measured speed reads. Limits and targets are in seconds and milliseconds."""
USER_PAGES = [
    ROOT / "README.md",
    *(page for folder in ("tutorial", "how-to", "reference") for page in (ROOT / "docs" / folder).glob("*.md")),
]


def read_options(module: str) -> set[str]:
    """Return the options that a benchmark adds to its parser."""
    tree = ast.parse((ROOT / "benchmarks" / f"{module}.py").read_text("utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    added = [call.args[0] for call in calls if call.func.attr == "add_argument"]  # type: ignore[attr-defined]
    return {str(argument.value) for argument in added if isinstance(argument, ast.Constant)}


@try_each("row", ROWS)
def test_every_command_and_option_is_there(row: str) -> None:
    """A benchmark that is renamed, or loses an option, is renamed on the page, too."""
    modules = re.findall(r"python -m benchmarks\.(\w+)", row)
    known = set().union(*(read_options(module) for module in modules))
    assert set(re.findall(r"--[\w-]+", row)) <= known


def test_every_section_has_its_command() -> None:
    """Each figure can be measured again: the tables name all sections, with links that lead there."""
    sections = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    linked = set(re.findall(r"\]\(#([\w-]+)\)", "\n".join(ROWS)))
    tables = {"Beside others", "Beside a floor", "Under failure", "The machine"}
    assert linked == {name.lower().replace(" ", "-") for name in sections if name not in tables}


def test_the_page_says_what_the_command_prints_about_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same lines, whatever the machine."""
    monkeypatch.setattr(machine, "list_versions", lambda: {"APScheduler": "3"})
    stated = re.findall(r"^([\w.]+): ", PAGE.partition("## The machine")[2].partition("\n## ")[0], re.MULTILINE)
    assert stated == list(machine.describe_machine())


@try_each("page", USER_PAGES)
def test_user_pages_have_no_figures(page: Path) -> None:
    """They link to the page on benchmarks."""
    assert FIGURES.findall(page.read_text("utf-8")) == []
