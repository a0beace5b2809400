"""Draws when the handler of a run and its steps ran and waited, on one linear axis from when it was due to its end."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.dashboard.charts.svg import draw_picture, element, percent
from cloudsched.dashboard.times import find_instant, parse_instant, write_took
from cloudsched.domain.documents.execution import ExecutionStatus

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from markupsafe import Markup

    from cloudsched.dashboard.api import Json

_LOOKS = {"SUCCEEDED": "f-past", "RUNNING": "f-run", "WAITING": "hatched"}
"""The looks of bars by their status. All others have failed, or were cancelled."""
_SUSPENDED_KINDS = frozenset({"SLEEP", "EVENT"})


def find_span(record: Json, now: datetime) -> tuple[datetime, datetime]:
    """Return the axis of a run: from when it was due, or began if that was earlier, to its end or to now."""
    due = parse_instant(record["scheduledFor"])
    start = min(due, find_instant(record, "startedAt") or due)
    return start, max(start, find_instant(record, "finishedAt") or now)


def list_rows(record: Json, now: datetime) -> list[Json]:
    """Return the rows: the handler with its attempts, then each step."""
    began = record.get("startedAt") or record["scheduledFor"]
    attempts = [(each, _LOOKS.get(each["status"], "f-fail")) for each in record["attempts"]]
    whole = {"startedAt": began, "finishedAt": record.get("finishedAt")}
    bars = [(whole, "queued"), *attempts]
    if record["status"] == ExecutionStatus.RUNNING:
        since = record["attempts"][-1]["finishedAt"] if record["attempts"] else began
        bars.append(({"startedAt": since, "finishedAt": record.get("leaseUntil")}, "f-run"))
    rows = [{"number": 0, "kind": "runs", "name": "The handler", "status": record["status"], "bars": bars, **whole}]
    for step in record.get("steps", ()):
        kind = step["kind"].lower()
        look = "hatched" if step["kind"] in _SUSPENDED_KINDS else _LOOKS.get(step["status"], "f-fail")
        rows.append({**step, "kind": kind, "name": step.get("name") or kind, "bars": [(step, look)]})
    span = find_span(record, now)
    return [{**row, "took": write_took(row, now), "chart": _draw(row["bars"], *span)} for row in rows]


def _draw(bars: Iterable[tuple[Json, str]], start: datetime, end: datetime) -> Markup:
    """Return bars on the axis, each at least three pixels wide. Failures are half as high, and lower."""
    length = max(end - start, timedelta(milliseconds=1))
    marks = []
    for part, css in bars:
        begin = min(max(parse_instant(part["startedAt"]), start), end)
        finish = min(max(find_instant(part, "finishedAt") or end, begin), end)
        share = (finish - begin) / length
        shape: dict[str, str | float] = {"y": 17, "height": 9} if css == "f-fail" else {"y": 10, "height": 12}
        if css == "hatched":
            shape["fill"] = "url(#hatch)"
        width = percent(share) if share > 0.003 else "3"  # noqa: PLR2004 - three pixels at least
        marks.append(element("rect", cls=css, x=percent((begin - start) / length), width=width, **shape))
    return draw_picture(32, *marks)
