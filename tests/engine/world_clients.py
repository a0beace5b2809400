"""What the world's clients do: create, edit, hold, run by hand and remove a few tasks, all policies mixed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from cloudsched import App, Overlap, RetryPolicy, Schedule, TaskDraft
from cloudsched.domain.policy import CatchUp, CatchUpMode

if TYPE_CHECKING:
    from tests.engine.world import World

IDS = ("a", "b", "c")


def one_change(world: World, app: App) -> None:
    """Do one thing to one task."""
    task_id = world.random.choice(IDS)
    if world.weather.is_crowded:
        task_id = next((one for one in IDS if world.inner.load(one) is None), task_id)
    if app.store.load(task_id) is None:
        verb = "create"
    elif world.weather.is_crowded:
        verb = world.random.choice(["edit", "trigger", "trigger", "resume"])
    else:
        verbs = ["create", "edit", "edit", "limit", "pause", "resume", "resume", "trigger", "trigger"]
        verb = world.random.choice([*verbs, "backfill", "retry", "cancel", "delete"])
    world.say(f"wants to {verb} {task_id}")
    world.rules.asked(verb)
    match verb:
        case "create":
            told = app.create(_draft(world, task_id))
        case "edit":
            told = app.update(task_id, title=f"edited at {world.now}", **_policies(world))
        case "limit":
            told = app.update(
                task_id, until=world.now + _span(world) * 5, max_runs=world.random.choice([None, 1, 5, 50])
            )
        case "backfill":
            end = app.clock.now() - _span(world)
            told = app.backfill(task_id, end - _span(world) * 3, end)
        case "delete":
            app.delete(task_id)
            return
        case _:
            told = getattr(app, verb)(task_id)
    world.rules.told(told)


def _draft(world: World, task_id: str) -> TaskDraft:
    return TaskDraft.of(
        id=task_id, owner="ada", title="Work", handler="work", schedule=_schedule(world), **_policies(world)
    )


def _schedule(world: World) -> Schedule:
    choose = world.random.choice
    start = world.now + world.random.random() * _span(world)
    if world.random.random() < 0.25 and not world.weather.is_crowded:
        far = timedelta(days=choose([29, 31, 61, 65])) if world.weather.is_long else timedelta(0)
        return Schedule.once(start + far)
    rules = [
        "FREQ=HOURLY;INTERVAL=2",
        "FREQ=MINUTELY;INTERVAL=20",
        "FREQ=MINUTELY;INTERVAL=10;COUNT=9",
        "FREQ=HOURLY;COUNT=4",
    ]
    rules = rules[:2] if world.weather.is_crowded else rules
    rare = ["FREQ=DAILY;INTERVAL=5", "FREQ=MONTHLY;BYMONTHDAY=-1", "FREQ=YEARLY;BYMONTH=5,6", "FREQ=WEEKLY;BYDAY=MO,SA"]
    local = start.replace(tzinfo=None, microsecond=0)
    if world.weather.is_crowded:
        local = local.replace(minute=0, second=0)
    # A start in the past is the way of recurring schedules; they go on from now.
    begun = local - choose([timedelta(0), timedelta(hours=5), timedelta(days=40)])
    zone = choose(["UTC", "Europe/Paris", "America/New_York"])
    return Schedule(rrule=choose(rare if world.weather.is_long else rules), dtstart=begun.isoformat(), timezone=zone)


def _policies(world: World) -> dict[str, Any]:
    choose = world.random.choice
    return {
        "overlap": choose(list(Overlap)),
        "catch_up": CatchUp(mode=choose(list(CatchUpMode)), window=choose([None, None, timedelta(minutes=30)])),
        "expiration": choose([None, None, None, timedelta(minutes=15)]),
        "jitter": choose([timedelta(0), timedelta(0), timedelta(minutes=3)]),
        "expected_duration": choose([timedelta(seconds=40), timedelta(minutes=5)]),
        "retry": RetryPolicy(max_retries=choose([0, 1, 3]), base=timedelta(seconds=choose([5, 600]))),
        "pause_after_failures": choose([None, None, 2]),
        "max_runs": None if world.weather.is_crowded else choose([None, None, None, 1, 4]),
        "lock_key": "one thing" if world.weather.is_crowded else choose([None, None, "one thing", "another"]),
        "delivery_channels": choose([(), ("WEB",)]),
    }


def _span(world: World) -> timedelta:
    return timedelta(days=3) if world.weather.is_long else timedelta(minutes=world.random.choice([1, 7, 30]))
