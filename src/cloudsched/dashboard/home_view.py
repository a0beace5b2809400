"""Home: is anything wrong, what needs somebody, what runs, what is due next, and who waits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.queues_view import QueueRow, build_queue
from cloudsched.dashboard.status import BAD, OPEN
from cloudsched.dashboard.strip_chart import draw_strip
from cloudsched.dashboard.task_view import ExecutionRow, build_execution
from cloudsched.dashboard.times import parse_instant, write_duration
from cloudsched.dashboard.visit import Visit, ZoneChoice, zone_choices

if TYPE_CHECKING:
    from markupsafe import Markup

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.times import Moment

REACH: Final = timedelta(hours=12)
"""How far the strip goes, each way."""
_EXECUTIONS, _DUE, _LISTED = 200, 200, 8


@dataclass(frozen=True, slots=True)
class DueRow:
    """A task that is due."""

    at: Moment
    task_id: str
    title: str
    more: int
    """How many further times it is due in the next hours."""


@dataclass(frozen=True, slots=True)
class HomePage:
    """The view model."""

    sentence: str
    strip: Markup
    strip_text: str
    failed: list[ExecutionRow]
    running: list[ExecutionRow]
    due: list[DueRow]
    queues: list[QueueRow]
    health: str
    may_change: bool
    role: str
    zones: list[ZoneChoice]


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API what ran and failed lately, what is due, and who waits in queues."""
    since, until = (visit.now - REACH).isoformat(), (visit.now + REACH).isoformat()
    return {
        "executions": api.get("/v1/executions", **{"from": since}, pageSize=_EXECUTIONS)["executions"],
        "open": [
            each
            for status in sorted(OPEN)
            for each in api.get("/v1/executions", status=status, pageSize=_LISTED)["executions"]
        ],
        "due": api.get("/v1/occurrences", until=until, pageSize=_DUE)["occurrences"],
        "queues": api.get("/v1/queues")["queues"],
        "health": api.find("/readyz") or {"status": "does not answer"},
    }


def build(answer: Json, visit: Visit) -> HomePage:
    """Return the view model of the API's answers."""
    executions = answer["executions"]
    failed = [each for each in executions if each["status"] in BAD]
    running = answer["open"]
    late = [
        parse_instant(each["startedAt"]) - parse_instant(each["scheduledFor"])
        for each in executions
        if each.get("startedAt")
    ]
    latest = max(late, default=timedelta(0))
    ran = [parse_instant(each["scheduledFor"]) for each in executions if each["status"] not in BAD]
    due = [parse_instant(each["utc"]) for each in answer["due"]]
    queues = [build_queue(each, visit) for each in answer["queues"]]
    unheard = sum(not each.workers and each.waiting > 0 for each in queues)
    return HomePage(
        sentence=_write_sentence(len(failed), unheard, len(running), len(due)),
        strip=draw_strip(
            ran, [parse_instant(each["scheduledFor"]) for each in failed], due, visit.now, REACH, visit.zone
        ),
        strip_text=(
            f"{len(ran):,} ran and {len(failed):,} failed in the last 12 h, at most {write_duration(latest)} late; "
            f"{len(due):,} {'is' if len(due) == 1 else 'are'} due in the next 12 h."
        ),
        failed=[build_execution(each, visit) for each in failed[:_LISTED]],
        running=[build_execution(each, visit) for each in running[:_LISTED]],
        due=_group_due(answer["due"], visit),
        queues=queues,
        health=f"The store answers: {answer['health']['status']}.",
        may_change=visit.may_change,
        role=visit.role,
        zones=zone_choices(visit),
    )


def _write_sentence(failed: int, unheard: int, running: int, due: int) -> str:
    wrong = []
    if failed:
        wrong.append(f"{failed:,} execution{'' if failed == 1 else 's'} failed in the last 12 h")
    if unheard:
        wrong.append(f"nobody listens at {unheard:,} queue{'' if unheard == 1 else 's'}")
    first = f"{', and '.join(wrong).capitalize()}." if wrong else "Nothing needs you."
    return f"{first} {running:,} open, {due:,} due in the next 12 h."


def _group_due(occurrences: list[Json], visit: Visit) -> list[DueRow]:
    times: dict[str, list[Json]] = {}
    for each in occurrences:
        times.setdefault(each["taskId"], []).append(each)
    return [
        DueRow(visit.sure(group[0]["utc"]), task_id, group[0]["title"], len(group) - 1)
        for task_id, group in list(times.items())[:_LISTED]
    ]
