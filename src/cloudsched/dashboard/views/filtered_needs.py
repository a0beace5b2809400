"""How many tasks need attention among those that match the filters of the list, however many pages it has.

The counts are the overview's: those of an owner, and of these the groups by handler. No other filter has counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.views.causes import CAUSES, filter_by_cause, list_path, name_unregistered, write_chip
from cloudsched.dashboard.views.need_rows import list_paused, list_unheard
from cloudsched.dashboard.views.task_filters import read_task_filters, read_trouble
from cloudsched.dashboard.words import only_if, write_count
from cloudsched.domain.documents.task import NeedCause, TaskStatus
from cloudsched.domain.explanation.findings import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_COUNTED: Final = frozenset({"owner", "handler"})
"""The filters of which the API has counts, and with which it lists the tasks of a cause."""
_STOPS: Final = frozenset({Reason.QUEUE_PAUSED, Reason.UNKNOWN_HANDLER})
"""The causes that keep tasks from running without a need of their own in any list."""
_LATE: Final = 200
"""The most late tasks that are asked for: the API counts fewer."""
_NAMED: Final = 10
"""The most handlers that a list of a cause names."""
_GROUPS: Final = 200
"""The most handlers that the API names for a cause."""


def fetch_filtered_needs(api: Api, visit: Visit, shown: Sequence[Json]) -> Json:
    """Ask the API for the counts of each cause, and for those that are late and counted for another cause, too.

    Without counts for the filters of the list, only what keeps the shown tasks from running is looked for.
    """
    filters, words = read_task_filters(visit)
    overview = api.find("/v1/overview", owner=filters.get("owner")) or {}
    needs = overview.get("needs", ())
    stopping = _count_stops(overview, list_unheard(api.list_items("/v1/queues", "queues")), visit, shown)
    is_lost = any(each["reason"] == Reason.NOT_REACHABLE for each in overview.get("causes", ()))
    is_lost = is_lost or any(each["count"] for each in needs if each["cause"] == NeedCause.DELIVERY)
    found: Json = {
        "stopping": stopping,
        "isCalm": not (stopping or is_lost),
        "unregistered": name_unregistered(overview),
    }
    if words or filters.keys() - _COUNTED:
        return found
    counted = [_count_handler(each, filters["handler"]) for each in needs] if "handler" in filters else needs
    counted = [each for each in counted if each["count"] or each.get("isAtLeast")]
    causes = {each["cause"] for each in counted}
    found |= {"filters": filters, "isKnown": bool(needs), "counted": counted, "twice": 0, "isAtLeast": False}
    if NeedCause.OVERDUE in causes and causes - {NeedCause.OVERDUE, NeedCause.DELIVERY}:
        late = api.get("/v1/tasks", **filters, **filter_by_cause(NeedCause.OVERDUE, visit), pageSize=_LATE)
        found["twice"] = sum({NeedCause.OVERDUE} < {*each.get("needs", ())} for each in late["tasks"])
        found["isAtLeast"] = bool(late.get("nextPageToken"))
    return found


def _count_stops(overview: Json, unheard: Sequence[Json], visit: Visit, shown: Sequence[Json]) -> int:
    """Return how many things keep tasks from running: any, or under a filter those of the list.

    The causes are already those of the owner.
    """
    filters, words = read_task_filters(visit)
    others = [*words, *(filters.keys() - {"owner"}), *filter(None, [read_trouble(visit)])]
    causes = [each for each in overview.get("causes", ()) if each["reason"] in _STOPS]
    if others:
        causes = [each for each in causes if any(_stops(each, task) for task in shown)]
    if others or filters:
        queues = {(task.get("pull") or {}).get("queue") for task in shown if task.get("offeredAt")}
        unheard = [each for each in unheard if each["queue"] in queues]
    return len(causes) + len(unheard)


def _stops(cause: Json, task: Json) -> bool:
    """Return whether a cause keeps a task from running."""
    if task["status"] != TaskStatus.ACTIVE:
        return False
    if cause["reason"] == Reason.UNKNOWN_HANDLER:
        return bool(task["handler"] == cause["subject"])
    return task["priority"] in list_paused([cause])


def write_stopping(found: Json) -> str:
    """Return how many things on Home keep tasks from running. Empty if none does."""
    stopping = found["stopping"]
    return only_if(stopping, write_count(stopping, "thing keeps", "things keep") + " tasks from running")


def _count_handler(need: Json, handler: str) -> Json:
    """Return the count of a cause for one handler: that of its group, if not too many groups are left out."""
    groups = need.get("groups", ())
    count = next((each["count"] for each in groups if each["handler"] == handler), 0)
    is_cut = need["cause"] == NeedCause.OVERDUE and need.get("isAtLeast")
    return {"cause": need["cause"], "count": count, "isAtLeast": is_cut or (not count and len(groups) >= _GROUPS)}


def build_chips(found: Json, visit: Visit) -> list[tuple[str, str, bool]]:
    """Return a chip for each cause that any task has: its text, its address, and whether it is chosen."""
    counted = {each["cause"]: each for each in found.get("counted", ())}
    return [
        (write_chip(counted[cause]), _list_cause(cause, found["filters"], visit), cause == read_trouble(visit))
        for cause in CAUSES
        if counted.get(cause, {}).get("count")
    ]


def list_by_handler(found: Json, visit: Visit) -> list[tuple[str, int, str]]:
    """Return the handlers of the chosen cause's tasks, the rarest first, each with its number and list.

    None if there is but one.
    """
    cause = read_trouble(visit) or ""
    counted = {each["cause"]: each for each in found.get("counted", ())}
    groups = [(each["handler"], each["count"]) for each in counted.get(cause, {}).get("groups", ())]
    if len(groups) == 1:
        return []
    return [
        (name, count, _list_cause(cause, {**found["filters"], "handler": name}, visit))
        for name, count in groups[:_NAMED]
    ]


def _list_cause(cause: str, filters: Mapping[str, str], visit: Visit) -> str:
    return list_path(cause, visit, filters).removeprefix("tasks")


def count_needy(found: Json) -> tuple[int, bool] | None:
    """Return how many tasks need attention, and whether there may be more. None if that is not known.

    One that is late and fails counts once. Deliveries are in no list of tasks, and are not among them.
    """
    if not found.get("isKnown"):
        return None
    counted: Sequence[Json] = [each for each in found["counted"] if each["cause"] != NeedCause.DELIVERY]
    count = sum(each["count"] for each in counted) - found["twice"]
    return count, found["isAtLeast"] or any(each.get("isAtLeast") for each in counted)


def write_needy(found: Json, visit: Visit) -> Mapping[str, str]:
    """Return how many of all tasks that match need attention, and the address of their list or of the causes."""
    known = count_needy(found)
    if known is None:
        return {}
    count, is_at_least = known
    who = "all tasks" if not found["filters"] else "all that match"
    if not count:
        return {"before": f"Of {who}, none needs attention."} if found["isCalm"] and not is_at_least else {}
    causes = [each["cause"] for each in found["counted"] if each["count"] and each["cause"] != NeedCause.DELIVERY]
    href = _list_cause(causes[0], found["filters"], visit) if len(causes) == 1 else "#causes"
    verb = "needs" if count == 1 and not is_at_least else "need"
    number = f"{only_if(is_at_least, 'at least ')}{count:,} {verb} attention"
    return {"before": f"Of {who},", "href": href, "number": number}
