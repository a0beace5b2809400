"""A delivery is a task that a success creates, in the same commit, and that carries the result to one person."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from cloudsched import App, Context, Schedule, Task
from cloudsched.errors import DeliveryDelayed
from cloudsched.testing import Simulation

app = App()
HOUR = timedelta(hours=1)


app.handler("remind")(lambda: "Water the plants")


@app.handler("talk")
def talk(ctx: Context) -> None:
    """Notify twice."""
    ctx.notify("First", "one")
    ctx.notify("Second", "two")


def make(sim: Simulation, *channels: str, handler: str = "remind", **more: object) -> Task:
    fields: dict[str, Any] = {
        "title": "Plants",
        "owner": "ada",
        "schedule": sim.now,
        "delivery_channels": channels,
    } | more
    return sim.app.create(handler=handler, **fields)


def test_what_is_notified_reaches_the_inbox_always_and_other_channels_if_they_are_named(sim: Simulation) -> None:
    """Several notices are one message of a channel, and one each in the inbox."""
    make(sim, handler="talk")
    sim.advance(HOUR)
    assert [each.title for each in sim.inbox("ada")] == ["First", "Second"]
    assert not sim.sent("EMAIL")
    make(sim, "EMAIL", handler="talk")
    sim.advance(HOUR)
    (sent,) = sim.sent("EMAIL")
    assert sent.title == "First"
    assert sent.body == "one\n\nSecond\ntwo"


def test_is_delivered_when_all_channels_have_taken_it(sim: Simulation) -> None:
    """Readers of Firestore see it in the execution; the last delivery's last commit sets it."""
    task = make(sim, "EMAIL", "MOBILE", "WEB")
    sim.channel("MOBILE").is_down = True
    sim.advance(timedelta(seconds=1))
    assert sim.sent("EMAIL")
    assert [each.is_delivered for each in sim.executions(task.id)] == [False]
    sim.channel("MOBILE").is_down = False
    sim.advance(timedelta(hours=1))
    assert [each.is_delivered for each in sim.executions(task.id)] == [True]


def test_messages_of_one_task_are_one_thread_and_no_two_have_the_same_id(sim: Simulation) -> None:
    """Mail programs show them as a conversation. Neither can be guessed from what others know."""
    make(sim, "EMAIL", schedule=Schedule.parse("DTSTART:20270101T010000Z\nRRULE:FREQ=DAILY;COUNT=3"))
    make(sim, "EMAIL", "MOBILE")
    sim.advance(timedelta(days=5))
    threads = [each.message.thread for each in sim.sent("EMAIL")]
    assert len(threads) == 4
    assert len(set(threads)) == 2
    ids = [each.message.id for each in (*sim.sent("EMAIL"), *sim.sent("MOBILE"))]
    assert len(set(ids)) == len(ids) == 5


def test_an_occurrence_that_is_run_again_is_not_delivered_again(sim: Simulation) -> None:
    """A backfill of a past range succeeds, and its executions keep their deliveries."""
    daily = Schedule.parse("DTSTART:20270101T010000Z\nRRULE:FREQ=DAILY;COUNT=2")
    task = make(sim, "EMAIL", schedule=daily)
    sim.advance(timedelta(hours=3))
    sim.app.backfill(task.id, sim.now - timedelta(hours=3), sim.now)
    sim.advance(timedelta(days=2))
    assert {each.status for each in sim.executions(task.id)} == {"SUCCEEDED"}
    ids = [each.message.id for each in sim.sent("EMAIL")]
    assert len(ids) == len(set(ids)) == len(sim.executions(task.id))


@pytest.mark.parametrize("asked", [timedelta(seconds=1), timedelta(hours=2)])
def test_a_channel_that_says_when_it_can_is_asked_then(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, asked: timedelta
) -> None:
    """And not before the policy's own pause: a short one would use the attempts up."""
    calls: list[datetime] = []

    def send(*_: object) -> str:
        calls.append(sim.now)
        if len(calls) == 1:
            raise DeliveryDelayed("The mail server", "it is busy", asked)
        return "1"

    monkeypatch.setattr(sim.channel("EMAIL"), "send", send)
    make(sim, "EMAIL")
    sim.advance(5 * HOUR)
    assert len(calls) == 2
    least = max(asked, timedelta(seconds=4))  # five, less a tenth that is left to chance
    assert least <= calls[1] - calls[0] < least + timedelta(minutes=1)
