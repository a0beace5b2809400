"""The health of the service on Home: store, queue, sweep, and what hangs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.status import Status
from cloudsched.dashboard.times import parse_instant, write_duration
from cloudsched.dashboard.words import only_if, write_count
from cloudsched.domain.documents.task import NeedCause
from cloudsched.domain.explanation.findings import SEEMS_DEAD, Reason
from cloudsched.domain.transitions.needs import LATE
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit


_OWN: Final = frozenset({"store", "queue"})
"""The services without which nothing runs. Others have a line among what needs attention."""


@dataclass(frozen=True, slots=True)
class HealthRow:
    """The health of one part of the service."""

    part: str
    status: Status
    at: str | None
    detail: str


def fetch_health(api: Api) -> Json:
    """Ask the API whether it is ready, and if not, why."""
    try:
        return api.get("/ready")
    except CloudschedError as error:
        return {**(api.find("/health") or {}), "problem": str(error)}


def build_health(health: Json, counts: Json, visit: Visit) -> list[HealthRow]:
    """Return the health of store, queue and sweep. Only those who see the tasks of all owners see the sweep."""
    return [
        *_build_store(health),
        *(_build_paused(counts) or [_build_queue(health, counts, visit)]),
        *_build_sweep(counts, visit),
        *_build_threads(health, counts),
    ]


def _build_store(health: Json) -> Iterator[HealthRow]:
    if health.get("faults"):
        return  # that is why the process is not ready, and its store may answer or not
    if not health or "problem" in health:
        about = "This page may be older than it looks."
        yield HealthRow("Store", _bad("does not answer"), None, health.get("problem", about))
    else:
        yield HealthRow("Store", _well("answers"), None, "")


def _build_paused(counts: Json) -> list[HealthRow]:
    """Return the queues that are paused, in the sentence of explanations."""
    paused = [each for each in counts.get("causes", ()) if each["reason"] == Reason.QUEUE_PAUSED]
    return [HealthRow("Queue", _bad("paused"), None, each["sentence"]) for each in paused]


def _build_queue(health: Json, counts: Json, visit: Visit) -> HealthRow:
    broken = sorted(name for name, state in health.get("circuits", {}).items() if state != "closed" and name in _OWN)
    if broken:
        return HealthRow("Queue", _bad("has failed"), None, f"Calls to {', '.join(broken)} are held back for a while.")
    since = counts.get("overdueSince")
    if since is None:
        held = sum(each["count"] for each in counts.get("needs", ()) if each["cause"] == NeedCause.HELD)
        besides = only_if(held, f"; used-up budgets and limits hold {write_count(held, 'task', 'tasks')}")
        return HealthRow("Queue", _well("on time"), None, f"nothing is overdue{besides}")
    status = _well("on time")
    if visit.now - parse_instant(since) > LATE:
        status = _bad("late")
    return HealthRow("Queue", status, since, "the first run that has not started was due")


def _build_sweep(counts: Json, visit: Visit) -> Iterator[HealthRow]:
    sweep = counts.get("sweep")
    if sweep is None:
        if visit.owner is None:
            yield HealthRow("Sweep", Status("due", "has not run yet", "due"), None, "")
        return

    said = []
    if sweep["failed"]:
        said.append(f"{sweep['failed']:,} could not be repaired")
    if sweep["unsent"]:
        said.append(f"the queue did not take the dispatches of {sweep['unsent']:,}")
    is_late = sweep["lag"] > LATE.total_seconds()
    status = _well("runs")
    if said:
        status = _bad("has problems")
    elif is_late and _build_paused(counts):
        status = Status("pause", "waits for the queue", "pause")
    elif is_late:
        status = _bad("is late")
    again = write_count(sweep["dispatched"], "dispatch sent again", "dispatches sent again")
    said.append(again if sweep["dispatched"] else "nothing repaired")
    ago = write_duration(timedelta(seconds=sweep["lag"]))
    late = only_if(is_late and not _build_paused(counts), f": {SEEMS_DEAD}")
    yield HealthRow("Sweep", status, None, f"{', '.join(said)}, {ago} ago{late}")


def _build_threads(health: Json, counts: Json) -> Iterator[HealthRow]:
    if hanging := (counts.get("sweep") or {}).get("hanging") or health.get("hanging"):
        about = "Nothing can stop them from outside. Give their waits a timeout, and restart the process."
        yield HealthRow("Handlers", _bad("hang"), None, f"{hanging}. {about}")
    if faults := health.get("faults"):
        told = ", ".join(f"{name} {fault}" for name, fault in sorted(faults.items()))
        yield HealthRow("Process", _bad("has problems"), None, f"It keeps trying, but {told}.")


def _well(word: str) -> Status:
    return Status("ok", word, "ok")


def _bad(word: str) -> Status:
    return Status("fail", word, "fail")
