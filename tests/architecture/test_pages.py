"""The pages say what is there: errors, diagrams, promises, threats, routes, the machine, all names."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest
from benchmarks import machine
from tests.cases import try_each
from tests.doc_blocks import read_section

from cloudsched import App, ExecutionStatus, TaskStatus, errors
from cloudsched.domain.transitions.lifecycle import ALLOWED
from cloudsched.testing import Simulation
from cloudsched.web.api import problems
from cloudsched.web.api.operations import OPERATIONS, VERB_OPERATIONS

ROOT = Path(__file__).parents[2]
NAMED = {name for each in ROOT.glob("docs/**/*.md") for name in re.findall(r"`sim\.([\w.]+)", each.read_text("utf-8"))}
BENCHMARKS = (ROOT / "docs" / "contributors" / "benchmarks.md").read_text("utf-8")


def test_the_page_says_what_the_command_prints_about_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same lines, whatever the machine."""
    monkeypatch.setattr(machine, "list_versions", lambda: {"APScheduler": "3"})
    stated = re.findall(r"^([\w.]+): ", BENCHMARKS.partition("## The machine")[2].partition("\n## ")[0], re.MULTILINE)
    assert stated == list(machine.describe_machine())


def test_what_pages_name_of_a_simulation_is_there() -> None:
    """Such as `sim.queue.deliveries`."""
    with Simulation(App()) as sim:
        attrgetter(*NAMED)(sim)


PROMISES = [
    line
    for heading in ("What security promises", "What attackers may try")
    for line in read_section(ROOT / "docs/guarantees.md", heading).splitlines()
    if line.startswith("| ") and not line.startswith(("| promise |", "| somebody tries |"))
]


@try_each("row", PROMISES)
def test_each_promise_and_each_threat_has_its_tests(row: str) -> None:
    """The last column names files or folders of tests, modules that compare in constant time, or the type check."""
    *_, last, _end = row.split(" |")
    named = re.findall(r"`([^`]+)`", last)
    assert named or last.strip() == "the type check"
    for name in named:
        files = [*ROOT.glob(f"tests/**/{name}.py"), *ROOT.glob(f"src/**/{name}"), ROOT / name]
        assert any(each.exists() for each in files) or name == "hmac.compare_digest", name


def test_promises_and_threats_are_found() -> None:
    """So that a table that is written otherwise does not pass unseen."""
    assert len(PROMISES) > 60


ERRORS = (Path(__file__).parents[2] / "docs" / "reference" / "tasks.md").read_text("utf-8")
STATUSES = dict(re.findall(r"^\| `(\w+)` \| (\d*) *\|", ERRORS, re.MULTILINE))
ERROR_TREE = {
    name: each
    for name, each in vars(errors).items()
    if inspect.isclass(each) and issubclass(each, errors.CloudschedError) and each is not errors.CloudschedError
}


def test_every_error_has_a_row() -> None:
    """And no row is left of an error that is gone."""
    assert set(STATUSES) == set(ERROR_TREE)


def test_the_statuses_are_those_of_the_api() -> None:
    """An error that the page gives a status is answered with that one; the others do not reach a caller as such."""
    for name, status in STATUSES.items():
        error = ERROR_TREE[name].__new__(ERROR_TREE[name], "what is wrong")
        for attribute in ("field", "problem", "hint", "key"):
            setattr(error, attribute, "x")
        for attribute in ("awaited", "retry_after"):
            setattr(error, attribute, None if attribute == "retry_after" else ())
        answered = problems.render_problem(error)
        is_unknown = answered.get_json()["type"].endswith("/internal-error")
        assert status == ("" if is_unknown else str(answered.status_code)), name


CONCEPTS = (Path(__file__).parents[2] / "docs" / "start" / "concepts.md").read_text("utf-8")
DIAGRAMS = re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", CONCEPTS, re.DOTALL)
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


@pytest.mark.parametrize(
    "script", ["agent_examples", "agent_tools", "commands", "complaints", "python_names", "verb_doors"]
)
def test_the_references_that_are_made_from_the_code_are_current(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python .ci/site/SCRIPT.py` writes them from the code; no public name is missing."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci" / "site"))
    writer = import_module(script)
    page = writer.PAGE.read_text("utf-8")
    assert writer.put(page) == page
    assert script != "python_names" or writer.find_missing(page) == []


def test_every_route_is_in_the_table() -> None:
    """The table of docs/reference/http.md names each path of the API, but for verbs: the generated one has them all."""
    page = (ROOT / "docs" / "reference" / "http.md").read_text("utf-8")
    table = "\n".join(
        line for line in page.splitlines() if line.startswith(("| `POST", "| `GET", "| `PATCH", "| `DELETE"))
    )
    for path in {each.path for each in OPERATIONS if each.path.startswith("/v1/") and each not in VERB_OPERATIONS}:
        last = path.rpartition("/")[2].partition(":")[2] or path.rpartition("/")[2]
        assert last in table.replace("{id}", "{taskId}"), path
