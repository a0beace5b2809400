"""``cloudsched tasks`` on the command line: its errors and its output."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.conftest import CommandResult, broken, serve_api_of

from cloudsched import ExecutionStatus
from cloudsched.cli import tasks as tasks_command
from cloudsched.cli.main import ExitCode
from cloudsched.config.access import Access
from cloudsched.testing import Simulation
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role

Tasks = Callable[..., CommandResult]

GREET = ("create", "Hello", "--owner", "ada", "--handler", "greet", "--payload", '{"name": "Ada"}', "--id", "t")


@pytest.mark.parametrize("command", [("create", "T", "--owner", "ada"), ("update", "t")])
def test_a_script_file_that_is_not_text_is_refused(tasks: Tasks, command: tuple[str, ...], tmp_path: Path) -> None:
    """A file with other bytes than UTF-8 is named, and where it goes wrong."""
    file = tmp_path / "bin.js"
    file.write_bytes(b"ok\xff\xfe")
    said = tasks(*command, "--script", str(file))
    assert said.code == 2
    assert said.err.splitlines()[-1] == f"Error: --script: {file} is not UTF-8: invalid start byte at byte 2."


@pytest.mark.parametrize("columns", [None, 40, 100])
def test_an_id_can_be_copied_from_a_list(columns: int | None, tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow the terminal, an id, a status and an instant are in one line; elsewhere, all is."""
    task_id, title = "an-id-of-more-than-forty-characters-0123456789", "A title that is long enough to be folded"
    tasks("create", title, "--owner", "ada", "--handler", "greet", "--payload", '{"name": "A"}', "--id", task_id)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("rich.console.Console.is_terminal", True)
    said = tasks("list")
    line = next(line for line in said.out.splitlines() if task_id in line)
    assert "ACTIVE" in line
    assert "2027-01-01 00:00:00" in line
    assert (title in line) == (columns is None)


def test_a_creation_says_what_was_understood(tasks: Tasks) -> None:
    """In words, with weekdays beside the instants, and what was assumed; as JSON for programs; not where it is read."""
    said = tasks(*GREET, "--schedule", "every weekday at 9", "--timezone", "Europe/Paris").out
    assert "every weekday at 09:00, Europe/Paris" in said
    assert "Fri 2027-01-01T09:00+01:00, Mon 2027-01-04T09:00+01:00, Tue " in said
    assert "9:00 is in the morning." in said
    changed = json.loads(tasks("update", "t", "--schedule", "make it 14:00", "--json").out)
    assert changed["readBack"]["description"] == "every weekday at 14:00, Europe/Paris"
    assert len(changed["readBack"]["next"]) == 5
    assert "readBack" not in tasks("get", "t").out


def test_logs_name_the_exception_and_what_an_execution_waits_for(tasks: Tasks, sim: Simulation) -> None:
    """An error is shown with its class; after a fix, the execution shows what it waits for in place of the error."""
    broken.add("look-up")
    tasks("create", "Look", "--owner", "ada", "--handler", "look-up", "--id", "t")
    assert tasks("logs", "t").out == "No executions yet.\n"
    assert tasks("logs", "t", "--json").out == ""
    sim.advance(timedelta(minutes=10))
    assert "FAILED  attempt 1  KeyError: 'x'" in tasks("logs", "t").out
    broken.clear()
    tasks("retry", "t")
    sim.advance(timedelta(minutes=10))
    shown = tasks("logs", "t").out
    assert "SUSPENDED" in shown
    assert "waits for the event 'word'" in " ".join(shown.split())
    assert "KeyError" not in shown
    assert tasks("send", "t", "word", "--payload", '{"by": "grace"}').out == "sent word\n"
    sim.advance(timedelta(minutes=10))
    assert '"heard"' in tasks("logs", "t").out


@pytest.mark.parametrize("is_terminal", [False, True])
def test_piped_output_is_not_wrapped(
    is_terminal: bool,  # noqa: FBT001 - of the line above
    tasks: Tasks,
    sim: Simulation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An execution is one line there, and so is a task of a tree."""
    name = "a name of many words " * 20
    payload = json.dumps({"name": name})
    tasks("create", "T", "--owner", "ada", "--handler", "greet", "--payload", payload, "--id", "t" * 100)
    sim.advance(timedelta(minutes=10))
    if is_terminal:
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr("rich.console.Console.is_terminal", True)
    said = [tasks("logs", "t" * 100).out, tasks("tree", "t" * 100).out]
    assert [len(each.splitlines()) == 1 for each in said] == [not is_terminal] * 2
    assert (name in said[0]) == (not is_terminal)
    assert is_terminal or [each == each.rstrip(" \n") + "\n" for each in said] == [True] * 2


def test_ctrl_c_ends_logs_that_follow(tasks: Tasks, sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its help says: without further output, and not as an error."""
    tasks(*GREET, "--rrule", "FREQ=HOURLY;COUNT=20")
    sim.advance(timedelta(minutes=10))

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks_command, "time", SimpleNamespace(sleep=interrupt))
    said = tasks("logs", "t", "--follow")
    assert (said.code, said.err) == (0, "")
    assert len(said.out.splitlines()) == 1
    assert '"hello Ada from ada"' in said.out


