"""The life of a task on its page: the chart, its content in words, and the moves along its axis."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.charts.axis import clip, find_parts, make_moves, read_window, write_windows
from cloudsched.dashboard.charts.legend import LIFE, list_legend
from cloudsched.dashboard.charts.life import LANES, Lived, Noted, draw_life, find_span
from cloudsched.dashboard.status import OPEN, show_status
from cloudsched.dashboard.times import find_instant, parse_instant
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.explanation.findings import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit

_DID: Final = {"EDITED": "edited", "MOVED": "moved", "SKIPPED": "skipped", "CANCELLED": "cancelled"}
"""The chart's words for entries in the history, other than pauses."""
_LEFT_OUT: Final = "left out"
"""The chart's words for an occurrence that a calendar forbids."""


def build_life(executions: list[Json], due: list[datetime], visit: Visit, noted: Sequence[Noted] = ()) -> Json:
    """Return the life of a task: its chart, the chart's content in words if it has any, and the moves along its axis.

    The latest execution is first, and the soonest occurrence.
    """
    lived = [make_lived(each) for each in reversed(executions)]
    start, end = find_span(lived, due, visit.now, noted)
    window = clip(read_window(visit), start, end)
    begin, finish = window or (start, end)
    left, right, now = ((at - start) / (end - start) for at in (begin, finish, visit.now))
    parts = find_parts((left, right), now, least=1 / max(1.0, (end - start).total_seconds()))

    def find_instant_at(place: float) -> datetime:
        return start + (end - start) * place

    text = _describe(lived, due, visit, noted)
    if window is not None:
        text = f"{visit.moment(begin).text} to {visit.moment(finish).text}"
    chart = draw_life(lived, due, visit.now, visit.zone, window, noted)
    return {
        "chart": chart,
        "legend": list_legend(LIFE, [chart]),
        "text": text,
        "moves": make_moves(write_windows(visit, start, end, parts, "life", find_instant_at)),
    }


def make_lived(record: Json) -> Lived:
    """Return an execution for the chart."""
    start = parse_instant(record.get("startedAt") or record["scheduledFor"])
    end = None
    if record["status"] not in OPEN:
        end = find_instant(record, "finishedAt") or start
    return Lived(start, end, record["status"], show_status(record["status"]).word.lower())


def list_noted(history: Json | None, explanation: Json, task: Json, visit: Visit) -> list[Noted]:
    """Return the pauses, edits and skips that a task's life shows besides its executions."""
    noted = []
    paused = None
    for entry in reversed((history or {}).get("entries", [])):
        at = parse_instant(entry["at"])
        if entry["action"] == "PAUSED":
            paused = paused or at
        elif entry["action"] in {"RESUMED", "CANCELLED"} and paused is not None:
            noted.append(Noted(paused, "paused", at))
            paused = None
        if word := _DID.get(entry["action"]):
            noted.append(Noted(at, word))
    if task["status"] == TaskStatus.PAUSED:
        noted.append(Noted(paused or parse_instant(task["statusChangedAt"]), "paused", visit.now))
    return [*noted, *_list_left_out(explanation, task)]


def _list_left_out(explanation: Json, task: Json) -> Iterator[Noted]:
    for finding in explanation["findings"]:
        at = finding.get("at")
        if at and finding["reason"] == Reason.ADJUSTED and at != task.get("nextExecutionTime"):
            yield Noted(parse_instant(at), _LEFT_OUT)


def count_shown(answer: Json, visit: Visit) -> str:
    """Return how many of a task's runs its life has, of how many. Empty if it has all."""
    count = len(answer["executions"]["executions"])
    has_older = bool(answer["executions"].get("nextPageToken"))
    drawn = min(count, LANES)
    if visit.query.get("page"):
        return f"{drawn} of the {count} older runs below"
    if drawn == count and not has_older:
        return ""
    if not has_older:
        return f"The latest {drawn} of {count} runs"
    return f"The latest {drawn} of at least {max(count + 1, answer['task'].get('runCount', 0)):,} runs"


def _describe(lived: list[Lived], due: list[datetime], visit: Visit, noted: Sequence[Noted]) -> str:
    parts = [f"{count} {word}" for word, count in Counter(each.word for each in lived[-LANES:]).items()]
    parts += [f"{_LEFT_OUT} {visit.moment(each.at).text}" for each in noted if each.word == _LEFT_OUT]
    if due:
        parts.append(f"{'due since' if due[0] <= visit.now else 'next due'} {visit.moment(due[0]).text}")
    return ", ".join(parts)
