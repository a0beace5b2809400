"""Locks: who holds them, and who waits, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.dashboard.visit import Visit, ZoneChoice, zone_choices

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.times import Moment


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


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for locks."""
    return api.get("/v1/locks", pageToken=visit.query.get("page"), pageSize=50)


def build(answer: Json, visit: Visit) -> LocksPage:
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
