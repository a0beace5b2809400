"""Queues and workers: what waits, for how long, and who listens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.dashboard.visit import Visit, ZoneChoice, zone_choices

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.times import Moment


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue, or the part of it that requires a skill."""

    name: str
    skill: str
    waiting: int
    since: Moment | None
    workers: int
    state: str


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker at a queue."""

    name: str
    queue: str
    skills: str
    serves: str
    seen: Moment
    state: str


@dataclass(frozen=True, slots=True)
class QueuesPage:
    """The view model."""

    sentence: str
    queues: list[QueueRow]
    workers: list[WorkerRow]
    zones: list[ZoneChoice]


def fetch(api: Api, _visit: Visit) -> Json:
    """Ask the API for queues and workers."""
    return {"queues": api.get("/v1/queues")["queues"], "workers": api.get("/v1/workers")["workers"]}


def build(answer: Json, visit: Visit) -> QueuesPage:
    """Return the view model of the API's answers."""
    queues = [build_queue(each, visit) for each in answer["queues"]]
    workers = [
        WorkerRow(
            each["worker"],
            each["queue"],
            ", ".join(each.get("skills", ())),
            each.get("owner") or "all owners",
            visit.sure(each["seenAt"]),
            "listens" if each["isListening"] else "gone",
        )
        for each in answer["workers"]
    ]
    unheard = [row.name for row in queues if row.waiting and not row.workers]
    waiting = sum(row.waiting for row in queues)
    sentence = (
        f"Nobody listens at {', '.join(unheard)}." if unheard else "Every queue in which something waits is served."
    )
    return QueuesPage(
        f"{waiting:,} {'run waits' if waiting == 1 else 'runs wait'}. {sentence}", queues, workers, zone_choices(visit)
    )


def build_queue(queue: Json, visit: Visit) -> QueueRow:
    """Return a queue as a row."""
    workers, waiting = queue["workers"], queue["waiting"]
    state = "nobody listens" if not workers else "1 worker listens" if workers == 1 else f"{workers} workers listen"
    return QueueRow(
        queue["queue"], queue.get("skill") or "", waiting, visit.moment(queue.get("firstSince")), workers, state
    )
