"""The queues: what waits in each, who works on it, and who has paused it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from cloudsched.dashboard.forms.fields import Submitted
from cloudsched.dashboard.words import add_counts, only_if, write_count
from cloudsched.domain.documents.authority import say_subject
from cloudsched.domain.documents.task import NeedCause
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for queues and workers, and for the tasks that wait in the queue that the address names."""
    chosen = visit.query.get("queue", "")
    waiting: Json = {}
    if chosen:
        path = f"/v1/queues/{quote(chosen, safe='')}/tasks"
        waiting = api.get(path, pageSize=50, pageToken=visit.query.get("page"))
    return {
        "queues": api.get("/v1/queues")["queues"],
        "workers": api.get("/v1/workers")["workers"],
        "dispatch": api.list_items("/v1/dispatch-queues", "queues") if visit.role == "admin" else [],
        "needs": api.list_items("/v1/overview", "needs"),
        "chosen": chosen,
        "waiting": waiting,
    }


def send(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Submitted:
    """Pause or resume a queue in Cloud Tasks."""
    queue = texts.get("queue", "")
    if queue in {"", ".", ".."}:
        raise NotFound("queue", queue)
    state = "RUNNING" if texts.get("verb") == "resume" else "PAUSED"
    api.patch(f"/v1/dispatch-queues/{quote(queue, safe='')}", {"state": state})
    return Submitted("queues", f"queue-{state.lower()}")


def build(answer: Json, visit: Visit) -> Json:
    """Return what the page of queues shows: first what is paused, then what waits."""
    halts = [each for each in answer["needs"] if each["cause"] == NeedCause.QUEUE_PAUSED]
    held = {each.get("subject"): each["detail"] for each in halts}
    rows = [_build_dispatch(each, held.get(each["queue"], ""), visit) for each in answer["dispatch"]]
    rows.sort(key=lambda row: not row["isPaused"])
    queues = answer["queues"]
    count = add_counts(each["waiting"] for each in queues)
    sentence = "".join(f"{each['sentence']} " for each in halts)
    sentence += f"For workers {count.write('run waits', 'runs wait')}."
    rows += [_build_queue(each, answer["workers"]) for each in queues]
    return {**answer, "rows": rows, "sentence": sentence}


def _build_dispatch(queue: Json, held: str, visit: Visit) -> Json:
    carried = " and ".join(queue.get("priorities", ())).lower()
    verbs = {"RUNNING": "Pause", "PAUSED": "Resume"} if visit.may_change else {}
    return {
        "queue": queue["queue"],
        "isPaused": queue["state"] == "PAUSED",
        "href": "",
        "note": f"of Cloud Tasks{only_if(carried, f', priority {carried}')}",
        "state": queue["state"].capitalize(),
        "more": only_if(queue.get("pausedAt"), f"by {say_subject(queue.get('pausedBy', ''))}"),
        "waiting": f"{held} {write_count(queue['depth'], 'dispatch', 'dispatches')}, with those to come",
        "since": queue.get("pausedAt"),
        "verb": verbs.get(queue["state"]),
    }


def _build_queue(queue: Json, workers: list[Json]) -> Json:
    known = [each for each in workers if each["queue"] == queue["queue"]]
    seen = ", ".join(f"{each['worker']}{only_if(not each['isListening'], ' (gone)')}" for each in known)
    return {
        "queue": queue["queue"],
        "isPaused": False,
        "href": f"?queue={quote(queue['queue'], safe='')}",
        "note": only_if(queue.get("skill"), f"skill {queue.get('skill')}"),
        "state": write_count(queue["workers"], "worker listens", "workers listen"),
        "more": seen,
        "waiting": write_count(queue["waiting"], "run", "runs"),
        "since": queue.get("firstSince"),
        "verb": None,
    }
