"""Complaints that people are not told, or told what is not true."""

from __future__ import annotations

import json
from typing import Any

from tests.agents.complaints.world import DAY, HOUR, MINUTE, World, complaint, list_tasks


@complaint(
    "The agent says “scheduled”, and nothing is there to run it",
    "NousResearch/hermes-agent#87033",
    "The receipt says “Created, but”: the queue is paused, or no worker listens",
)
def nothing_runs_it(world: World) -> None:
    for handler, cause in (("print", "worker"), ("remind", "paused")):
        world.sim.queue.holds = handler == "remind"
        world.advance(MINUTE)
        answer = world.ask("create_task", title="Print", handler=handler, when="now")
        read = world.ask("read_task", id=answer["id"])
        assert not read["scheduled"]
        assert cause in json.dumps([answer["told"], read["doubts"]])
    assert world.starts == []


@complaint(
    "A time that is long past is shown as the next one",
    "NousResearch/hermes-agent#114309",
    "`next` is empty then, and `doubts` say that it is due and has not begun",
)
def a_next_time_that_is_past(world: World) -> None:
    task = world.new("in 5 minutes", channels=["WEB"])
    world.expect(task, [world.now + 5 * MINUTE])
    world.sleep(7 * HOUR)
    read = world.ask("read_task", id=task)
    assert (read["next"], read["scheduled"]) == ([], False)
    assert read["doubts"]
    world.advance(HOUR)
    assert world.inbox()[0].body.startswith("6 hours late.")


@complaint(
    "A message that did not arrive counts as “ok”",
    "NousResearch/hermes-agent#83993",
    "The answer says that it has not arrived. It is sent again, and then says how late it is",
)
def a_mail_that_does_not_arrive(world: World) -> None:
    task = world.new("every day at 9:00", channels=["EMAIL"])
    world.expect(task, world.daily("2027-01-01T09:00", 3))
    world.until("2027-01-01T08:00")
    world.mail.is_down = True
    world.until("2027-01-01T12:00")
    read = world.ask("read_task", id=task)
    assert "mail" in " ".join([*read["doubts"], *read["why"]]).lower()
    world.mail.is_down = False
    world.until("2027-01-02T08:00")
    assert [each.body.partition(" late.")[0][-5:] for each in world.mail.mails] == ["hours"]


@complaint(
    "“Delivered” is said of a run that had nothing to say",
    "NousResearch/hermes-agent#94926",
    "No answer claims it: `run_task` says that a run begins, and nothing is sent",
)
def delivered_nothing(world: World) -> None:
    task = world.new("every day at 9:00", handler="watch", payload={}, channels=["WEB", "EMAIL"])
    answer = world.ask("run_task", id=task)
    world.advance(HOUR)
    read = world.ask("read_task", id=task)
    assert not any(word in json.dumps([answer, read]).lower() for word in ("delivered", "has been sent", "was sent"))
    assert world.told() == []


@complaint(
    "Runs fail for days, and nobody is told",
    "openclaw/openclaw#118089",
    "The first failure is told at once, once, with when it was and the next run. So is that it works again",
)
def nobody_is_told_of_failures(world: World) -> None:
    world.is_broken = True
    task = world.new("every day at 9:00", handler="research", payload={}, channels=["EMAIL"])
    world.expect(task, world.daily("2027-01-01T09:00", 40))
    world.advance(30 * DAY)
    assert [(each.title, "It runs next" in each.body) for each in world.mail.mails] == [("Failed: Stretch", True)]
    world.is_broken = False
    world.advance(DAY)
    assert any("30 times in a row" in each.body for each in world.mail.mails[1:])


@complaint(
    "An hourly check reports that there is nothing to report",
    "openclaw/openclaw#20941",
    "A run with nothing to say sends nothing. The hour with news is one mail",
)
def nothing_to_report(world: World) -> None:
    task = world.new("every hour from 00:00 to 23:00", handler="watch", payload={}, channels=["WEB", "EMAIL"])
    world.expect(task, world.every(HOUR, world.at("2027-01-01T02:00"), 60))
    world.advance(DAY)
    assert world.told() == []
    world.news = "It rains"
    world.advance(HOUR)
    world.news = ""
    world.advance(DAY)
    assert len(world.told()) == 2
    assert all("It rains" in each.body for each in world.told())


@complaint(
    "A reminder fires, and there is no way to reach the person",
    "eddiearc/larkin#148",
    "The answer says so when the task is created: no proved address, or no such channel",
)
def no_way_to_reach_the_person(world: World) -> None:
    world.sim.app.update_person("ada", email={"address": "new@example.com", "verified": False})
    answer = world.ask("create_task", title="Tea", handler="remind", when="every day at 9:00", channels=["EMAIL"])
    assert answer["told"].startswith("Created, but")
    assert "address" in answer["told"]
    assert not answer["scheduled"]


@complaint(
    "An argument that the tool does not know is dropped, and “done” is said",
    "erikdarlingdata/PerformanceMonitor#3870",
    "It is refused by name, and nothing is stored",
)
def an_argument_that_is_dropped(world: World) -> None:
    unknown: dict[str, Any] = {"delivery_channels": ["EMAIL"], "timezone": "UTC", "repeat": False}
    for name, value in unknown.items():
        more = {name: value}
        told = world.ask("create_task", title="Tea", handler="remind", when="every day at 9:00", **more)
        assert f"'{name}'" in told
    assert list_tasks(world) == []


@complaint(
    "A task that switched itself off says so only in a log",
    "openclaw/openclaw#29098",
    "The message about the failure says that the task is paused, and why",
)
def switched_off_in_silence(world: World) -> None:
    world.is_broken = True
    task = world.new("every day at 9:00", handler="research", payload={})
    world.sim.app.update(task, pause_after_failures=3)
    due = world.daily("2027-01-01T09:00", 3)
    world.expect(task, due)
    world.advance(10 * DAY)
    assert len(world.ran(task)) == 3
    assert any("paused" in each.body.lower() for each in world.inbox())
    assert world.ask("read_task", id=task)["next"] == []


@complaint(
    "A reminder is taken, held back, and nobody says why",
    "Abilityai/trinity#1806",
    "If its owner has used up the budget, the receipt and `why` say so",
)
def held_back(world: World) -> None:
    world.use_up_the_budget()
    answer = world.ask("create_task", title="Tea", handler="remind", when="in 10 minutes")
    text = answer if isinstance(answer, str) else json.dumps(answer)
    assert "budget" in text.lower() or "used up" in text.lower(), text
    world.advance(HOUR)
    assert [each for each in world.starts if each.says.startswith("stretch")] == []
