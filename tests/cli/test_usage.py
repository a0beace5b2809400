"""``cloudsched usage``: a table for people, JSON for programs."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import CommandResult

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
    assert command("usage", "--month", "soon").code == 2


def test_cost_is_forecast_from_the_schedules(
    run_command: Callable[..., CommandResult], url: str, sim: Simulation
) -> None:
    """By handler, with what is assumed; in dollars by the deployment's prices."""
    for _ in range(3):
        sim.app.create(owner="ada", title="T", handler="greet", payload={"name": "A"}, schedule="every hour")
    said = run_command("cost", "--url", url).out
    assert "greet" in said
    assert "(sweep)" in said
    assert "- Each occurrence succeeds at its first attempt" in said
    found = json.loads(run_command("cost", "--url", url, "--owner", "ada", "--days", "10", "--json").out)
    (row,) = found["handlers"]
    assert (row["tasks"], row["occurrences"], row["writes"]) == (3, 720, 3 * 720)
    assert (
        found["total"]["dollars"] == row["dollars"] == round((720 * 0.3 + 2160 * 0.9 + 1440 * 0.4 + 720 * 0.4) / 1e6, 6)
    )
    assert len(found["assumed"]) > 3
    nothing = json.loads(run_command("cost", "--url", url, "--owner", "bob", "--json").out)
    assert (nothing["handlers"], nothing["total"]["dollars"]) == ([], 0)
    assert run_command("cost", "--url", url, "--from", "soon").code == 2
