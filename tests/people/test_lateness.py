"""A message that comes late says how late, in its text and as a field."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from cloudsched import App, Context, RetryPolicy, Schedule, Settings, Task
from cloudsched.testing import Simulation

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
app = App(Settings())


app.handler("remind")(lambda: "Take your pill")


@app.handler("report")
def report(ctx: Context) -> str:
    """Take hours, as it is meant to."""
    ctx.sleep(3 * HOUR)
    return "Take your pill"


@app.handler("broken", retry=RetryPolicy(max_retries=3, first_delay=HOUR, base=HOUR, factor=1, jitter=0))
def broken(ctx: Context) -> str:
    """Fail three times, each an hour later."""
    if ctx.attempt < 4:
        raise ValueError("broken")
    return "Take your pill"


def make(sim: Simulation, **more: Any) -> Task:
    channels = ["EMAIL", "MOBILE", "WEBHOOK", "OPERATOR", "WEB"]
    fields: dict[str, Any] = {"title": "Pill", "owner": "ada", "schedule": sim.now, "delivery_channels": channels}
    return app.create(**{"handler": "remind", **fields, **more})


def assert_late(sim: Simulation, words: str, seconds: float) -> None:
    for channel in ("EMAIL", "MOBILE", "WEBHOOK", "OPERATOR"):
        (sent,) = sim.sent(channel)
        assert sent.body == f"{words} late.\n\nTake your pill"
        assert sent.message.data["late"] == pytest.approx(seconds, abs=60)


def test_a_run_that_began_late_says_so_by_all_channels(sim: Simulation) -> None:
    """Its worker came three hours after it was due."""
    make(sim, pull="gpu")
    sim.advance(3 * HOUR)
    sim.add_worker("gpu")
    sim.advance(MINUTE)
    assert_late(sim, "3 hours", 10_800)
    (message,) = sim.inbox("ada")
    assert message.body == "3 hours late.\n\nTake your pill"
    assert message.late is not None
    assert message.late // MINUTE == 180


def test_a_run_whose_attempts_failed_says_how_late_its_success_is(sim: Simulation) -> None:
    """It began in time, and its message comes with the fourth attempt."""
    make(sim, handler="broken")
    sim.advance(4 * HOUR)
    assert_late(sim, "3 hours", 10_800)


def test_a_message_whose_channel_was_down_says_so_there(sim: Simulation) -> None:
    """The mail is late, and the inbox was not."""
    sim.channel("EMAIL").is_down = True
    make(sim)
    sim.advance(24 * HOUR)
    sim.channel("EMAIL").is_down = False
    sim.advance(24 * HOUR)
    (mail,) = sim.sent("EMAIL")
    (push,) = sim.sent("MOBILE")
    assert mail.body.endswith(" hours late.\n\nTake your pill")
    assert mail.message.data["late"] > 24 * 3600
    assert push.body == sim.inbox("ada")[0].body == "Take your pill"
    assert "late" not in push.message.data


@pytest.mark.parametrize(
    "more",
    [{}, {"handler": "report"}, {"jitter": 24 * HOUR}],
    ids=["in time", "takes long", "has a jitter"],
)
def test_what_is_not_late_says_nothing_of_it(sim: Simulation, more: dict[str, Any]) -> None:
    """A handler that takes hours is not late, nor is a run that its jitter puts off."""
    make(sim, **more)
    sim.advance(30 * HOUR)
    bodies = [each.body for channel in ("EMAIL", "WEBHOOK") for each in sim.sent(channel)]
    assert {*bodies, *(each.body for each in sim.inbox("ada"))} == {"Take your pill"}
    assert [each.late for each in sim.inbox("ada")] == [None]


def test_a_backfill_is_of_the_past_and_not_late(sim: Simulation) -> None:
    """Its occurrences were asked for, long after they were due."""
    task = make(sim, schedule=Schedule.every(HOUR, start=sim.now - 5 * HOUR))
    app.backfill(task.id, sim.now - 3 * HOUR, sim.now - 2 * HOUR)
    sim.advance(10 * MINUTE)
    bodies = [each.body for each in sim.sent("EMAIL")]
    assert len(bodies) > 1
    assert set(bodies) == {"Take your pill"}
