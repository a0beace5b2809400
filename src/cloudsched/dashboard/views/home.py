"""The home page: what needs attention, what ran and what is next, the numbers of tasks, and the health."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.charts import read_parts
from cloudsched.dashboard.status import Status, find_block, show_need
from cloudsched.dashboard.times import write_duration
from cloudsched.dashboard.views.actions import fetch_notes
from cloudsched.dashboard.words import write_count
from cloudsched.domain.documents.task import NeedCause
from cloudsched.domain.explanation.findings import SEEMS_DEAD
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_OWN: Final = frozenset({"store", "queue"})
"""The services without which nothing runs. Others are among what needs attention."""
_OF_QUEUE: Final = {NeedCause.QUEUE_PAUSED: "paused", NeedCause.OVERDUE: "late"}


def fetch_health(api: Api) -> Json:
    """Ask the API whether it is ready, and if not, why."""
    try:
        return api.get("/ready")
    except CloudschedError as error:
        return {**(api.find("/health") or {}), "problem": str(error)}


def build_health(health: Json, counts: Json, visit: Visit) -> Iterator[tuple[str, Status, str]]:
    """Yield the parts of the service, each with its state and more about it."""
    faults = health.get("faults")
    if not faults:  # with them the process is not ready, and its store may answer or not
        problem = health.get("problem", "" if health else "This page may be older than it looks.")
        yield "Store", _say("answers", bad=problem and "does not answer"), problem

    broken = [name for name, state in health.get("circuits", {}).items() if state != "closed" and name in _OWN]
    causes = [
        word for cause, word in _OF_QUEUE.items() if any(each["cause"] == cause for each in counts.get("needs", ()))
    ]
    held = f"Calls to {', '.join(sorted(broken))} are held back for a while." if broken else ""
    yield "Queue", _say("on time", bad=next(iter(causes), broken and "has failed")), held

    sweep = counts.get("sweep")
    if sweep is not None and not visit.may_move_clock:  # the sweep follows a moved clock a moment later
        yield _build_sweep(sweep)
    elif sweep is None and visit.owner is None:
        yield "Sweep", Status("due", "has not run yet", "due"), ""

    if hanging := (sweep or {}).get("hanging") or health.get("hanging"):
        about = "Nothing can stop them from outside. Give their waits a timeout, and restart the process."
        yield "Handlers", _say(bad="hang"), f"{hanging}. {about}"
    if faults:
        told = ", ".join(f"{name} {fault}" for name, fault in sorted(faults.items()))
        yield "Process", _say(bad="has problems"), f"It keeps trying, but {told}."


def _build_sweep(sweep: Json) -> tuple[str, Status, str]:
    said = [f"{write_duration(timedelta(seconds=sweep['lag']))} ago"]
    if sweep["isLate"]:
        said.append(SEEMS_DEAD)
    if sweep["failed"]:
        said.append(f"{sweep['failed']:,} could not be repaired")
    if sweep["unsent"]:
        said.append(f"the queue did not take the dispatches of {sweep['unsent']:,}")
    bad = "has problems" if sweep["failed"] or sweep["unsent"] else sweep["isLate"] and "is late"
    return "Sweep", _say("runs", bad=bad), ", ".join(said)


def _say(well: str = "", *, bad: object = "") -> Status:
    return Status("fail", str(bad), "fail") if bad else Status("ok", well, "ok")


_LISTED: Final = 5


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for the counts and what needs attention, for what is next, and for the health."""
    counts = api.find("/v1/overview")
    return {
        "counts": counts,
        "restorable": fetch_notes(api, visit),
        "next": _fetch_next(api, visit),
        "health": fetch_health(api),
    }


def _fetch_next(api: Api, visit: Visit) -> list[Json]:
    """Return the tasks that are due next, and what keeps each from starting.

    One whose open run has left its next occurrences behind is not due next.
    """
    tasks = api.get("/v1/tasks", dueFrom=visit.soonest, orderBy="nextExecutionTime", pageSize=_LISTED)["tasks"]
    return [
        {**each, "inVain": find_block(api.list_items(f"{task_path(each['id'])}/explain", "findings"))} for each in tasks
    ]


def build(answer: Json, visit: Visit) -> Json:
    """Return what Home shows."""
    counts = answer["counts"] or {}
    needs = counts.get("needs", ())
    said = "Nothing needs you."
    if not counts:
        said = "Whether anything needs you is not known: the counts are missing."
    elif needs:
        said = write_count(len(needs), "thing needs you.", "things need you.")
    hours = [{**each, "skipped": 0} for each in counts.get("hours", ())]  # what was skipped may be of later hours
    following = next((each for each in answer["next"] if not each["inVain"]), None)
    sentence = said
    if following:
        sentence += f" Next: {following['title']}, {visit.moment(following['nextExecutionTime']).relative}."
    return {
        **answer,
        "said": said,
        "sentence": sentence,
        "needs": [{**each, "look": show_need(each["cause"])} for each in needs],
        "ran": [(each.start, [*each.list_numbers(visit)]) for each in read_parts({"ran": hours}, bool)],
        "numbers": [
            (status, count, f"tasks?{urlencode({'status': status, 'calls': 'true'})}")
            for status, count in counts.get("tasks", {}).items()
            if count["value"]
        ],
        "health": build_health(answer["health"], counts, visit),
    }
