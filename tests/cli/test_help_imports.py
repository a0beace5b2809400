"""``--help`` and completion start at once: they import what describes the commands, and nothing that runs them."""

from __future__ import annotations

import json
import sys
from typing import Final

import pytest
from tests.harness import run_to_end
from tests.installs import find_declared

from cloudsched.cli.main import cloudsched
from cloudsched.features.table import FEATURES

WALK: Final = """
import contextlib, io, json, sys
import click
from cloudsched.cli.main import cloudsched as top

def walk(command, path):
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        assert top.main([*path, "--help"], prog_name="cloudsched", standalone_mode=False) == 0
    assert shown.getvalue().startswith(f"Usage: cloudsched {path[0]}"), shown.getvalue()
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            walk(command.get_command(context, name), [*path, name])

walk(top.get_command(click.Context(top), sys.argv[1]), sys.argv[1:])
print(json.dumps([*sys.modules]))
"""
"""Shows a command's help, and that of all commands below it; prints what is imported then."""
BANNED: Final = (
    *("agents", "app", "client", "dashboard", "drafts", "language", "outbox", "people", "runtime", "scripts"),
    *("testing", "web", "worker", "adapters.firestore.store", "adapters.google", "adapters.sqlite"),
    *("emulator.emulator", "emulator.runtime"),
    *("engine.durable", "engine.execution", "engine.handlers", "engine.ports", "engine.tasks", "engine.queries"),
)
"""Rooms and modules of ours that run commands, or what commands start."""
COMMANDS: Final = {row.place.partition(":")[0] for feature in FEATURES for row in feature.commands}
"""Modules of satellites with commands of their own, which say what these are and import the rest when they run."""
MEMBERS: Final = {"admin": {"web"}, "audit": set[str](), "tasks": set[str]()}
"""Commands with an option for a member of a closed set, and what of the above they import to list its members."""
DOCUMENTS: Final = {"pydantic", "typing-extensions"}
"""The libraries that modules with such sets need."""
WHOLE: Final = {"next"}
"""Commands that are one module, which imports what it runs."""


def import_by_help(command: str) -> set[str]:
    """Return the modules that were imported when a command's help is shown.

    Without `site`, which imports what other packages ask it to.
    """
    done = run_to_end([sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{WALK}", command])
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("command", sorted(set(cloudsched.list_commands(None)) - WHOLE))  # type: ignore[arg-type]
def test_help_imports_nothing_that_runs_commands(command: str) -> None:
    """Neither a library, but click, nor a room of ours that does the work; nor do the commands below it."""
    imported = import_by_help(command)
    banned = tuple(f"cloudsched.{each}." for each in BANNED if each not in MEMBERS.get(command, ()))
    described = COMMANDS | {name.rpartition(".")[0] for name in COMMANDS}
    assert not [name for name in imported - described if f"{name}.".startswith(banned)]
    libraries = {"click", *DOCUMENTS} if command in MEMBERS else {"click"}
    assert find_declared(imported) <= libraries
