"""``cloudsched tasks draw`` writes the pictures of the dashboard."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from cloudsched.cli.exit_codes import ExitCode
from cloudsched.cli.main import cloudsched

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import CommandResult

    from cloudsched.testing import Simulation


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Give the id of a task, or --week."),
        (("t", "--week", "2027-01-01"), "Give the id of a task, or --week."),
        (("--week", "soon"), "is not a date"),
        (("--week", "2027-01-01", "--execution", "e"), "goes with the id of its task"),
    ],
)
def test_what_cannot_be_drawn_is_said_before_anything_is_asked(words: tuple[str, ...], said: str) -> None:
    """By the command's own words; no API answers at that address."""
    done = CliRunner().invoke(cloudsched, ["tasks", "--url", "http://127.0.0.1:9", "draw", *words])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_a_life_a_run_and_a_week_are_pictures(
    tasks: Callable[..., CommandResult], sim: Simulation, tmp_path: Path
) -> None:
    """Well-formed SVG, to the output or to a file; the title is the task's."""
    sim.app.create(id="t", owner="ada", title="Greet Ada", handler="greet", payload={"name": "Ada"})
    sim.advance(timedelta(minutes=1))
    (record,) = sim.app.executions("t").items
    file = tmp_path / "life.svg"
    assert tasks("draw", "t", "-o", str(file)).code == 0
    texts = [
        file.read_text("utf-8"),
        tasks("draw", "t", "--execution", record.id).out,
        tasks("draw", "--week", "2027-01-01", "--tz", "Europe/Paris").out,
    ]
    for text in texts:
        root = ET.fromstring(text)  # noqa: S314 - of ours
        assert root.tag.endswith("}svg")
    assert all("Greet Ada" in text for text in texts[:2])
    assert "3 January 2027" in texts[2]
    assert tasks("draw", "none").code == ExitCode.NOT_FOUND
    assert "no time zone 'Mars/Base'" in tasks("draw", "t", "--tz", "Mars/Base").err
    assert "Europe/Paris" in texts[2]
