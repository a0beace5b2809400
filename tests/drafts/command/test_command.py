"""``cloudsched tasks draft`` on the command line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

import pytest
from tests.cli.conftest import CommandResult
from tests.drafts_app import make_app

from cloudsched import App
from cloudsched.testing import Simulation

WORDS = ("remind me to stretch every weekday at 9:00", "--tz", "Europe/Paris", "--owner", "ada")


@pytest.fixture(name="app")
def drafting_app() -> App:
    return make_app()


def test_a_sentence_becomes_a_task(sim: Simulation, url: str, run_command: Callable[..., CommandResult]) -> None:
    """It is shown with its next occurrences; --dry-run and --json store nothing, --yes does."""
    shown = run_command("tasks", "--url", url, "draft", *WORDS, "--dry-run")
    assert shown.code == 0, shown.err
    assert "every weekday at 09:00, Europe/Paris" in shown.out
    assert "Fri 2027-01-01 09:00 +0100" in shown.out
    assert json.loads(run_command("tasks", "--url", url, "draft", *WORDS, "--json").out)["decision"] == "CREATION"
    assert sim.app.tasks().items == []
    created = run_command("tasks", "--url", url, "draft", *WORDS, "--yes")
    assert sim.app.tasks().items[0].id == created.out.splitlines()[-1]
    renamed = run_command("tasks", "--url", url, "draft", "move my reminder to 10:00", *WORDS[1:], "--yes")
    assert renamed.code == 0, renamed.err
    assert len(sim.app.tasks().items) == 1


def test_an_operation_is_shown_and_done(sim: Simulation, url: str, run_command: Callable[..., CommandResult]) -> None:
    """With the title of its task, of which a list names the id."""
    run_command("tasks", "--url", url, "draft", *WORDS, "--yes")
    (task,) = sim.app.tasks().items
    listed = run_command("tasks", "--url", url, "draft", "list my reminders", *WORDS[1:])
    assert (listed.code, task.id in listed.out) == (0, True)
    shown = run_command("tasks", "--url", url, "draft", "pause my reminder", *WORDS[1:], "--dry-run")
    assert f"{task.title} ({task.id})" in shown.out
    assert "pause" in shown.out
    assert sim.app.get(task.id).status == "ACTIVE"
    assert run_command("tasks", "--url", url, "draft", "pause my reminder", *WORDS[1:], "--yes").code == 0
    assert sim.app.get(task.id).status == "PAUSED"


def test_what_is_printed_can_be_typed(sim: Simulation, url: str, run_command: Callable[..., CommandResult]) -> None:
    """Each answer to a question names the words or options that lead on, with the task that it is about."""
    zone = ("--tz", "Europe/Paris", "--owner", "ada")
    for name in ("mum", "dad"):
        run_command("tasks", "--url", url, "draft", f"remind me to call {name} every Sunday at 18:00", *zone, "--yes")
    asked = run_command("tasks", "--url", url, "draft", "move my reminder to Monday at 5", *zone)
    assert "question: Which task do you mean?" in asked.out
    (line,) = [each for each in asked.out.splitlines() if "Call mum (every Sunday at 18:00, Europe/Paris): add" in each]
    task = shlex.split(line.partition(": add ")[2])
    asked = run_command("tasks", "--url", url, "draft", "move my reminder to Monday at 5", *zone, *task)
    line = next(each for each in asked.out.splitlines() if "17:00" in each)
    task += shlex.split(line.partition(": add ")[2])
    changed = run_command("tasks", "--url", url, "draft", "move my reminder to Monday at 5", *zone, *task, "--yes")
    assert changed.code == 0, changed.out
    assert f"Call mum ({task[1]})" in changed.out
    assert sim.app.get(task[1]).schedule.describe() == "every Monday at 17:00, Europe/Paris"
