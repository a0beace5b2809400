"""``--help`` and completion start at once: they import what describes the commands, and nothing that runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

import pytest

from cloudsched.cli.main import cloudsched

WALK: Final = """
import contextlib, io, json, sys
import click
from cloudsched.cli.main import cloudsched as top

def walk(command, path):
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        assert top.main([*path, "--help"], prog_name="cloudsched", standalone_mode=False) == 0
    assert shown.getvalue().startswith(f"Usage: cloudsched {path[0]}"), shown.getvalue()
    for name in command.commands if isinstance(command, click.Group) else ():
        walk(command.commands[name], [*path, name])

known = set(sys.modules)
walk(top.get_command(click.Context(top), sys.argv[1]), sys.argv[1:])
print(json.dumps([sorted(known), sorted(set(sys.modules) - known)]))
"""
"""Shows a command's help, and that of all commands below it; prints what that has imported, and what was before."""
FRONT: Final = {
    "config": "imports",
    "emulator": "model.instants",
    "": "errors",
    "local": "untrusted_text",
}
"""The modules that any command may import, by their room; all of `cloudsched.cli` may be beside them."""
STACK_OPTIONS: Final = {
    "adapters.firestore": "emulator",
    "config": "access features settings sweep_alarm variables",
    "emulator": "cli http.control_json model.faults",
    "local": "store_choice",
}
"""The modules that list the choices of the local stack's options."""
MORE: Final[dict[str, dict[str, str]]] = {
    "apply": {"domain": "closed_sets"},
    "demo": STACK_OPTIONS,
    "dev": STACK_OPTIONS | {"engine.state": "log_context"},
    "emulator": {"emulator": "cli http.control_json model.faults"},
    "import": {"domain": "closed_sets"},
    "serve": {"engine.state": "log_context"},
    "worker": {"engine.state": "log_context"},
}
"""What single commands may import besides."""
MEMBERS: Final = {"keys": {"web.auth": "roles"}, "tasks": {"domain.documents": "batch_change"}}
"""Commands with an option for a member of a closed set, and the modules that are imported to list those."""
DOCUMENTS: Final = {
    "_sysconfigdata__linux_x86_64-linux-gnu",
    "annotated_types",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
}
"""The libraries that modules with such sets need."""
WHOLE: Final = {"cost": "cloudsched.domain.transitions.forecast", "next": "cloudsched.language.schedule_text"}
"""Commands that are one module, which imports what it runs."""


def import_by_help(command: str) -> tuple[set[str], set[str]]:
    """Return the modules, other than Python's, that were imported before a command's help and for it.

    Without `site`, which imports what other packages ask it to.
    """
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{WALK}", command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, more = (
        {name for name in each if name.partition(".")[0] not in {*sys.stdlib_module_names, "__main__", "click"}}
        for each in json.loads(done.stdout)
    )
    return before, more


def allow(*tables: dict[str, str]) -> set[str]:
    """Return the modules that tables name, and the packages that they are in."""
    named = {
        f"cloudsched.{room}.{name}".replace("..", ".")
        for table in tables
        for room, names in table.items()
        for name in names.split()
    }
    return named | {name[:end] for name in named for end, letter in enumerate(name) if letter == "."}


@pytest.mark.parametrize("command", sorted(set(cloudsched.list_commands(None)) - WHOLE.keys()))  # type: ignore[arg-type]
def test_help_imports_only_what_describes_commands(command: str) -> None:
    """Neither a library, but click, nor a module of ours that is not listed; nor do the commands below it."""
    before, more = import_by_help(command)
    imported = {name for name in before | more if not f"{name}.".startswith("cloudsched.cli.")}
    if command in MEMBERS:
        assert allow(MEMBERS[command]) <= imported, "list it no longer"
        imported -= allow(MEMBERS[command])
        imported = {
            name
            for name in imported
            if name.partition(".")[0] not in DOCUMENTS and not f"{name}.".startswith("cloudsched.domain.")
        }
    assert imported <= allow(FRONT, MORE.get(command, {}))


@pytest.mark.parametrize("arguments", [["tasks"], ["tasks", "get"], ["tasks", "create"], ["keys"]], ids=" ".join)
def test_only_a_list_of_members_imports_them(arguments: list[str]) -> None:
    """The help of the other commands of such a group imports no document."""
    code = f"import sys; from cloudsched.cli.main import cloudsched as c\ntry: c({[*arguments, '--help']})\n"
    code += "except SystemExit: print(*[name for name in sys.modules if name.startswith('cloudsched.domain')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert done.stdout.splitlines()[-1] == ""


@pytest.mark.parametrize("command", WHOLE)
def test_the_exceptions_are_needed(command: str) -> None:
    """A command that no longer imports all that it runs leaves the list."""
    _, more = import_by_help(command)
    assert WHOLE[command] in more
