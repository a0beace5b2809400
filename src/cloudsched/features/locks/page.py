"""The page of locks: who holds each, and who waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.view import View
from cloudsched.dashboard.words import write_count

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for locks."""
    return api.get("/v1/locks", pageToken=visit.query.get("page"), pageSize=50)


def build(answer: Json, _visit: Visit) -> Json:
    """Return what the page shows."""
    locks = answer["locks"]
    if not locks:
        return {**answer, "sentence": "No lock is held, and nothing waits."}
    used = write_count(len(locks), "lock is", "locks are")
    waiting = write_count(sum(len(each["waiters"]) for each in locks), "run waits", "runs wait")
    return {**answer, "sentence": f"{used} in use, {waiting}."}


VIEWS: Final = {"locks": View("/locks", fetch, build, "locks.html", "Locks", key="l", parameters=("page",))}
