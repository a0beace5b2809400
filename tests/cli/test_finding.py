"""`cloudsched search`, `cloudsched audit` and the filters of `tasks logs` show what the API finds."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.cli.conftest import CommandResult
from tests.instants import MINUTE

from cloudsched import App
from cloudsched.testing import Simulation

Run = Callable[..., CommandResult]


@pytest.fixture
def payroll(app: App, sim: Simulation) -> str:
    """A task with two runs, an hour apart, that was paused and resumed."""
    task = app.create(
        owner="ada",
        title="Pay\x1b[31mroll",
        handler="greet",
        payload={"name": "Ada"},
        schedule="every hour",
        labels=["team=shop"],
    )
    sim.advance(timedelta(hours=2, minutes=1))
    app.pause(task.id)
    app.resume(task.id)
    return task.id


def test_search_finds_by_fragments_and_by_the_whole_id(run_command: Run, url: str, payroll: str) -> None:
    """Each kind has its word, a title cannot colour the terminal, and JSON is the API's answer."""
    found = run_command("search", "--url", url, "ROLL")
    assert (found.code, found.err) == (0, "")
    assert f"task  {payroll}  Pay" in found.out
    assert "\x1b" not in found.out
    assert "person  ada" in run_command("search", "--url", url, "ad").out.splitlines()
    assert "label  team=shop" in run_command("search", "--url", url, "shop").out.splitlines()
    assert payroll in run_command("search", "--url", url, payroll).out
    assert run_command("search", "--url", url, "nothing-has-this").out == "Nothing has that in its name.\n"
    assert [each["id"] for each in json.loads(run_command("search", "--url", url, "roll", "--json").out)["tasks"]]
    assert payroll not in run_command("search", "--url", url, "roll", "--owner", "bob").out


def test_audit_shows_who_did_what(run_command: Run, url: str, sim: Simulation, payroll: str, app: App) -> None:
    """The latest first, with what the filters choose, and a deletion after its task."""
    app.delete(payroll)
    sim.advance(MINUTE)
    words = [line.split("  ") for line in run_command("audit", "--url", url).out.splitlines()]
    assert words[0][1:3] == ["deleted", payroll]
    assert "of ada" in words[0]
    assert run_command("audit", "--url", url, "--action", "paused", "--owner", "ada").out.count("deleted") == 0
    later = f"{sim.now + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    assert run_command("audit", "--url", url, "--from", later).out == "Nobody has done anything that matches.\n"
    assert run_command("audit", "--url", url, "--limit", "1", "--json").out.count("\n") == 1
    refused = run_command("audit", "--url", url, "--from", "2027-01-01T00:00:00")
    assert (refused.code, "has no time zone" in refused.err) == (2, True)


def test_logs_show_the_executions_of_a_time_and_a_status(tasks: Run, payroll: str, app: App) -> None:
    """Whatever the limit, only those that match."""
    first, second = sorted(each.scheduled_for for each in app.executions(payroll).items)
    lines = tasks("logs", payroll, "--from", f"{second:%Y-%m-%dT%H:%M:%SZ}", "--json").out.splitlines()
    assert [json.loads(line)["scheduledFor"][:19] for line in lines] == [f"{second:%Y-%m-%dT%H:%M:%S}"]
    lines = tasks("logs", payroll, "--until", f"{second:%Y-%m-%dT%H:%M:%SZ}", "--json").out.splitlines()
    assert [json.loads(line)["scheduledFor"][:19] for line in lines] == [f"{first:%Y-%m-%dT%H:%M:%S}"]
    assert tasks("logs", payroll, "--status", "failed").out == "No execution matches.\n"
