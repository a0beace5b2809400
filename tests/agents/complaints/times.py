"""Complaints that nothing runs, or too late, and nobody learns of it."""

from __future__ import annotations

from datetime import timedelta

from tests.agents.complaints.world import DAY, HOUR, MINUTE, World, complaint


@complaint(
    "Jobs are stored and never run",
    "openclaw/openclaw#7588",
    "A year of “every day at 9:00” runs 365 times, each within two minutes of 9:00",
)
def never_runs(world: World) -> None:
    task = world.new("every day at 9:00")
    world.expect(task, world.daily("2027-01-01T09:00", 370))
    world.advance(365 * DAY)
    assert len(world.ran(task)) == 365


@complaint(
    "The next time moves on, and nothing has run",
    "openclaw/openclaw#10655",
    "Every 15 minutes for a day: 96 runs, and `next` is never past",
)
def moves_on_without_running(world: World) -> None:
    task = world.new("every 15 minutes from 00:00 to 23:59")
    due = world.every(15 * MINUTE, world.at("2027-01-01T01:15"), 200)
    world.expect(task, due)
    for _ in range(8):
        world.advance(3 * HOUR)
        world.ask("read_task", id=task)
    assert len(world.ran(task)) == 96


@complaint(
    "A dispatch is swallowed: no run, no error, no record",
    "NousResearch/hermes-agent#111414",
    "If the queue loses a dispatch, the sweep sends another, and the run still begins within two minutes",
)
def dispatches_are_lost(world: World) -> None:
    task = world.new("every day at 9:00", channels=["WEB"])
    world.expect(task, world.daily("2027-01-01T09:00", 40))
    for day in range(1, 31):
        world.until(f"2027-01-{day:02}T08:59")
        if day % 3 == 0:
            world.sim.queue.purge()
    world.advance(HOUR)
    assert len(world.ran(task)) == 30


@complaint(
    "A run is lost if the machine sleeps at its time, though the list says that it ran",
    "anthropics/claude-code#74432",
    "It runs as soon as the machine is awake, and its message says how late it is",
)
def sleeps_at_its_time(world: World) -> None:
    task = world.new("every day at 9:00", channels=["WEB", "EMAIL"])
    world.expect(task, world.daily("2027-01-01T09:00", 5))
    world.until("2027-01-01T08:30")
    world.sleep(50 * MINUTE)
    world.advance(HOUR)
    assert world.ran(task) == ["01-01 09:20"]
    assert [each.body.startswith("20 minutes late.") for each in world.told()] == [True, True]


@complaint(
    "A missed time is not caught up on after the laptop has slept",
    "anthropics/claude-code#60144",
    "After three days asleep it runs once, says so, and goes on at its usual time",
)
def sleeps_for_three_days(world: World) -> None:
    task = world.new("every day at 9:00", channels=["WEB"])
    world.expect(task, world.daily("2027-01-01T09:00", 9))
    world.advance(DAY)
    world.sleep(3 * DAY)
    world.advance(2 * DAY)
    assert world.ran(task) == ["01-01 09:00", "01-05 01:00", "01-05 09:00", "01-06 09:00"]


@complaint(
    "After a sleep, everything that was missed starts at once",
    "anthropics/claude-code#67195",
    "71 missed hours become one run and one message. A record says why the others did not run",
)
def a_storm_after_a_sleep(world: World) -> None:
    task = world.new("every hour from 00:00 to 23:00", channels=["WEB"])
    world.expect(task, world.every(HOUR, world.at("2027-01-01T02:00"), 90))
    world.advance(HOUR + 10 * MINUTE)
    world.sleep(71 * HOUR)
    world.advance(10 * MINUTE)
    assert len(world.ran(task)) == 2
    assert len(world.inbox()) == 2


@complaint(
    "A reminder of 9:00 comes at 14:00 as if nothing had happened",
    "NousResearch/hermes-agent#93595",
    "It begins with “5 hours late.”, in mail and inbox",
)
def five_hours_late(world: World) -> None:
    task = world.new("2 January 2027 at 9:00", channels=["WEB", "EMAIL"])
    world.expect(task, [world.at("2027-01-02T09:00")])
    world.until("2027-01-02T08:55")
    world.sleep(5 * HOUR + 6 * MINUTE)
    world.advance(DAY)
    assert [each.body.partition("\n")[0] for each in world.told()] == ["5 hours late."] * 2


