"""Whether store, queue and sweep are well, each in one line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.status import Status
from cloudsched.dashboard.times import parse_instant, write_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.times import Moment
    from cloudsched.dashboard.visit import Visit

LATE: Final = timedelta(minutes=3)
"""What is overdue for longer has not come by itself: the sweep, each minute, has not helped either."""


@dataclass(frozen=True, slots=True)
class HealthRow:
    """How one part of the service is."""

    part: str
    status: Status
    at: Moment | None
    detail: str


def build_health(health: Json, counts: Json, visit: Visit) -> list[HealthRow]:
    """Return how store, queue and sweep are; the sweep only to those who see the tasks of all owners.

    Args:
        health: What ``/readyz`` says; empty if it does not answer.
        counts: What ``/v1/overview`` says; empty if it does not answer.
        visit: Who looks.
    """
    return [_build_store(health), _build_queue(health, counts, visit), *_build_sweep(counts, visit)]


def _build_store(health: Json) -> HealthRow:
    if not health:
        return HealthRow("Store", _bad("does not answer"), None, "What you see may be older than it seems.")
    return HealthRow("Store", _well("answers"), None, "")


def _build_queue(health: Json, counts: Json, visit: Visit) -> HealthRow:
    broken = sorted(name for name, state in health.get("circuits", {}).items() if state != "closed")
    if broken:
        return HealthRow("Queue", _bad("has failed"), None, f"Calls to {', '.join(broken)} are held back for a while.")
    since = counts.get("overdueSince")
    if since is None:
        return HealthRow("Queue", _well("on time"), None, "nothing is overdue")
    if visit.now - parse_instant(since) > LATE:
        return HealthRow("Queue", _bad("late"), visit.moment(since), "the first that has not started was due")
    return HealthRow("Queue", _well("on time"), visit.moment(since), "the first that has not started was due")


def _build_sweep(counts: Json, visit: Visit) -> Iterator[HealthRow]:
    sweep = counts.get("sweep")
    if sweep is None:
        if visit.owner is None:
            yield HealthRow("Sweep", Status("due", "has not run yet", "due"), None, "")
        return
    trouble = [f"{sweep['failed']:,} could not be repaired"] * bool(sweep["failed"])
    trouble += [f"the queue did not take the dispatches of {sweep['unsent']:,}"] * bool(sweep["unsent"])
    sent = f"{sweep['dispatched']:,} dispatches sent again" if sweep["dispatched"] else "nothing repaired"
    ago = write_duration(timedelta(seconds=sweep["lag"]))
    if trouble or sweep["lag"] > LATE.total_seconds():
        word = "has trouble" if trouble else "is late"
        yield HealthRow("Sweep", _bad(word), None, f"{', '.join([*trouble, sent])}, {ago} ago")
    else:
        yield HealthRow("Sweep", _well("runs"), None, f"{sent}, {ago} ago")


def _well(word: str) -> Status:
    return Status("ok", word, "ok")


def _bad(word: str) -> Status:
    return Status("fail", word, "fail")
