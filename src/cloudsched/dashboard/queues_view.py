"""Queues, workers and locks: the waiting tasks with their order and their times, the workers, and the holders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from cloudsched.dashboard.visit import Api, Json, Visit, ZoneChoice, zone_choices

if TYPE_CHECKING:
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
class WaitingRow:
    """A task that waits in a queue."""

    task_id: str
    title: str
    handler: str
    owner: str
    skill: str
    priority: str
    since: Moment


@dataclass(frozen=True, slots=True)
class QueuesPage:
    """The view model."""

    sentence: str
    queues: list[QueueRow]
    workers: list[WorkerRow]
    chosen: str
    """The queue whose waiting tasks are listed."""
    waiting: list[WaitingRow]
    next_page: str | None
    zones: list[ZoneChoice]


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for queues and workers, and for the tasks that wait in the queue that the address names."""
    chosen = visit.query.get("queue", "")
    path = f"/v1/queues/{quote(chosen, safe='')}/tasks"
    waiting = api.get(path, pageSize=50, pageToken=visit.query.get("page")) if chosen else {"tasks": []}
    return {
        "queues": api.get("/v1/queues")["queues"],
        "workers": api.get("/v1/workers")["workers"],
        "chosen": chosen,
        "waiting": waiting["tasks"],
        "next": waiting.get("nextPageToken"),
    }


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
        f"{waiting:,} {'run waits' if waiting == 1 else 'runs wait'}. {sentence}",
        queues,
        workers,
        answer["chosen"],
        [_build_waiting(each, visit) for each in answer["waiting"]],
        visit.with_query(page=answer["next"]) if answer["next"] else None,
        zone_choices(visit),
    )


def _build_waiting(found: Json, visit: Visit) -> WaitingRow:
    return WaitingRow(
        found["taskId"],
        found.get("title") or found["taskId"],
        found["handler"],
        found["owner"],
        found.get("skill") or "any",
        str(found["priority"]).capitalize(),
        visit.sure(found["offeredAt"]),
    )


def build_queue(queue: Json, visit: Visit) -> QueueRow:
    """Return a queue as a row."""
    workers, waiting = queue["workers"], queue["waiting"]
    state = "nobody listens" if not workers else "1 worker listens" if workers == 1 else f"{workers} workers listen"
    return QueueRow(
        queue["queue"], queue.get("skill") or "", waiting, visit.moment(queue.get("firstSince")), workers, state
    )


@dataclass(frozen=True, slots=True)
class Party:
    """A run that holds a lock, or waits for it."""

    task_id: str
    execution_id: str
    title: str
    at: Moment | None


@dataclass(frozen=True, slots=True)
class LockRow:
    """A lock."""

    key: str
    scope: str
    holders: list[Party]
    waiters: list[Party]


@dataclass(frozen=True, slots=True)
class LocksPage:
    """The view model."""

    sentence: str
    locks: list[LockRow]
    next_page: str | None
    zones: list[ZoneChoice]


def fetch_locks(api: Api, visit: Visit) -> Json:
    """Ask the API for locks."""
    return api.get("/v1/locks", pageToken=visit.query.get("page"), pageSize=50)


def build_locks(answer: Json, visit: Visit) -> LocksPage:
    """Return the view model of the API's answer."""
    rows = [
        LockRow(
            each["key"],
            f"of {each['owner']}" if each.get("owner") else "of all",
            [_build_party(party, "until", visit) for party in each["holders"]],
            [_build_party(party, "dueAt", visit) for party in each["waiters"]],
        )
        for each in answer["locks"]
    ]
    waiting = sum(len(row.waiters) for row in rows)
    sentence = (
        f"{_count(len(rows), 'lock is', 'locks are')} in use, {_count(waiting, 'run waits', 'runs wait')}."
        if rows
        else "No lock is held, and nobody waits."
    )
    more = answer.get("nextPageToken")
    return LocksPage(sentence, rows, visit.with_query(page=more) if more else None, zone_choices(visit))


def _build_party(party: Json, name: str, visit: Visit) -> Party:
    title = party.get("title") or party["taskId"]
    return Party(party["taskId"], party["executionId"], title, visit.moment(party.get(name)))


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