@complaint(
    "After one missed run, a task stays paused for good",
    "anthropics/claude-code#93626",
    "It stays active: the missed run is made up for, and the next one is in time",
)
def paused_after_a_miss(world: World) -> None:
    task = world.new("every day at 9:00", channels=["WEB"])
    world.expect(task, world.daily("2027-01-01T09:00", 9))
    world.sleep(12 * HOUR)
    world.advance(3 * DAY)
    assert world.ask("read_task", id=task)["status"] == "ACTIVE"
    assert len(world.ran(task)) == 4


@complaint(
    "What was missed while the program was closed is dropped at its start",
    "anthropics/claude-code#76304",
    "The next process finds it in the store and runs it, late, with a word about that",
)
def closed_at_its_time(world: World) -> None:
    task = world.new("every day at 9:00", channels=["WEB"])
    world.expect(task, world.daily("2027-01-01T09:00", 9))
    world.until("2027-01-01T08:00")
    world.restart(after=4 * HOUR)
    world.advance(DAY)
    assert world.ran(task) == ["01-01 12:01", "01-02 09:00"]


@complaint(
    "After a failure, the next time is left out in silence",
    "NousResearch/hermes-agent#113603",
    "A failure is told, and changes nothing of the times to come",
)
def left_out_after_a_failure(world: World) -> None:
    world.is_broken = True
    task = world.new("every day at 9:00", handler="research", payload={})
    world.expect(task, world.daily("2027-01-01T09:00", 9))
    world.advance(DAY)
    world.is_broken = False
    world.advance(3 * DAY)
    assert len(world.ran(task)) == 4


@complaint(
    "An edit drops the run that is due just now",
    "openclaw/openclaw#96159",
    "A change of a title, or the same schedule again, keeps it",
)
def edited_when_due(world: World) -> None:
    task = world.new("every day at 9:00")
    due = world.daily("2027-01-01T09:00", 9)
    world.expect(task, due)
    world.until("2027-01-01T08:59")
    world.sleep(90 * timedelta(seconds=1))
    world.ask("change_task", id=task, title="Bend")
    world.ask("change_task", id=task, when="every day at 9:00")
    world.expect(task, due)
    world.advance(DAY)
    assert world.ran(task)[0] == "01-01 09:00"


@complaint(
    "A run by hand silently cancels the next one of the schedule",
    "NousResearch/hermes-agent#105690",
    "`run_task` is one run more. The schedule stays as it was",
)
def run_by_hand(world: World) -> None:
    task = world.new("every day at 9:00")
    due = world.daily("2027-01-01T09:00", 9)
    world.expect(task, due)
    world.until("2027-01-01T08:00")
    world.ask("run_task", id=task)
    world.expect(task, [world.now - MINUTE, *due])
    world.advance(DAY)
    assert world.ran(task) == ["01-01 08:00", "01-01 09:00"]


@complaint(
    "Of several tasks at one instant only the first three run",
    "anthropics/claude-code#82731",
    "Twelve reminders for the same minute all come in it",
)
def at_the_same_instant(world: World) -> None:
    tasks = [world.new("2 January 2027 at 9:00", title=f"Task {number}", channels=["WEB"]) for number in range(12)]
    for task in tasks:
        world.expect(task, [world.at("2027-01-02T09:00")])
    world.advance(2 * DAY)
    assert [len(world.ran(task)) for task in tasks] == [1] * 12


@complaint(
    "One job that hangs stops all others",
    "nextlevelbuilder/goclaw#820",
    "The others run in time. What hangs is started again once its lease is over",
)
def one_hangs(world: World) -> None:
    hanging = world.new("2 January 2027 at 9:00", title="Hangs", channels=["WEB"])
    other = world.new("every day at 9:00", title="Runs", channels=["WEB"])
    world.expect(other, world.daily("2027-01-01T09:00", 9))
    world.kills.add(hanging)
    world.until("2027-01-02T09:02")
    assert world.ran(other) == ["01-01 09:00", "01-02 09:00"]
    world.kills.clear()
    world.advance(HOUR)
    assert len(world.ran(hanging)) == 2
    assert sum(each.task == hanging for each in world.inbox()) == 1