@pytest.mark.parametrize("end", ["cancel", "run"])
def test_following_ends_when_the_task_has_ended(
    tasks: Tasks, sim: Simulation, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Cancelled, or with its last run; while it is paused or a run is still open, it goes on."""
    tasks(*GREET, *(("--rrule", "FREQ=HOURLY;COUNT=20") if end == "cancel" else ()))
    steps: list[Callable[[], object]] = [
        lambda: sim.app.pause("t"),
        lambda: sim.app.resume("t"),
        lambda: sim.app.cancel("t") if end == "cancel" else sim.advance(timedelta(minutes=10)),
    ]

    def wait(_: float) -> None:
        assert steps, "it follows a task that has ended"
        steps.pop(0)()

    monkeypatch.setattr(tasks_command, "time", SimpleNamespace(sleep=wait))
    said = tasks("logs", "t", "--follow")
    assert (said.code, said.err, steps) == (0, "", [])
    assert ('"hello Ada from ada"' in said.out) == (end == "run")
    again = tasks("logs", "t", "--follow")
    assert (again.code, again.out) == (0, said.out), "of one that has ended it says what there is"


def test_following_waits_for_a_run_that_outlasts_its_task(
    tasks: Tasks, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status of the task says that it has ended; its result is still to come."""
    tasks(*GREET)
    sim.advance(timedelta(minutes=10))
    [done] = sim.executions("t")
    still = done.model_copy(update={"status": ExecutionStatus.RUNNING})
    answers = [[still], [done]]
    monkeypatch.setattr("cloudsched.client.client.Client.executions", lambda *_: iter(answers.pop(0)))
    monkeypatch.setattr(tasks_command, "time", SimpleNamespace(sleep=lambda _: None))
    assert len(tasks("logs", "t", "--follow", "--json").out.splitlines()) == 2
    assert not answers


def test_a_local_time_is_read_in_the_task_s_zone(tasks: Tasks) -> None:
    """`--at` without an offset is local to `--timezone`, and stays so; with one, the zone only affects the display."""
    local = "2027-06-01T09:00:00"
    for at, kept in ((local, local), ("2027-06-01 09:00", local), ("2027-06-01T07:00:00Z", None)):
        for command in (("update", json.loads(tasks(*GREET, "--json").out)["id"]), GREET):
            said = tasks(*command, "--at", at, "--timezone", "Europe/Paris", "--json")
            schedule = json.loads(said.out)["schedule"]
            assert (schedule["at"], schedule["timezone"]) == ("2027-06-01T07:00:00Z", "Europe/Paris")
            assert schedule.get("local") == kept


def test_an_event_that_nobody_awaits_is_refused_or_kept(tasks: Tasks, sim: Simulation) -> None:
    """Without `--early` it is refused, and nothing is kept of it."""
    tasks(*GREET)
    said = tasks("send", "t", "approved")
    assert said.code == ExitCode.REFUSED
    why = "Cannot send the event 'approved' to a task that is not waiting for it. It waits for no event now."
    assert said.err == f"cloudsched: {why}\n"
    assert tasks("send", "t", "approved", "--early").code == ExitCode.DONE
    assert [each.name for each in sim.app.get("t").events] == ["approved"]


def test_missing_credential_explains_how_to_authenticate(
    run_command: Tasks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, simulate: Callable[..., Simulation]
) -> None:
    """The hint names command-line options, not headers; an invalid credential is reported as invalid."""
    for name in ("CLOUDSCHED_KEY", "CLOUDSCHED_TOKEN", "CLOUDSCHED_PLATFORM_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger("cloudsched"), "handlers", [])
    (tmp_path / "handlers.py").write_text("from cloudsched import App\napp = App()\n@app.handler('x')\ndef x(): ...\n")
    kept = create_key("box", Role.ADMIN)[1]
    sim = simulate(access=Access(api_keys=(str(kept),)))
    with serve_api_of(sim) as url:
        for command in (("tasks", "--url", url, "list"), ("worker", "--queue", "gpu", "--url", url)):
            said = run_command(*command)
            assert said.code == ExitCode.UNAUTHORISED
            assert "requires authentication: give --key (or CLOUDSCHED_KEY)" in said.err
        said = run_command("tasks", "--url", url, "--key", "csk_box_x", "list")
        assert (said.code, said.err) == (5, "cloudsched: The API key is not known.\n")
