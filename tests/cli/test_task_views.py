"""Looking at a task, choosing what is printed, editing in an editor, and completing words in a shell."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from tests.cli.conftest import CommandResult, broken
from tests.instants import DAY, MINUTE

from cloudsched.cli import main as cli
from cloudsched.cli.main import ExitCode
from cloudsched.testing import Simulation

Tasks = Callable[..., CommandResult]
GREET = ("--owner", "ada", "--handler", "greet", "--payload", '{"name": "Ada"}')


def make(tasks: Tasks, task_id: str = "t", *words: str) -> None:
    schedule = ("--schedule", "every day at 9:00", "--tz", "Europe/Paris")
    said = tasks("create", "Tax report", *GREET, "--id", task_id, *schedule, *words)
    assert said.code == 0, said.err


def test_a_view_is_one_screen_about_a_task(tasks: Tasks, sim: Simulation) -> None:
    """What it is, when it runs next by its clocks, why it does or does not run, and its last runs with their errors."""
    make(tasks)
    sim.advance(2 * DAY)
    shown = tasks("view", "t").out
    for part in ("Tax report", "ada", "greet", "every day at 09:00", "Europe/Paris", "09:00:00 +0100", "SUCCEEDED"):
        assert part in shown
    assert len(shown.splitlines()) <= 24
    tasks("pause", "t")
    assert tasks("why", "t").out.splitlines()[0] in tasks("view", "t").out
    broken.add("look-up")
    tasks("create", "Look", "--owner", "ada", "--handler", "look-up", "--id", "failed")
    sim.advance(10 * MINUTE)
    assert "KeyError" in tasks("view", "failed").out
    told = json.loads(tasks("view", "t", "--json").out)
    assert told.keys() >= {"id", "schedule", "next", "explanation", "executions"}
    assert tasks("view", "absent").code == ExitCode.NOT_FOUND


def test_a_list_is_searched_by_words(tasks: Tasks) -> None:
    """`ls` is `list`."""
    make(tasks)
    tasks("create", "Birthday", *GREET, "--id", "other")
    found = [json.loads(line)["id"] for line in tasks("ls", "--search", "tax rep", "--json").out.splitlines()]
    assert found == ["t"]
    assert tasks("ls").out == tasks("list").out


def test_json_prints_just_the_named_fields(tasks: Tasks, sim: Simulation) -> None:
    """In each command that prints tasks or executions, wherever the option stands. Each line has the same fields."""
    make(tasks)
    assert json.loads(tasks("get", "t", "--json", "id,title").out) == {"id": "t", "title": "Tax report"}
    assert json.loads(tasks("get", "--json", "status", "t").out) == {"status": "ACTIVE"}
    assert json.loads(tasks("pause", "t", "--json=status").out) == {"status": "PAUSED"}
    tasks("resume", "t")
    tasks("create", "Once", *GREET, "--id", "once")
    sim.advance(2 * DAY)
    lines = [json.loads(line) for line in tasks("list", "--json", "id,nextExecutionTime").out.splitlines()]
    assert {tuple(line) for line in lines} == {("id", "nextExecutionTime")}
    logged = [json.loads(line) for line in tasks("logs", "t", "--json", "status").out.splitlines()]
    assert logged == [{"status": "SUCCEEDED"}] * 2
    assert json.loads(tasks("why", "t", "--json", "status").out) == {"status": "ACTIVE"}
    made = tasks("create", "--json", "title,id", *GREET, "--id", "named")
    assert json.loads(made.out) == {"title": "greet", "id": "named"}


def test_json_without_fields_prints_everything(tasks: Tasks) -> None:
    """Also before an argument, which is not taken for a field."""
    make(tasks)
    whole = tasks("get", "t", "--json").out
    assert whole == tasks("get", "--json", "t").out
    assert json.loads(whole).keys() > {"id", "title", "schedule"}


@pytest.mark.parametrize("words", [("list", "--json", "titel"), ("create", "X", *GREET, "--json", "id,titel")])
def test_an_unknown_field_is_refused_before_anything_is_done(tasks: Tasks, words: tuple[str, ...]) -> None:
    """With the names that there are, as JSON."""
    said = tasks(*words)
    error = json.loads(said.err)["error"]
    assert (said.code, said.out, error["kind"]) == (ExitCode.USAGE, "", "usage")
    assert all(name in error["message"] for name in ("titel", "title", "nextExecutionTime"))
    assert tasks("list", "--json").out == ""


@pytest.fixture
def use_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Let $EDITOR be a program that changes the text of its file as an expression of Python says."""

    def use(expression: str) -> None:
        program = tmp_path / "editor.py"
        program.write_text(
            "import json, pathlib, re, sys\n"
            "file = pathlib.Path(sys.argv[1])\n"
            "text = file.read_text('utf-8')\n"
            "fields = json.loads(re.sub('(?m)^#.*$', '', text))\n"
            f"changed = {expression}\n"
            "file.write_text(changed if isinstance(changed, str) else json.dumps(changed), 'utf-8')\n"
        )
        monkeypatch.setenv("EDITOR", f"{shlex.quote(sys.executable)} {program}")
        monkeypatch.delenv("VISUAL", raising=False)

    return use


