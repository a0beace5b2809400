"""Between "came due" and "began": whatever an owner does to a task there, an occurrence gets one run or one record.

The gap has many causes: jitter that is not over, a held lock or a paused queue, a worker that does not come, a sweep
that is late, an open run, a budget that is used up. Each verb and each edit is tried in each, at each instant, with
each policy. `Deployment` finds out what came due without the product's planning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from itertools import product
from typing import Any, Final

import pytest
from tests.domain.transitions.test_backlog import HOUR, MINUTE, Deployment

from cloudsched import ExecutionStatus, Schedule, TaskStatus
from cloudsched.domain.transitions import lifecycle, manual_verbs
from cloudsched.domain.transitions.replan import replan
from cloudsched.errors import InvalidInput, NotAllowed
from cloudsched.features.budgets import holds
from cloudsched.features.pull.work_queue import on_worker_claim
from cloudsched.testing import START

World = Deployment
NOON: Final = START + 12 * HOUR
JITTER = 40 * MINUTE


def wait_for_jitter(world: World) -> None:
    world.edit(jitter=JITTER.total_seconds())


def miss_deliveries(_: World) -> None:
    """Its lock is held, its queue is paused, or the sweep is late: nothing is delivered."""


def wait_for_worker(world: World) -> None:
    world.edit(pull="gpu")


def keep_running(world: World) -> None:
    world.deliver(finishes=False)


def use_up_budget(world: World) -> None:
    world.apply(holds.hold(world.task, world.now, "used up"))


GAPS: Mapping[str, Callable[[World], None]] = {
    "jitter": wait_for_jitter,
    "no delivery": miss_deliveries,
    "no worker": wait_for_worker,
    "an open run": keep_running,
    "no budget": use_up_budget,
}
EVERY: Final = {"rrule": "FREQ=HOURLY", "dtstart": "2027-01-01T00:00:00"}
KEEPING: Final[Mapping[str, Any]] = {
    "the same again": EVERY,
    "by another rule": {
        "rrule": "FREQ=DAILY;BYHOUR=" + ",".join(map(str, range(24))),
        "dtstart": "2027-01-01T00:00:00",
    },
    "more often": {"rrule": "FREQ=MINUTELY;INTERVAL=20", "dtstart": "2027-01-01T00:00:00"},
    "with an end": {**EVERY, "rrule": "FREQ=HOURLY;UNTIL=20270102T000000Z"},
    "with another date": {**EVERY, "rdates": ["2027-01-01T18:30:00"]},
}
"""Schedules that have each occurrence of the old one."""
LOSING: Final[Mapping[str, Any]] = {
    "at another minute": {"rrule": "FREQ=HOURLY", "dtstart": "2027-01-01T00:30:00"},
    "without noon": {**EVERY, "exdates": ["2027-01-01T12:00:00"]},
    "once": {"at": "2027-01-01T20:00:00Z"},
}


def edit_to(schedule: dict[str, Any]) -> Callable[[World], None]:
    return lambda world: world.edit(schedule=schedule)


def pause_and_resume(world: World) -> None:
    world.apply(lifecycle.pause(world.task, world.now, paused_by=None))
    world.advance(5 * MINUTE)
    world.apply(lifecycle.resume(world.task, world.now))


def pause_edit_and_resume(world: World) -> None:
    world.apply(lifecycle.pause(world.task, world.now, paused_by=None))
    world.edit(schedule=KEEPING["more often"])
    world.apply(lifecycle.resume(world.task, world.now))


def cancel_and_start_again(world: World) -> None:
    world.apply(lifecycle.cancel_for_caller(world.task, world.now))
    world.edit(schedule=KEEPING["by another rule"])


def change_days(world: World) -> None:
    schedule = Schedule.model_validate({**EVERY, "exdates": ["2027-01-01T15:00:00"]})
    world.apply(replan(world.task, schedule, world.now, "Its days changed."))


VERBS: Mapping[str, Callable[[World], None]] = {
    **{f"schedule {name}": edit_to(each) for name, each in {**KEEPING, **LOSING}.items()},
    "pause and resume": pause_and_resume,
    "pause, edit, resume": pause_edit_and_resume,
    "cancel": lambda world: world.apply(lifecycle.cancel_for_caller(world.task, world.now)),
    "cancel and start again": cancel_and_start_again,
    "trigger": lambda world: world.apply(manual_verbs.trigger(world.task, world.now, author=None)),
    "an end before": lambda world: world.edit(until=(NOON - MINUTE).isoformat()),
    "an end behind": lambda world: world.edit(until=(NOON + 90 * MINUTE).isoformat()),
    "one run at most": lambda world: world.edit(maxRuns=world.task.run_count + 1),
    "no jitter": lambda world: world.edit(jitter=0),
    "more jitter": lambda world: world.edit(jitter=3000),
    "another queue": lambda world: world.edit(pull="cpu"),
    "another title": lambda world: world.edit(title="another"),
    "another handler": lambda world: world.edit(handler="other"),
    "another overlap": lambda world: world.edit(overlap="allow"),
    "another catch-up": lambda world: world.edit(catchUp="all"),
    "a budget again": lambda world: world.apply(holds.release(world.task, world.now)),
    "other days": change_days,
    "nothing": lambda _: None,
}
INSTANTS: Final = (timedelta(0), MINUTE, 10 * MINUTE, 65 * MINUTE)
POLICIES: Final = (*product(("all", "latest", {"mode": "none", "window": 1800}), ("skip", "buffer", "allow")),)


def play(gap: str, verb: str, after: timedelta, catch_up: object, overlap: str) -> World:
    """Let a task come due at noon, change it before it has begun, and end everything."""
    world = World(schedule={**EVERY, "dtstart": "2027-01-01T12:00:00"}, catchUp=catch_up, overlap=overlap)
    world.advance(11 * HOUR + 30 * MINUTE)
    if gap == "an open run":  # of the hour before
        world.apply(manual_verbs.trigger(world.task, world.now, author=None))
    GAPS[gap](world)
    world.advance(NOON - world.now)
    if gap == "no worker":
        world.deliver(finishes=False)
    world.advance(after)
    with suppress(NotAllowed, InvalidInput):
        VERBS[verb](world)
    if world.task.status is TaskStatus.PAUSED:
        world.apply(holds.release(world.task, world.now))
    finish_all(world)
    for _ in range(8):
        world.advance(20 * MINUTE)
        world.deliver(finishes=True)
        finish_all(world)
    world.settle()
    return world


def finish_all(world: World) -> None:
    """Let each waiting worker do its work, and each handler end."""
    for _ in range(10):
        world.finish()
        claimed = on_worker_claim(world.task, world.now, "token", "ann", None)
        if claimed is not None:
            world.apply(claimed)


def check(world: World, gap: str, verb: str, after: timedelta) -> str | None:
    lost = world.due - set(world.records)
    if lost and world.task.max_runs is None:
        return f"lost: {sorted(lost)}"
    if not all(record.status.is_final for record in world.records.values()):
        return "not over"
    noon = world.records.get("20270101T120000Z")
    keeps = verb.removeprefix("schedule ") in KEEPING and after <= 10 * MINUTE  # or its policies may rule it out
    if keeps and gap in {"jitter", "no worker"} and noon is not None and noon.status is not ExecutionStatus.SUCCEEDED:
        return None if "A newer run was due" in (noon.message or "") else f"noon did not run: {noon.message}"
    return None


@pytest.mark.parametrize("gap", GAPS)
def test_what_came_due_has_one_run_or_one_record_whatever_is_done_before_it_begins(gap: str) -> None:
    """Each verb and edit, at each instant of the gap, with each policy. `Deployment.apply` refuses a second record."""
    failures = []
    for verb, after, (catch_up, overlap) in product(VERBS, INSTANTS, POLICIES):
        if (why := check(play(gap, verb, after, catch_up, overlap), gap, verb, after)) is not None:
            failures.append((verb, after, catch_up, overlap, why))
    assert not failures, f"{len(failures)}: {failures[:5]}"


@pytest.mark.parametrize("policy", [{"expiration": 60}, {"catchUp": "none"}])
def test_a_call_that_is_held_is_cancelled_with_its_parent(policy: Mapping[str, Any]) -> None:
    """Whatever its own policies would have said of it: who made the call has to find it cancelled."""
    world = World(schedule={"at": "2027-01-01T12:00:00Z"}, **policy)
    world.now = NOON + 2 * MINUTE
    use_up_budget(world)
    world.now = NOON + HOUR
    world.apply(lifecycle.cancel(world.task, world.now, "Its parent was cancelled."))
    assert world.task.status is TaskStatus.CANCELLED
