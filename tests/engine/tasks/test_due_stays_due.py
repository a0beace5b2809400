"""What is due when its schedule is changed in words still runs, if the new schedule has it as well."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import CliRunner
from tests.cli.conftest import serve_api_of
from tests.engine.harness import DAY, HOUR

from cloudsched import App
from cloudsched.cli.tasks import tasks
from cloudsched.testing import START, Simulation

KEEP = """until 1 June 2027; not on Sundays; also at 18:00; until 1 June 2027 except on Sundays; every day at 12
every day at 12:00 until 1 June 2027; 10 times; on weekdays; only on Fridays; in January; every other day
every day at 12:00, 20 times; skip tomorrow; from Monday to Friday
every day at 12:00 and 18:00; until the end of March; except on 24 December
bis 1. Juni 2027; nicht sonntags; auch um 18 Uhr; jeden zweiten Tag um 12 Uhr; jeden Tag um 12 Uhr bis März
nur freitags; drei Wochen lang; tot 1 juni 2027; niet op zondag; ook om 18:00; elke dag om 12 uur tot 1 mei
alleen op vrijdag"""
GIVE_UP = """an hour later; at 13:00; not on Fridays; on Tuesdays; starting tomorrow
every day at 18:00 until 1 June 2027; nicht freitags; um 13 Uhr; ab morgen; niet op vrijdag; om 13:00; vanaf morgen"""


def update(app: App, words: str) -> None:
    app.update("t", schedule=words)


def draft(app: App, words: str) -> None:
    app.confirm(app.draft(words, timezone="UTC", context={"taskId": "t"}, owner="ada"), owner="ada")


def type_command(app: App, words: str) -> None:
    with serve_api_of(app) as url:
        typed = CliRunner().invoke(tasks, ["--url", url, "edit", "t", "--schedule", words])
    assert typed.exit_code == 0, typed.output


EACH_WAY = pytest.mark.parametrize("change", [update, draft, type_command])


@EACH_WAY
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (words.strip(), status)
        for text, status in ((KEEP, "SUCCEEDED"), (GIVE_UP, "SKIPPED"))
        for words in text.replace("\n", ";").split(";")
    ],
)
def test_what_is_due_stays_due_in_words(change: Callable[[App, str], None], words: str, status: str) -> None:
    """It is Friday, 12:10, and nothing could run since 11:00: whether the 12:00 runs is for the words to decide."""
    with Simulation(App()) as sim:
        sim.app.handler("log", access="users")(lambda: None)
        sim.app.create(id="t", owner="ada", handler="log", schedule="every day at 12:00")
        sim.clock.move_to(START + 12 * HOUR + HOUR / 6)
        change(sim.app, words)
        sim.advance(HOUR / 60)
        assert [each.status for each in sim.executions("t")] == [status]


@EACH_WAY
@pytest.mark.parametrize(
    ("words", "days"),
    [
        ("until 1 June 2027", [1, 15, 29, 12]),
        ("not on Sundays", [1, 15, 29, 12]),
        ("also on Mondays", [1, 15, 25, 29, 8, 12]),
        ("on Fridays and Saturdays", [1, 15, 16, 29, 30, 12, 13]),
        ("every 2 weeks on Friday at 12:00 until May", [1, 15, 29, 12]),
        ("2 times", [1, 15, 29]),
        ("on Wednesdays", [1, 27, 10]),
        ("nur donnerstags", [1, 28, 11]),
    ],
)
def test_every_other_week_stays_the_same_week(change: Callable[[App, str], None], words: str, days: list[int]) -> None:
    """It runs on 1, 15 and 29 January. The run of the 15th is due, and no change of its days makes it the 22nd."""
    with Simulation(App()) as sim:
        sim.app.handler("log", access="users")(lambda: None)
        sim.app.create(id="t", owner="ada", handler="log", schedule="every 2 weeks on Friday at 12:00")
        sim.advance(14 * DAY)
        sim.clock.move_to(START + 14 * DAY + 12 * HOUR + HOUR / 6)
        change(sim.app, words)
        sim.advance(30 * DAY)
        assert [each.scheduled_for.day for each in sim.executions("t") if each.status == "SUCCEEDED"] == days