def test_an_editor_changes_what_differs(tasks: Tasks, sim: Simulation, use_editor: Callable[[str], None]) -> None:
    """And nothing else, nor anything if the text stays as it was. What is left out goes back to its default."""
    make(tasks, "t", "--label", "a=b")
    before = sim.app.get("t")
    use_editor("{**{name: fields[name] for name in fields if name != 'labels'}, 'schedule': 'every day at 10:00'}")
    said = tasks("edit", "t", "--json", "title,labels")
    assert (said.code, json.loads(said.out)) == (0, {"title": "Tax report", "labels": []}), said.err
    after = sim.app.get("t")
    assert (after.payload, after.labels) == (before.payload, ())
    assert "10:00" in tasks("view", "t").out
    assert after.schedule.timezone == "Europe/Paris"
    use_editor("fields")
    assert (tasks("edit", "t").code, sim.app.get("t").revision) == (0, after.revision)


@pytest.mark.parametrize(
    ("expression", "code"),
    [("'{\"title\": '", 2), ("'[]'", 2), ("{**fields, 'maxRuns': 0}", 3), ("{**fields, 'titel': 'x'}", 3)],
)
def test_what_was_written_in_an_editor_is_kept_if_it_is_refused(
    tasks: Tasks, sim: Simulation, use_editor: Callable[[str], None], expression: str, code: int
) -> None:
    """The error names the file, and the task stays as it was."""
    make(tasks)
    before = sim.app.get("t")
    use_editor(expression)
    said = tasks("edit", "t")
    assert said.code == code
    kept = Path(said.err.partition("is kept in ")[2].splitlines()[0].removesuffix("."))
    assert kept.read_text("utf-8")
    kept.unlink()
    assert sim.app.get("t") == before


def test_a_task_that_changes_while_the_editor_is_open_is_not_overwritten(
    tasks: Tasks, sim: Simulation, use_editor: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The edit is refused, as one of another program's state."""
    make(tasks)
    use_editor("fields")

    def write(text: str, *_: str | None, **__: object) -> str:
        sim.app.update("t", title="Theirs")
        return text.replace("Tax report", "Mine")

    monkeypatch.setattr("click.edit", write)
    said = tasks("edit", "t")
    Path(said.err.partition("is kept in ")[2].splitlines()[0].removesuffix(".")).unlink()
    assert said.code == ExitCode.REFUSED
    assert sim.app.get("t").title == "Theirs"


def test_an_edit_takes_the_options_of_a_creation(tasks: Tasks, sim: Simulation) -> None:
    """`update` is the same command, and without a terminal and an editor it asks for a field."""
    make(tasks)
    assert tasks("edit", "t", "--label", "a=b", "--title", "New").code == 0
    assert tasks("update", "t", "--schedule", "make it 10 instead").code == 0
    task = sim.app.get("t")
    assert (task.labels, task.title) == (("a=b",), "New")


def test_without_a_terminal_an_edit_needs_a_field(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that forgets it is told, and does not wait for an editor."""
    make(tasks)
    for name in ("EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)
    assert tasks("edit", "t").code == ExitCode.USAGE


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_a_shell(run_command: Tasks, shell: str) -> None:
    """As that shell evaluates it."""
    said = run_command("completion", shell)
    assert (said.code, said.err) == (0, "")
    assert f"_CLOUDSCHED_COMPLETE={shell}_complete" in said.out


def complete(*words: str) -> set[str]:
    shell = ShellComplete(cli.cloudsched, {}, "cloudsched", "_CLOUDSCHED_COMPLETE")
    return {each.value for each in shell.get_completions([*words[:-1]], words[-1])}


def test_commands_options_and_ids_are_completed(tasks: Tasks, url: str) -> None:
    """Nothing is said of a task's id, and quickly, where no API answers."""
    make(tasks, "report-1")
    make(tasks, "other")
    assert "tasks" in complete("ta")
    assert complete("tasks", "vi") == {"view"}
    assert "--search" in complete("tasks", "list", "--s")
    assert complete("tasks", "list", "--status", "PAU") == {"paused"}
    assert complete("tasks", "--url", url, "view", "rep") == {"report-1"}
    assert complete("tasks", "--url", url, "pause", "") == {"report-1", "other"}
    assert complete("tasks", "--url", "http://127.0.0.1:1", "view", "rep") == set()


def test_every_argument_that_is_a_task_completes_its_id() -> None:
    """A new command that takes one does as well."""
    group = cli.cloudsched.get_command(None, "tasks")  # type: ignore[arg-type]
    arguments = {
        name: each
        for name, command in group.commands.items()  # type: ignore[union-attr]
        for each in command.params
        if each.name == "task_id" and each.param_type_name == "argument"
    }
    assert {name for name, each in arguments.items() if each._custom_shell_complete is None} == set()  # noqa: SLF001 - click's
