"""Complaints that something runs twice, too early, or has lost its end."""

from __future__ import annotations

from tests.agents.complaints.world import DAY, HOUR, MINUTE, World, complaint, list_tasks

from cloudsched import App


@complaint(
    "A job runs two or three times at its time",
    "openclaw/openclaw#16094",
    "If the queue delivers each dispatch three times, each run still happens once",
)
def delivered_three_times(world: World) -> None:
    task = world.new("every day at 9:00", channels=["WEB", "EMAIL"])
    world.expect(task, world.daily("2027-01-01T09:00", 9))
    deliver = world.sim.queue.deliver

    def deliver_thrice(body: bytes, token: str) -> object:
        for _ in range(2):
            deliver(body, token)
        return deliver(body, token)

    world.sim.queue.deliver = deliver_thrice  # type: ignore[assignment]
    world.advance(5 * DAY)
    assert len(world.ran(task)) == 5
    assert len(world.mail.mails) == 5


@complaint(
    "After a restart, what has run today runs again",
    "openclaw/openclaw#42640",
    "A new process, with an empty queue, repeats nothing",
)
def restarted_after_it_ran(world: World) -> None:
    task = world.new("every day at 9:00", channels=["WEB"])
    world.expect(task, world.daily("2027-01-01T09:00", 9))
    for day in range(1, 5):
        world.until(f"2027-01-{day:02}T09:30")
        world.restart()
    world.advance(DAY)
    assert len(world.ran(task)) == 5


@complaint(
    "A job that ends its own process starts again for ever",
    "NousResearch/hermes-agent#38758",
    "After a few attempts it has failed, and its owner is told",
)
def it_kills_its_process(world: World) -> None:
    task = world.new("in 10 minutes", title="Kills")
    world.kills.add(task)
    world.advance(10 * DAY)
    assert 1 <= len(world.ran(task)) <= 5
    assert ["Failed" in each.title for each in world.inbox()] == [True]


@complaint(
    "A one-time reminder, stored as cron, comes again next year",
    "agentscope-ai/QwenPaw#4029",
    "It runs once in 400 days, and reads as one time",
)
def once_and_next_year(world: World) -> None:
    task = world.new("5 May 2027 at 14:30")
    world.expect(task, [world.at("2027-05-05T14:30")])
    world.advance(400 * DAY)
    assert world.ran(task) == ["05-05 14:30"]
    assert world.ask("read_task", id=task)["status"] == "COMPLETED"


@complaint(
    "A task starts hours or days before its time",
    "anthropics/claude-code#90485",
    "A dispatch that comes early starts nothing",
)
def before_its_time(world: World) -> None:
    task = world.new("20 January 2027 at 9:00")
    world.expect(task, [world.at("2027-01-20T09:00")])
    for _ in range(10):
        for message in world.sim.pending():
            world.sim.redeliver(message)
        world.advance(DAY)
    assert world.ran(task) == []
    world.advance(20 * DAY)
    assert world.ran(task) == ["01-20 09:00"]


@complaint(
    "Each new session of the agent creates the same task again",
    "nanocoai/nanoclaw#783",
    "The same call returns the task that exists, and says since when it does",
)
def created_in_each_session(world: World) -> None:
    task = world.new("every day at 03:00")
    world.expect(task, world.daily("2027-01-01T03:00", 9))
    for _ in range(4):
        world.advance(DAY)
        assert world.new("every day at 03:00") == task
    assert len(world.ran(task)) == 4


@complaint(
    "Each start of the program adds one more interval",
    "cloudflare/agents#1049",
    "A schedule that the code declares is one task, however often the process starts",
)
def declared_at_each_start(world: World) -> None:
    def declare(app: App) -> None:
        @app.scheduled("every day at 9:00", timezone="Europe/Paris")
        def tidy() -> None:
            world.actions.append("tidied")

    for _ in range(5):
        world.restart(declare=declare)
    assert len(list_tasks(world, "system")) == 1
    world.advance(3 * DAY)
    assert world.actions == ["tidied"] * 3


@complaint(
    "Each run is announced twice",
    "openclaw/openclaw#13687",
    "One run is one mail and one message in the inbox",
)
def announced_twice(world: World) -> None:
    task = world.new("every day at 9:00", channels=["WEB", "EMAIL"])
    world.expect(task, world.daily("2027-01-01T09:00", 20))
    world.advance(10 * DAY)
    assert len(world.mail.mails) == len(world.inbox()) == len(world.ran(task)) == 10


@complaint(
    "A run that takes longer than its interval piles up",
    "moadim-io/daemon#514",
    "One at a time: what comes due meanwhile is recorded as skipped, with the reason",
)
def longer_than_its_interval(world: World) -> None:
    task = world.new("every hour from 00:00 to 23:00", handler="read-long", payload={})
    world.expect(task, world.every(HOUR, world.at("2027-01-01T02:00"), 30))
    world.until("2027-01-01T14:05")
    assert world.ran(task) == [f"01-01 {hour:02}:00" for hour in range(2, 15, 2)]


@complaint(
    "An interval drifts by the time that each run takes",
    "openclaw/openclaw#14761",
    "Runs of 90 minutes every two hours begin on the hour, all day",
)
def drifts(world: World) -> None:
    task = world.new("every 2 hours from 00:00 to 23:00", handler="read-long", payload={})
    world.expect(task, world.every(2 * HOUR, world.at("2027-01-01T02:00"), 30))
    world.advance(DAY + MINUTE)
    assert {each[-2:] for each in world.ran(task)} == {"00"}
    assert len(world.ran(task)) == 12
