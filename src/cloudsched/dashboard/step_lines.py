"""The rows of a waterfall as they are shown, the part of its time, and what is known of the chosen step."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.status import Status, show_status
from cloudsched.dashboard.texts import shorten
from cloudsched.dashboard.times import write_duration
from cloudsched.dashboard.waterfall import draw_ground, draw_row
from cloudsched.dashboard.zoom import WHOLE, find_parts, make_moves, write_window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from markupsafe import Markup

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit
    from cloudsched.dashboard.waterfall import Waterfall, WaterfallRow
    from cloudsched.dashboard.zoom import Move

TIMES: Final = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class StepLine:
    """A row of the waterfall as it is shown."""

    number: int
    kind: str
    name: str
    status: Status
    took: str
    chart: Markup
    href: str
    is_chosen: bool
    hidden: str
    """What the chart says, for those who do not see it."""


def write_shown(waterfall: Waterfall, visit: Visit) -> str:
    """Return which part of the time is shown; nothing if it is all of it."""
    if waterfall.scale is waterfall.whole:
        return ""
    start, end = (at.astimezone(visit.zone) for at in waterfall.scale.span)
    return f"{start.day} {start:%b %H:%M:%S} to {end.day} {end:%b %H:%M:%S %z}"


def make_step_moves(waterfall: Waterfall, visit: Visit) -> list[Move]:
    """Return the buttons that show another part of the time."""
    whole, (start, end) = waterfall.whole, waterfall.scale.span
    shown = WHOLE if waterfall.scale is whole else (whole.place(start), whole.place(end))
    parts = find_parts(shown, whole.place(waterfall.now) if waterfall.is_open else None)
    moved = replace(visit, query={name: value for name, value in visit.query.items() if name != "row"})
    return make_moves(
        parts, lambda part: write_window(moved, *whole.span, part, "steps", whole.find_instant), home="Show all of it"
    )


def build_lines(rows: Iterable[WaterfallRow], waterfall: Waterfall, visit: Visit, chosen: int) -> list[StepLine]:
    """Return rows as they are shown."""
    ground = draw_ground(waterfall)
    return [_build_line(row, draw_row(row, waterfall.scale, ground), visit, chosen) for row in rows]


def _build_line(row: WaterfallRow, chart: Markup, visit: Visit, chosen: int) -> StepLine:
    status = show_status(row.status)
    count = f" {TIMES} {row.count:,}" if row.count > 1 else ""
    tries = f", {row.tries} attempts" if row.tries > 1 else ""
    return StepLine(
        number=row.number,
        kind=row.kind,
        name=f"{shorten(row.name, 60)}{count}",
        status=status,
        took=write_duration(row.took),
        chart=chart,
        href=visit.with_query(step=str(row.number) if row.number else None),
        is_chosen=bool(row.number) and row.number == chosen,
        hidden=f"{status.word.lower()}{tries}",
    )


def list_step(step: Json, visit: Visit) -> list[tuple[str, str, bool]]:
    """Return what is known of a step: name, value, and whether a machine reads it."""
    started = visit.sure(step["startedAt"])
    facts = [("Status", show_status(step["status"]).word, False), ("Started", started.text, False)]
    for name, label in (("finishedAt", "Finished"), ("dueAt", "Due")):
        if step.get(name):
            facts.append((label, visit.sure(step[name]).text, False))
    if step.get("attempts"):
        facts.append(("Attempts", str(step["attempts"]), False))
    if "result" in step:
        facts.append(("Result", shorten(json.dumps(step["result"], ensure_ascii=False), 4000), True))
    if step.get("error"):
        facts.append(("Error", f"{step['error']['type']}: {step['error']['message']}", True))
    if step.get("sender"):
        facts.append(("Sent by", str(step["sender"].get("subject", "")), False))
    return facts
