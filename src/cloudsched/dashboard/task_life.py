"""A task's life: its latest executions and what is due, all of it or the part that the address names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.dashboard.life_chart import Lived, draw_life, find_span
from cloudsched.dashboard.status import OPEN, show_status
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.zoom import clip, find_parts, make_moves, read_window, write_window

if TYPE_CHECKING:
    from datetime import datetime

    from markupsafe import Markup

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit
    from cloudsched.dashboard.zoom import Move


@dataclass(frozen=True, slots=True)
class Life:
    """The view model."""

    chart: Markup
    text: str
    """What the chart shows, in words."""
    moves: list[Move]


def build_life(executions: list[Json], due: list[datetime], visit: Visit) -> Life:
    """Return the life of a task.

    Args:
        executions: The latest ones, the latest first.
        due: What is to come, the soonest first.
        visit: Who looks, in the zone of the axis.
    """
    lived = [make_lived(each) for each in reversed(executions)]
    start, end = find_span(lived, due, visit.now)
    window = clip(read_window(visit), start, end)
    begin, finish = window or (start, end)

    def place(at: datetime) -> float:
        return (at - start) / (end - start)

    parts = find_parts(
        (place(begin), place(finish)), place(visit.now), least=1 / max(1.0, (end - start).total_seconds())
    )
    moves = make_moves(
        parts, lambda part: write_window(visit, start, end, part, "life", lambda at: start + (end - start) * at)
    )
    text = _describe(lived, due, visit)
    if window is not None:
        text = f"{visit.sure(begin).text} to {visit.sure(finish).text}"
    return Life(draw_life(lived, due, visit.now, visit.zone, window), text, moves)


def make_lived(record: Json) -> Lived:
    """Return an execution for the chart."""
    start = parse_instant(record.get("startedAt") or record["scheduledFor"])
    finished = parse_instant(record["finishedAt"]) if record.get("finishedAt") else start
    return Lived(start, None if record["status"] in OPEN else finished, record["status"], _find_word(record))


def _find_word(record: Json) -> str:
    return show_status(record["status"]).word.lower()


def _describe(lived: list[Lived], due: list[datetime], visit: Visit) -> str:
    counts: dict[str, int] = {}
    for each in lived:
        counts[each.word] = counts.get(each.word, 0) + 1
    parts = [f"{count} {word}" for word, count in counts.items()]
    if due:
        parts.append(f"next due {visit.sure(due[0]).text}")
    return ", ".join(parts) or "Nothing has run, and nothing is due."
