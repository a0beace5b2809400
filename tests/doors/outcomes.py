"""What comes of an act, and how what comes of it at a door differs from what the API does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any

from tests.doors.acts import ACTS, READS_OF_A_TASK, Act
from tests.doors.doors import DONE, FRONT, Checked, Door
from tests.doors.world import OWNED, SECRETS, WORLDS


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an act.

    Attributes:
        status: As the API would say it; `DONE` for any success.
        stored: All that is stored afterwards, and that ran.
        seen: Of whom the person was shown something.
    """

    status: int
    stored: tuple[Any, ...]
    seen: frozenset[str]


MARKS = (*(f"title of {origin}" for origin in OWNED), *(f"{origin}'s payload" for origin in OWNED), *SECRETS)


def enter(door: Door, who: str, act: Act, origin: str) -> Outcome:
    """Try an act through a door, in a world of its own."""
    with WORLDS.enter(act.state, origin) as (world, target):
        answer = door.attempt(world, who, act, target)
        stored = world.look()
    text = answer.text.replace("&#39;", "'")
    return Outcome(answer.status, stored, frozenset(mark for mark in MARKS if mark in text))


@cache
def enter_front(who: str, act_name: str, origin: str) -> Outcome:
    act = next(each for each in ACTS if each.name == act_name)
    return enter(FRONT, who, act, origin)


def compare(door: Door, act: Act, who: str, origin: str, expected: Outcome, found: Outcome) -> str | None:
    """Return how an outcome differs from the API's; None if it does not."""
    statuses = {expected.status, found.status}
    is_hidden = door.looks_first and (found.status == HTTPStatus.NOT_FOUND or act.is_reading)
    if len(statuses) > 1 and (DONE in statuses or (door.is_exact and not is_hidden)):
        return f"{found.status}, the API says {expected.status}"
    wanted = leave(origin, act.state) if isinstance(door, Checked) else expected.stored
    if not door.leaves_more and forget(door, found.stored) != forget(door, wanted):
        return f"stored {set(found.stored) - set(wanted)}, not {set(wanted) - set(found.stored)}"
    unseen = found.seen - expected.seen
    unseen -= see_all(who, origin, act.state) if unseen else frozenset()
    return f"it shows {sorted(unseen)}" if unseen else None


@cache
def see_all(who: str, origin: str, state: str) -> frozenset[str]:
    """Return of whom the API shows a person something, in answer to any question about a task."""
    with WORLDS.enter(state, origin) as (world, target):
        shown = " ".join(FRONT.attempt(world, who, act, target).text for act in READS_OF_A_TASK)
    return frozenset(mark for mark in MARKS if mark in shown)


@cache
def leave(origin: str, state: str) -> tuple[Any, ...]:
    """Return what is stored if nobody tries anything."""
    with WORLDS.enter(state, origin) as (world, _):
        return world.look()


def forget(door: Door, stored: tuple[Any, ...]) -> list[Any]:
    if not door.chooses:
        return list(stored)
    tasks = [json.loads(each) for each in stored]
    return [{name: value for name, value in task.items() if name not in door.chooses} for task in tasks]
