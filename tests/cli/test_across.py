"""``cloudsched tasks executions`` and ``occurrences``: one line each, for people and for programs."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.cli.conftest import CommandResult

from cloudsched.cli.main import ExitCode
from cloudsched.engine.tasks import batch_changes
from cloudsched.testing import Simulation

Tasks = Callable[..., CommandResult]

GREET = ("--owner", "ada", "--handler", "greet", "--payload", '{"name": "Ada"}')


def test_what_failed_comes_first(tasks: Tasks, sim: Simulation) -> None:
    """With its reason, in one line, whatever characters it has; filters and JSON as in the API."""
    assert tasks("executions").out == "No executions.\n"
    tasks("create", "Shout", "--owner", "ada", "--handler", "shout", "--id", "s")
    tasks("create", "Hello", *GREET, "--id", "h", "--label", "team=a", "--set", 'category="REPORT"')
    sim.advance(timedelta(hours=1))
    lines = tasks("executions").out.splitlines()
    assert [line.split("  ")[1:3] for line in lines] == [["FAILED", "s"], ["SUCCEEDED", "h"]]
    assert "ValueError: first line" in lines[0]
    assert "\x1b" not in lines[0]
    (found,) = tasks("executions", "--label", "team=a", "--from", "2027-01-01T00:00:00Z", "--json").out.splitlines()
    assert json.loads(found)["taskId"] == "h"
    assert [line.split("  ")[2] for line in tasks("executions", "--category", "report").out.splitlines()] == ["h"]
    assert tasks("executions", "--category", "news").code == 2
    for more in (("--handler", "greet"), ("--category", "REPORT")):
        refused = tasks("executions", "--label", "team=a", *more)
        assert (refused.code, "There are indexes for handler, for label and for category" in refused.err) == (
            ExitCode.REFUSED,
            True,
        )
    assert tasks("executions", "--from", "soon").code == 2


def test_what_is_going_to_run(tasks: Tasks) -> None:
    """By the clocks of each task's zone; an instant without a zone is refused."""
    assert tasks("occurrences", "2027-02-01T00:00:00Z").out == "Nothing runs until then.\n"
    tasks("create", "Hello", *GREET, "--id", "h", "--schedule", "every day at 9", "--tz", "Europe/Paris")
    said = tasks("occurrences", "2027-01-03T00:00:00Z").out.splitlines()
    assert said == ["Fri 2027-01-01 09:00:00 +0100  h  Hello", "Sat 2027-01-02 09:00:00 +0100  h  Hello"]
    (one,) = tasks("occurrences", "2027-01-03", "--tz", "UTC", "--limit", "1", "--json").out.splitlines()
    assert json.loads(one)["taskId"] == "h"
    assert tasks("occurrences", "2027-01-03").code == 2


def test_all_that_match_are_changed(tasks: Tasks, sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted first; asked for unless --yes; with the same key the same change, whose counts are shown when it ends."""
    for name in ("a", "b"):
        tasks("create", name, *GREET, "--id", name, "--schedule", "every year", "--label", "team=a")
    chosen = ("pause", "--label", "team=a")
    assert tasks("batch", *chosen, "--dry-run").out == "2 tasks match.\n"
    assert json.loads(tasks("batch", *chosen, "--dry-run", "--json").out) == {"count": 2}
    with monkeypatch.context() as patched:
        patched.setattr(batch_changes, "MAX_COUNT", 2)
        assert tasks("batch", *chosen, "--dry-run").out == "At least 2 tasks match.\n"
        assert json.loads(tasks("batch", *chosen, "--dry-run", "--json").out) == {"count": 2, "isAtLeast": True}
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert tasks("batch", *chosen).code != 0
    assert "PAUSED" not in tasks("list").out
    key = ("--yes", "--key", "k")
    assert "Started as task batch-" in tasks("batch", *chosen, *key, "--wait", "0").err
    sim.advance(timedelta(minutes=1))
    assert tasks("batch", *chosen, *key).out == "2 changed, 0 skipped, 0 refused\n"
    assert json.loads(tasks("batch", *chosen, *key, "--json").out)["content"]["changed"] == 2
    assert tasks("list", "--status", "PAUSED").out.count("PAUSED") == 2
    assert tasks("batch", "pause", "--yes").code == ExitCode.REFUSED
    assert "Combine it with owner" in tasks("batch", *chosen, "--handler", "greet", "--dry-run").err
