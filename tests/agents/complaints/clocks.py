"""Complaints about zones, clock changes and days that a month does not have."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tests.agents.complaints.world import DAY, World, complaint


@complaint(
    "Cron is read in UTC, though the person's zone is known",
    "HybridAIOne/hybridclaw#1463",
    "`0 9 * * *` from an agent means 9:00 where its person is",
)
def cron_in_utc(world: World) -> None:
    task = world.new("0 9 * * *")
    world.expect(task, world.daily("2027-01-01T09:00", 9))
    world.advance(3 * DAY)
    assert world.ran(task) == ["01-01 09:00", "01-02 09:00", "01-03 09:00"]


@complaint(
    "The zone of a task is stored and never used",
    "open-jarvis/OpenJarvis#776",
    "Preview, receipt and runs agree in Kathmandu, 5¾ hours ahead of UTC",
    zone="Asia/Kathmandu",
)
def a_zone_with_quarters(world: World) -> None:
    shown = world.ask("preview", when="0 5 * * *")["next"]
    task = world.new("0 5 * * *")
    due = world.daily("2027-01-02T05:00", 9)
    world.expect(task, due)
    assert [datetime.fromisoformat(each) for each in shown] == due[:5]
    world.advance(3 * DAY)
    assert len(world.ran(task)) == 3


@complaint(
    "On the day of the clock change a job is skipped, or runs twice",
    "librefang/librefang#3831",
    "“Every day at 2:30” runs once on both days: at 3:30 in spring, the first time in autumn",
    start=datetime(2027, 3, 26, 12, tzinfo=UTC),
)
def both_clock_changes(world: World) -> None:
    task = world.new("every day at 02:30")
    spring = datetime(2027, 3, 28, 1, 30, tzinfo=UTC)
    autumn = datetime(2027, 10, 31, 0, 30, tzinfo=UTC)
    usual = world.daily("2027-03-27T02:30", 230)
    kept = [each for each in usual if each.date() not in {spring.date(), autumn.date()}]
    world.expect(task, [*kept, spring, autumn])
    world.until("2027-11-02T12:00")
    assert len(world.ran(task)) == 221
    assert "03-28 03:30" in world.ran(task)


@complaint(
    "Since the clocks changed, everything is an hour off",
    "huginn/huginn#1357",
    "9:00 stays 9:00 in both halves of the year, on the person's wall",
    start=datetime(2027, 3, 1, tzinfo=UTC),
)
def an_hour_off(world: World) -> None:
    task = world.new("every weekday at 9:00")
    world.expect(task, world.daily("2027-03-01T09:00", 260, weekdays=range(5)))
    world.until("2027-11-14T12:00")
    assert {each[-5:] for each in world.ran(task)} == {"09:00"}


@complaint(
    "A day without a time is midnight in UTC, so it comes on the wrong day",
    "openclaw/openclaw#118297",
    "A pause until 5 January ends at midnight in Tokyo, and that day's run is the first",
    zone="Asia/Tokyo",
)
def a_day_in_tokyo(world: World) -> None:
    task = world.new("every day at 0:30")
    due = world.daily("2027-01-02T00:30", 9)
    world.expect(task, due)
    world.ask("pause_task", id=task, until="5 January")
    world.expect(task, [each for each in due if each >= world.at("2027-01-05T00:00")])
    world.advance(6 * DAY)
    assert world.ran(task)[0] == "01-05 00:30"


@complaint(
    "“Each month on the 31st” leaves out five months, and nobody says so",
    "actualbudget/actual#6814",
    "The tools ask which is meant: only months that have the day, or the last day of the others, too",
)
def on_the_31st(world: World) -> None:
    words = "every month on the 31st at 9:00"
    asked = world.ask("create_task", title="Rent", handler="remind", when=words)
    only, each_month = re.findall(r"'(every month on the 31st at 09:00 \([^']+)' \(", asked)
    days = ((1, 31), (2, 28), (3, 31), (4, 30), (5, 31), (6, 30), (7, 31), (8, 31))
    due = {world.at(f"2027-{month:02}-{day}T09:00"): day for month, day in days}
    some, last = world.new(only, title="Only"), world.new(each_month, title="Each")
    world.expect(some, [each for each, day in due.items() if day == 31])
    world.expect(last, list(due))
    world.until("2027-07-01T12:00")
    assert (len(world.ran(some)), len(world.ran(last))) == (3, 6)


@complaint(
    "A time that is past is accepted, and stays “scheduled” for ever",
    "NousResearch/hermes-agent#28166",
    "It is refused, and nothing is stored",
)
def in_the_past(world: World) -> None:
    told = world.ask("create_task", title="Late", handler="remind", when="2026-12-24T09:00:00+01:00")
    assert "past" in told
    assert world.ask("find_tasks")["tasks"] == []


@complaint(
    "A task runs in the machine's zone, not in the one that it was written in",
    "n8n-io/n8n#36226",
    "When the person travels, old tasks keep their clock, new ones take the new one, and a change asks which",
)
def in_another_zone(world: World) -> None:
    home = world.new("every day at 9:00", title="Home")
    world.expect(home, world.daily("2027-01-01T09:00", 9))
    paris = world.zone
    world.travel("America/New_York")
    away = world.new("every day at 9:00", title="Away")
    world.expect(away, world.daily("2027-01-01T09:00", 9))
    refused = world.ask("change_task", id=home, when="every day at 8:00")
    assert paris.key in refused
    assert world.zone.key in refused
    world.advance(3 * DAY)
    assert world.ran(home) == ["01-01 03:00", "01-02 03:00", "01-03 03:00"]
    assert world.ran(away) == ["01-01 09:00", "01-02 09:00", "01-03 09:00"]
