"""Queues, workers and locks: the waiting tasks with their order and their times, the workers, and the holders."""

from __future__ import annotations

from urllib.parse import quote

from cloudsched.dashboard.visit import Api, Json, Visit, write_count


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for queues and workers, and for the tasks that wait in the queue that the address names."""
    chosen = visit.query.get("queue", "")
    path = f"/v1/queues/{quote(chosen, safe='')}/tasks"
    return {
        "queues": api.get("/v1/queues")["queues"],
        "workers": api.get("/v1/workers")["workers"],
        "chosen": chosen,
        "waiting": api.get(path, pageSize=50, pageToken=visit.query.get("page")) if chosen else {},
    }


def build(answer: Json, _visit: Visit) -> Json:
    """Return what the page of queues shows."""
    queues = answer["queues"]
    unheard = [each["queue"] for each in queues if each["waiting"] and not each["workers"]]
    waiting = write_count(sum(each["waiting"] for each in queues), "run waits", "runs wait")
    heard = "Every queue in which something waits is served."
    if unheard:
        heard = f"Nobody listens at {', '.join(unheard)}."
    return {**answer, "sentence": f"{waiting}. {heard}"}


def fetch_locks(api: Api, visit: Visit) -> Json:
    """Ask the API for locks."""
    return api.get("/v1/locks", pageToken=visit.query.get("page"), pageSize=50)


def build_locks(answer: Json, _visit: Visit) -> Json:
    """Return what the page of locks shows."""
    locks = answer["locks"]
    waiting = write_count(sum(len(each["waiters"]) for each in locks), "run waits", "runs wait")
    used = f"{write_count(len(locks), 'lock is', 'locks are')} in use, {waiting}."
    return {**answer, "sentence": used if locks else "No lock is held, and nobody waits."}
