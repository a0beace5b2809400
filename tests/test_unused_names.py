"""Nothing in the package is there for its tests alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import cloudsched

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "cloudsched"

FOR_USERS = {
    "add_person": "Simulation: a test of a user's own handlers has somebody whom mail reaches",
    "add_worker": "Simulation: a test of a user's own handlers runs a worker",
    "create_table": "SqlalchemyOutbox: a project without migrations makes the table",
    "drops_answers": "SimulatedChannel: a channel of a user's own tests takes a message and fails",
    "redeliver": "Simulation: a test of a user's own handlers sees what a duplicate dispatch does",
    "inject": "CloudTasksEmulator: faults for a user's own tests",
}
"""What users call although nothing of ours does, and why."""
FOR_LIBRARIES = {
    "_missing_": "enum: what reads a value that no member has",
    "model_parametrized_name": "pydantic: the name of a generic model",
    "stream_response": "OpenAI Agents SDK: each model has it",
    "verify_token": "mcp: how a server checks a bearer token",
    "OutboxConfig": "Django: the one configuration in `apps.py` is that of the app",
    "Meta": "Django: the options of a model",
    "urlpatterns": "Django: the addresses of a module that an `include` names",
}

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_PLAIN_DECORATORS = {
    "property",
    "cached_property",
    "classmethod",
    "staticmethod",
    "contextmanager",
    "lru_cache",
    "cache",
}
_PLAIN_BASES = {"Protocol", "Generic", "NamedTuple", "BaseModel", "Enum", "StrEnum", "Exception", "BaseException"}
"""Bases of others' that call nothing by a name that a subclass of ours invents."""


def test_everything_is_used() -> None:
    """What is defined is mentioned somewhere else than in tests, unless users call it.

    A decorator of ours or of a library registers what it decorates, and a library calls the methods that override its
    own: both count as used. A name that two things share counts for both, so what is found is certainly unused.
    """
    paths = [path for folder in (PACKAGE, ROOT / "functions") for path in sorted(folder.rglob("*.py"))]
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    plain = _find_plain_classes(nodes)
    defined = set(_definitions(nodes, plain))
    mentioned = set(_mentions(nodes))
    unused = defined - mentioned - {*cloudsched.__all__}
    assert unused - {*FOR_USERS, *FOR_LIBRARIES} == set(), "call it, delete it with its tests, or say who does"


def _find_plain_classes(nodes: list[ast.AST]) -> set[str]:
    """Return the classes of which no library calls a method that only a class of ours has."""
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    foreign = {""}
    before = -1
    while len(foreign) > before:
        before = len(foreign)
        ours = {each.name for each in classes} - foreign | _PLAIN_BASES
        foreign |= {each.name for each in classes if not set(map(_base_name, each.bases)) <= ours}
    return ours


def _definitions(nodes: list[ast.AST], plain_bases: set[str]) -> Iterator[str]:
    """Yield the functions, methods, classes and constants that something has to mention to be of use."""
    for node in nodes:
        if not isinstance(node, ast.Module | ast.ClassDef):
            continue
        may_override = isinstance(node, ast.ClassDef) and not set(map(_base_name, node.bases)) <= plain_bases
        for each in node.body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                if _is_plain(each) and not may_override:
                    yield each.name
            elif isinstance(each, ast.ClassDef):
                yield each.name
            elif isinstance(node, ast.Module) and isinstance(each, ast.Assign | ast.AnnAssign):
                targets = each.targets if isinstance(each, ast.Assign) else [each.target]
                yield from (one.id for one in targets if isinstance(one, ast.Name) and not one.id.startswith("__"))


def _is_plain(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether only a mention of its name can call a function."""
    is_special = function.name.startswith("__")
    return not is_special and set(map(_last_name, function.decorator_list)) <= _PLAIN_DECORATORS


def _last_name(expression: ast.expr) -> str:
    match expression:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
        case ast.Call(function):
            return _last_name(function)
        case ast.Subscript(value):
            return _last_name(value)
    return ""


def _base_name(expression: ast.expr) -> str:
    """Return the name of a base class; that of a module's attribute is a library's, whatever ours are called."""
    return "" if isinstance(expression, ast.Attribute) else _last_name(expression)


def _mentions(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the names that modules use, in code or in a text of one line, which may be for `getattr`."""
    for node in nodes:
        match node:
            case ast.Name(name, ast.Load()) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name):
                yield name.rpartition(".")[2]
            case ast.Constant(str(text)) if "\n" not in text:
                yield from _IDENTIFIER.findall(text)
