"""``cloudsched usage``: a table for people, JSON for programs."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from cloudsched.cli.exit_codes import ExitCode

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
    assert command("usage", "--month", "soon").code == ExitCode.REFUSED


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


@pytest.mark.parametrize(
    ("rate", "runs"),
    [("1M/month", 1e6), ("20k/day", 600_000), ("300/minute", 12_960_000), ("0.5/hour", 360), ("2/second", 5_184_000)],
)
def test_a_plan_is_priced_without_a_deployment(
    run_command: Callable[..., CommandResult], rate: str, runs: float
) -> None:
    """It asks no API, and each run costs what the page says; the totals are those of the parts."""
    found = json.loads(run_command("cost", "--url", "http://127.0.0.1:9", "--plan", rate, "--json").out)
    assert found["occurrences"] == runs
    parts = {each["part"]: each for each in found["parts"]}
    assert parts["documents written"]["amount"] == 3 * runs
    assert parts["documents written"]["dollars"] == pytest.approx(2.7 * runs / 1e6)
    assert found["dollars"] == pytest.approx(sum(each["dollars"] for each in parts.values()))
    assert found["dollarsBeforeCompute"] == pytest.approx(runs * 4.4837e-6, rel=1e-3)


def test_a_plan_follows_its_options_and_the_prices_of_the_settings(
    run_command: Callable[..., CommandResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time and retention count, and CLOUDSCHED_PRICES replaces the list's."""

    def plan(*options: str) -> float:
        found = json.loads(run_command("cost", "--plan", "1M/month", *options, "--json").out)
        return float(found["dollarsOfRuns"])

    usual = plan()
    assert usual - plan("--seconds", "0") == pytest.approx(2.525)
    assert plan("--kept", "60") - usual == pytest.approx(0.1837, rel=1e-3)
    monkeypatch.setenv("CLOUDSCHED_PRICES", "write=0")
    assert usual - plan() == pytest.approx(2.7)


@pytest.mark.parametrize(
    "options",
    [
        ["--plan", "many"],
        ["--plan", "1M"],
        ["--plan", "-1/day"],
        ["--plan", "999999999B/second"],
        ["--plan", "1/day", "--owner", "ada"],
        ["--kept", "1"],
        ["--seconds", "1"],
    ],
)
def test_a_plan_that_says_nothing_is_refused(run_command: Callable[..., CommandResult], options: list[str]) -> None:
    """In words, and before anything is asked."""
    done = run_command("cost", "--url", "http://127.0.0.1:9", *options)
    assert done.code == 2
    assert "Error: " in done.err
