"""The command line as a tool of scripts: exit codes, errors as JSON, quiet, dry runs, questions, examples."""

from __future__ import annotations

import json
import re
import shlex
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cases import try_each
from tests.cli.conftest import CommandResult
from tests.instants import MINUTE

from cloudsched.cli import options
from cloudsched.cli.main import ExitCode, cloudsched
from cloudsched.testing import Simulation

Tasks = Callable[..., CommandResult]


@pytest.fixture
def dead_url() -> str:
    """An address at which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def create(tasks: Tasks, *words: str) -> dict[str, Any]:
    usual = ("create", "T", "--handler", "greet", "--payload", '{"name": "A"}', "--rrule", "FREQ=DAILY", "--json")
    said = tasks(*usual, *words)
    assert said.code == 0, said.err
    made: dict[str, Any] = json.loads(said.out)
    return made


def test_each_kind_of_failure_has_its_exit_code(
    tasks: Tasks, run_command: Callable[..., CommandResult], dead_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Usage, refused, not found, unauthorised, and unreachable are told apart."""
    task_id = create(tasks)["id"]
    assert tasks("list", "--nothing").code == ExitCode.USAGE
    assert tasks("create", "T", "--handler", "nobody").code == ExitCode.REFUSED
    assert tasks("resume", "absent").code == ExitCode.NOT_FOUND
    assert tasks("cancel", task_id).code == ExitCode.DONE
    assert tasks("pause", task_id).code == ExitCode.REFUSED
    assert run_command("tasks", "--url", dead_url, "list").code == ExitCode.UNREACHABLE
    monkeypatch.setenv("CLOUDSCHED_STORE", "firestore")
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    assert run_command("admin", "shards", "show").code == ExitCode.USAGE


def test_errors_are_json_where_json_was_asked_for(tasks: Tasks) -> None:
    """On standard error, with the kind, the exit code, and all faults of what was given; also of mistyped commands."""
    said = tasks("create", "T", "--handler", "greet", "--payload", "{}", "--set", "maxRuns=0", "--json")
    assert said.out == ""
    error = json.loads(said.err)["error"]
    assert (error["kind"], error["exitCode"], said.code) == ("refused", 3, 3)
    assert error["faults"][0]["field"] == "maxRuns"
    wrong = ("create", "T", "--handler", "greet", "--set", "maxRuns=0", "--set", "priority=SOON")
    faults = json.loads(tasks(*wrong, "--json").err)["error"]["faults"]
    assert {each["field"] for each in faults} == {"maxRuns", "priority", "payload.name"}
    told = tasks(*wrong).err
    assert all(f"{each['field']}: {each['problem']}" in told for each in faults)
    error = json.loads(tasks("get", "absent", "--json").err)["error"]
    assert (error["kind"], error["exitCode"]) == ("not_found", 4)
    error = json.loads(tasks("list", "--jsn", "--json").err)["error"]
    assert (error["kind"], error["exitCode"]) == ("usage", 2)
    assert tasks("get", "absent").err.startswith("cloudsched: ")


def test_quiet_prints_nothing_but_errors(tasks: Tasks) -> None:
    """The exit code tells."""
    task_id = create(tasks)["id"]
    for words in (("get", task_id), ("list",), ("pause", task_id), ("delete", task_id, "--yes")):
        said = tasks(*words, "--quiet")
        assert (said.code, said.out, said.err) == (0, "", ""), words
    assert tasks("get", task_id, "--quiet").err != ""


def test_a_dry_run_changes_nothing(tasks: Tasks, sim: Simulation) -> None:
    """It shows what would be, and refuses what would be refused."""
    assert tasks("create", "T", "--handler", "greet", "--payload", '{"name": "A"}', "--dry-run").code == 0
    assert [*sim.app.tasks().items] == []
    task_id = create(tasks)["id"]
    sim.advance(10 * MINUTE)
    shown = json.loads(tasks("update", task_id, "--title", "New", "--dry-run", "--json").out)
    assert (shown["title"], shown["upcoming"] != []) == ("New", True)
    task = sim.app.get(task_id)
    assert (task.title, task.status, task.revision) == ("T", "ACTIVE", 1)


def test_what_cannot_be_undone_is_asked_for(
    tasks: Tasks, calendars: Tasks, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal is asked; a script has to say --yes, and is told so."""
    task_id = create(tasks)["id"]
    monkeypatch.setattr(options, "_is_terminal", lambda: False)
    said = tasks("delete", task_id)
    assert said.code == ExitCode.USAGE
    assert "--yes" in said.err
    assert calendars("delete", "closed").code == ExitCode.USAGE
    monkeypatch.setattr(options, "_is_terminal", lambda: True)
    monkeypatch.setattr(click, "confirm", _answer(says=False))
    assert tasks("delete", task_id).code == 1
    assert sim.app.get(task_id).id == task_id
    assert json.loads(tasks("delete", task_id, "--yes", "--json").out) == {"deleted": task_id}


def _answer(*, says: bool) -> Callable[..., bool]:
    def confirm(*_: object, abort: bool, **__: object) -> bool:
        if abort and not says:
            raise click.Abort
        return says

    return confirm


def list_leaves(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from list_leaves(found, *path, name)


LEAVES = dict(list_leaves(cloudsched))
SILENT = {"dashboard", "demo", "dev", "emulator", "init", "mcp", "serve", "worker", "run"}
"""What runs until it is stopped, or prints what was run itself, has no ``--json``."""


@try_each("path", LEAVES)
def test_the_help_of_each_command_has_examples(
    path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are typed for this command, with arguments and options that it takes."""
    monkeypatch.chdir(tmp_path)
    for name in ("jobs.json", "handlers.py"):
        (tmp_path / name).touch()
    (tmp_path / "data").mkdir(exist_ok=True)
    command = LEAVES[path]
    lines = re.findall(r"^  cloudsched (.*)$", command.epilog or "", re.MULTILINE)
    assert f"cloudsched {lines[0]}" in " ".join(command.get_help(click.Context(command)).split())
    for line in lines:
        words = shlex.split(re.split(" [<>] ", line)[0])
        assert tuple(words[: len(path)]) == path
        with command.make_context(path[-1], words[len(path) :]):
            pass


NOT_THEIRS = {"outbox", "schema", "completion"}


def test_every_command_has_json_and_quiet() -> None:
    """But those that run until they are stopped, and those whose output is not theirs."""
    for path, command in LEAVES.items():
        options = {name for parameter in command.params for name in parameter.opts}
        if path[0] in (SILENT | NOT_THEIRS) or path in {
            ("admin", "backup"),
            ("admin", "restore"),
        }:
            continue
        assert "--json" in options, path
        assert "--quiet" in options or path == ("tasks", "draft"), path
