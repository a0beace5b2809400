"""The queues: what waits in each, who works on it, and who has paused it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from cloudsched.dashboard.forms.fields import Submitted
from cloudsched.dashboard.words import only_if, write_count
from cloudsched.domain.documents.authority import say_subject
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


def build(answer: Json, _visit: Visit) -> Json:
    """Return what the page of queues shows: first what is paused, then what waits for nobody."""
    dispatch = [{**each, "by": say_subject(each.get("pausedBy", ""))} for each in answer["dispatch"]]
    dispatch.sort(key=lambda each: each["state"] == "RUNNING")
    paused = sum(each["state"] == "PAUSED" for each in dispatch)
    sentence = only_if(paused, f"{write_count(paused, 'queue is', 'queues are')} paused. ")
    waiting = [each for each in answer["queues"] if each["waiting"]["value"]]
    count = {
        "value": sum(each["waiting"]["value"] for each in waiting),
        "atLeast": any(each["waiting"]["atLeast"] for each in waiting),
    }
    sentence += f"For workers {write_count(count, 'run waits', 'runs wait')}."
    if unheard := ", ".join(dict.fromkeys(each["queue"] for each in waiting if not each["workers"])):
        sentence += f" No worker listens to {unheard}."
    return {**answer, "dispatch": dispatch, "sentence": sentence}
