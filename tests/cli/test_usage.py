"""``cloudsched usage``: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

from tests.cli.conftest import CommandResult

from cloudsched.cli.main import ExitCode
from cloudsched.testing import Simulation


def test_usage_is_a_table_or_json(run_command: Callable[..., CommandResult], url: str, sim: Simulation) -> None:
    """One line for each owner and handler, and the sum; a month that is none is refused."""

    def command(*words: str) -> CommandResult:
        return run_command(*words, "--url", url)

    assert command("usage").out == "Nothing was used.\n"
    for owner in ("ada", "x"):
        sim.app.create(owner=owner, title="T", handler="greet", payload={"name": "A"})
    sim.advance(timedelta(hours=1))
    header, *lines, total = command("usage").out.splitlines()
    assert header.split()[:3] == ["OWNER", "HANDLER", "EXECUTIONS"]
    assert sorted(line.split()[:3] for line in lines) == [["ada", "greet", "1"], ["x", "greet", "1"]]
    assert total.split()[0] == "together"
    (row,) = map(json.loads, command("usage", "--owner", "ada", "--json").out.splitlines())
    assert (row["writes"], row["queueOperations"]) == (4, 2)
    assert command("usage", "--month", "2026-12").out == "Nothing was used.\n"
    assert command("usage", "--month", "soon").code == ExitCode.REFUSED
