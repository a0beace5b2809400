"""The diagram of a dispatch's way shows functions that exist, and calls that they make."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.architecture.test_imports import SOURCE
from tests.cases import try_each

PAGE = (Path(__file__).parents[2] / "docs/explanation/engine.md").read_text("utf-8")
DIAGRAM = PAGE.partition("## The life of one attempt")[2]
BOXES = {
    box: (file, name) for box, file, name in re.findall(r'^    (\w+)\["([\w/.]+): ([\w.]+)"\]$', DIAGRAM, re.MULTILINE)
}
ARROWS = re.findall(r'^    (\w+) -->(?:\|"[^"]*"\|)? (\w+)$', DIAGRAM, re.MULTILINE)


@cache
def read_functions(file: str) -> dict[str, ast.FunctionDef]:
    """Return a file's functions by name, and its methods by class and name."""
    found: dict[str, ast.FunctionDef] = {}
    for node in ast.parse((SOURCE / file).read_text("utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        found |= {f"{prefix}{each.name}": each for each in inner if isinstance(each, ast.FunctionDef)}
    return found


def find_calls(file: str, name: str) -> set[str]:
    """Return the names of all that a function calls, itself or through others of its file or class, also handed on."""
    functions, class_name = read_functions(file), name.rpartition(".")[0]
    waiting, seen, called = [name], set[str](), set[str]()
    while waiting:
        if (current := waiting.pop()) in seen or current not in functions:
            continue
        seen.add(current)
        for node in ast.walk(functions[current]):
            if not isinstance(node, ast.Call):
                continue
            handed_on = [given.attr for given in node.args if isinstance(given, ast.Attribute)]
            waiting += [f"{class_name}.{each}" for each in handed_on]  # its own methods, to be called there
            match node.func:
                case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                    called.add(attr)
                    waiting.append(f"{class_name}.{attr}")
                case ast.Attribute(attr=attr):
                    called.add(attr)
                case ast.Name(id=id_):
                    called.add(id_)
                    waiting.append(id_)
    return called


def test_there_is_a_diagram() -> None:
    """Each line of it was understood: none is left out of the checks below."""
    block = DIAGRAM.partition("```mermaid\n")[2].partition("```")[0]
    lines = [line for line in block.splitlines()[1:] if line]
    assert len(lines) == len(BOXES) + len(ARROWS) > 10


@try_each("box", BOXES)
def test_each_box_is_a_function(box: str) -> None:
    file, name = BOXES[box]
    assert name in read_functions(file), f"{name} is not in {file} any more; correct docs/explanation/engine.md"


@try_each("source, target", ARROWS)
def test_each_arrow_is_a_call(source: str, target: str) -> None:
    """The function calls the other, itself or through its neighbours in the file or class."""
    called = find_calls(*BOXES[source])
    assert BOXES[target][1].rpartition(".")[2] in called, f"{BOXES[source][1]} does not call {BOXES[target][1]}"


def test_the_steps_of_an_attempt_are_in_their_order() -> None:
    """The arrows from an attempt are drawn in the order in which its function makes the calls."""
    file, name = BOXES["run"]
    steps = [BOXES[target][1].rpartition(".")[2] for source, target in ARROWS if source == "run"]
    functions = read_functions(file)
    nodes = [node for node in ast.walk(functions[name]) if isinstance(node, ast.Call)]
    places = {node.func.attr: (node.lineno, node.col_offset) for node in nodes if isinstance(node.func, ast.Attribute)}
    assert steps == sorted(steps, key=places.__getitem__)
    assert len(steps) > 3


def test_the_reading_path_leads_to_twelve_files() -> None:
    """A file that moves is moved on the page, too, and each of them says at its top what it is."""
    rows = re.findall(r"^\| (\d+) \| `([^`]+)` \| .*\? \|$", PAGE, re.MULTILINE)
    assert [int(number) for number, _file in rows] == list(range(1, 13))
    files = [SOURCE / file for _number, file in rows]
    assert [str(file) for file in files if not ast.get_docstring(ast.parse(file.read_text("utf-8")))] == []
