"""The queues: what waits for workers, who works, and the queues in Cloud Tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from cloudsched.dashboard.forms.fields import Submitted
from cloudsched.dashboard.words import write_count
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for queues and workers, and for the tasks that wait in the queue that the address names."""
    chosen = visit.query.get("queue", "")
    answer = {
        "queues": api.get("/v1/queues")["queues"],
        "workers": api.get("/v1/workers")["workers"],
        "chosen": chosen,
        "dispatch": [],
        "waiting": {},
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
    """Return what the page of queues shows."""
    queues = answer["queues"]
    waiting = write_count(sum(each["waiting"] for each in queues), "run waits", "runs wait")
    unheard = ", ".join(each["queue"] for each in queues if each["waiting"] and not each["workers"])
    if unheard:
        return {**answer, "sentence": f"{waiting}. No worker listens to {unheard}."}
    return {**answer, "sentence": f"{waiting}. Every queue in which something waits is served."}
