"""The tables of docs/reference/doors.md: what each door can do, from the code of each.

``python .ci/site/verb_doors.py`` writes them into the page.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Final

import click
from marks import put_parts, write
from pydantic.alias_generators import to_camel

from cloudsched import App, AsyncApp
from cloudsched.cli.main import cloudsched as command_line
from cloudsched.client import AsyncClient, Client
from cloudsched.domain.documents.verbs import Verb
from cloudsched.web.api.operations import OPERATIONS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "doors.md"
FACES: Final = (App, AsyncApp, Client, AsyncClient)
NONE: Final = "—"
_TYPESCRIPT = re.compile(r"^  (?:async )?\*?([a-z]\w+)(?:<[^(]*>)?\(", re.MULTILINE)
_OF_CONNECTIONS: Final = {"close", "face", "run_flow"}


def put(text: str) -> str:
    """Return the page with its tables as the code has them."""
    return put_parts(text, {"verbs": lambda _: _write_verbs(), "methods": lambda _: _write_methods()})


def _write_verbs() -> str:
    rows = ["| verb | Python | HTTP | TypeScript | command | dashboard |", "|---|---|---|---|---|---|"]
    for verb in Verb:
        cells = (_find_python(verb), _find_route(verb), _find_typescript(verb), _find_command(verb), _find_button(verb))
        rows.append(f"| {verb.word} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _name(verb: Verb) -> str:
    return "update" if verb is Verb.EDIT else verb.method


def _find_python(verb: Verb) -> str:
    name = _name(verb)
    lacking = [face.__name__ for face in FACES if not hasattr(face, name)]
    return f"`{name}`" + (f", but for {' and '.join(lacking)}" if lacking else "")


def _find_route(verb: Verb) -> str:
    method = {Verb.EDIT: "PATCH", Verb.DELETE: "DELETE"}.get(verb, "POST")
    path = f"/v1/tasks/{{taskId}}{verb.path}"
    is_there = any((each.method, each.path) == (method, path) for each in OPERATIONS)
    return f"`{method} {path}`" if is_there else NONE


def _find_typescript(verb: Verb) -> str:
    name = to_camel(_name(verb))
    return f"`{name}`" if name in _list_typescript() else NONE


def _list_typescript() -> set[str]:
    source = ROOT / "clients" / "typescript" / "src"
    texts = [(source / name).read_text("utf-8") for name in ("client.ts", "api.ts")]
    return set(_TYPESCRIPT.findall("\n".join(texts)))


def _find_command(verb: Verb) -> str:
    context = click.Context(command_line)
    tasks = command_line.get_command(context, "tasks")
    is_there = isinstance(tasks, click.Group) and tasks.get_command(context, verb.word) is not None
    return f"`tasks {verb.word}`" if is_there else NONE


def _find_button(verb: Verb) -> str:
    """Return a verb's button. Others that pages do have a place of their own there."""
    button = verb.traits.button
    if button is not None:
        return f"“{button.label}”"
    return "yes" if verb.traits.done else NONE


def _write_methods() -> str:
    """Return the methods of clients, in groups that are at the same doors."""
    typescript = _list_typescript()
    groups = defaultdict(list)
    for name in dir(Client):
        if name.startswith("_") or name in _OF_CONNECTIONS:
            continue
        doors = [f"`{face.__name__}`" for face in FACES if hasattr(face, name)]
        if to_camel(name) in typescript:
            doors.append("TypeScript")
        groups[", ".join(doors)].append(f"`{name}`")
    largest_first = sorted(groups.items(), key=lambda each: -len(each[1]))
    rows = [f"| {doors} | {', '.join(names)} |" for doors, names in largest_first]
    return "\n".join(["| at | methods |", "|---|---|", *rows])


if __name__ == "__main__":
    write(PAGE, put)
