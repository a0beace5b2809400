"""The queues: what waits for workers, who works, and the queues in Cloud Tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.forms.fields import Submitted
from cloudsched.dashboard.status import Status, show_status
from cloudsched.dashboard.words import only_if, write_count
from cloudsched.domain.explanation.findings import Reason
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_LOOKS: Final = {
    "RUNNING": Status("active", "Running", "ok"),
    "PAUSED": Status("pause", "Paused", "fail"),
    "DISABLED": Status("cancel", "Disabled", "fail"),
}


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for queues and workers, and for the tasks that wait in the queue that the address names."""
    chosen = visit.query.get("queue", "")
    answer = {
        "queues": api.get("/v1/queues")["queues"],
        "workers": api.get("/v1/workers")["workers"],
        "chosen": chosen,
        "dispatch": [],
        "waiting": {},
        "causes": (api.find("/v1/overview") or {}).get("causes", ()),
    }
    if visit.role == "admin":
        answer["dispatch"] = api.list_items("/v1/dispatch-queues", "queues")
    if chosen:
        path = f"/v1/queues/{quote(chosen, safe='')}/tasks"
        answer["waiting"] = api.get(path, pageSize=50, pageToken=visit.query.get("page"))
    return answer


def send(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Submitted:
    """Pause or resume a queue in Cloud Tasks."""
    queue = texts.get("queue", "")
    if queue in {"", ".", ".."}:
        raise NotFound("queue", queue)
    state = "RUNNING" if texts.get("verb") == "resume" else "PAUSED"
    api.patch(f"/v1/dispatch-queues/{quote(queue, safe='')}", {"state": state})
    return Submitted("queues", f"queue-{state.lower()}")


def build(answer: Json, _visit: Visit) -> Json:
    """Return what the page of queues shows: first what is paused, by whom and since when."""
    known = {each.get("subject"): each for each in answer["causes"] if each["reason"] == Reason.QUEUE_PAUSED}
    dispatch = [_build_dispatch(each, known) for each in answer["dispatch"]]
    paused = [each["sentence"] for each in known.values()]
    paused += [f"The queue {each['queue']} is paused." for each in dispatch if each["isPaused"] and not each["since"]]
    sentence = only_if(paused, f"{write_count(len(paused), 'queue is', 'queues are')} paused. ")
    return {
        **answer,
        "sentence": sentence + _write_waiting(answer["queues"]),
        "paused": paused,
        "dispatch": dispatch,
    }


def _write_waiting(queues: Sequence[Json]) -> str:
    """Return what waits for workers. It may wait for nobody, or for a queue that is paused."""
    count = sum(each["waiting"] for each in queues)
    if not count:
        return "Nothing waits for workers."
    waiting = write_count(count, "run waits", "runs wait")
    unheard = ", ".join(each["queue"] for each in queues if each["waiting"] and not each["workers"])
    if unheard:
        return f"{waiting} for workers. No worker listens to {unheard}."
    return f"{waiting} for workers. Workers listen to each queue in which something waits."


def _build_dispatch(queue: Json, paused: Mapping[str, Json]) -> Json:
    """Return the row of a queue in Cloud Tasks, with what it carries, and since when it is paused."""
    is_paused = queue["state"] == "PAUSED"
    return {
        **queue,
        "isPaused": is_paused,
        "look": _LOOKS.get(queue["state"]) or show_status(queue["state"]),
        "since": paused.get(queue["queue"], {}).get("since") if is_paused else None,
        "carries": ", ".join(each.lower() for each in queue.get("priorities", ())),
    }
