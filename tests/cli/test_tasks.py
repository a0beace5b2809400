"""``cloudsched tasks`` on the command line: its errors and its output."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.conftest import CommandResult, broken, serve_api_of
from tests.instants import MINUTE

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


def test_logs_name_the_exception_and_what_an_execution_waits_for(tasks: Tasks, sim: Simulation) -> None:
    """An error is shown with its class; after a fix, the execution shows what it waits for in place of the error."""
    broken.add("look-up")
    tasks("create", "Look", "--owner", "ada", "--handler", "look-up", "--id", "t")
    assert tasks("logs", "t").out == "No executions yet.\n"
    assert tasks("logs", "t", "--json").out == ""
    sim.advance(10 * MINUTE)
    assert "FAILED  attempt 1  KeyError: 'x'" in tasks("logs", "t").out
    broken.clear()
    tasks("retry", "t")
    sim.advance(10 * MINUTE)
    shown = tasks("logs", "t").out
    assert "SUSPENDED" in shown
    assert "It has asked for the event 'word'" in " ".join(shown.split())
    assert "KeyError" not in shown
    assert tasks("send", "t", "word", "--payload", '{"by": "grace"}').out == "sent word\n"
    sim.advance(10 * MINUTE)
    assert '"heard"' in tasks("logs", "t").out


def test_ctrl_c_ends_logs_that_follow(tasks: Tasks, sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its help says: without further output, and not as an error."""
    tasks(*GREET, "--rrule", "FREQ=HOURLY;COUNT=20")
    sim.advance(10 * MINUTE)

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
        lambda: sim.app.cancel("t") if end == "cancel" else sim.advance(10 * MINUTE),
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
    with serve_api_of(sim.app) as url:
        for command in (("tasks", "--url", url, "list"), ("worker", "--queue", "gpu", "--url", url)):
            said = run_command(*command)
            assert said.code == ExitCode.UNAUTHORISED
            assert "requires authentication: give --key (or CLOUDSCHED_KEY)" in said.err
        said = run_command("tasks", "--url", url, "--key", "csk_box_x", "list")
        assert (said.code, said.err) == (5, "cloudsched: The API key is not known.\n")
