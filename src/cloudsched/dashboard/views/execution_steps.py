"""The steps of an execution: the lines of its waterfall, and the facts about the chosen one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.charts.axis import WHOLE, AxisButton, find_parts, make_moves, write_windows
from cloudsched.dashboard.charts.waterfall import draw_background, draw_row
from cloudsched.dashboard.status import show_status
from cloudsched.dashboard.times import write_duration, write_took
from cloudsched.dashboard.views.task_history import name_actor
from cloudsched.dashboard.words import only_if, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.charts.waterfall_rows import Waterfall, WaterfallRow
    from cloudsched.dashboard.visit import Visit

TIMES: Final = "\N{MULTIPLICATION SIGN}"
_LONGEST_NAME: Final = 60
_LONGEST_VALUE: Final = 4000

Fact = tuple[str, str, bool]
"""A name, a value, and whether a machine reads it."""


def write_shown(waterfall: Waterfall, visit: Visit) -> str:
    """Return the part of the time that is shown. Empty for all of it."""
    if waterfall.scale is waterfall.whole:
        return ""
    start, end = (at.astimezone(visit.zone) for at in waterfall.scale.span)
    return f"{start.day} {start:%b %H:%M:%S} to {end.day} {end:%b %H:%M:%S %z}"


def make_step_moves(waterfall: Waterfall, visit: Visit) -> dict[str, AxisButton]:
    """Return the buttons that show another part of the time."""
    whole = waterfall.whole
    shown = WHOLE
    if waterfall.scale is not whole:
        start, end = waterfall.scale.span
        shown = (whole.place(start), whole.place(end))
    anchor = whole.place(waterfall.now) if waterfall.is_open else None
    moved = replace(visit, query={name: value for name, value in visit.query.items() if name != "row"})
    parts = find_parts(shown, anchor)
    return make_moves(write_windows(moved, *whole.span, parts, "steps", whole.find_instant))


def build_lines(rows: Iterable[WaterfallRow], waterfall: Waterfall, visit: Visit) -> list[Json]:
    """Return rows as they are shown. Those who do not see the chart have its content in words, as ``hidden``."""
    background = draw_background(waterfall, visit.zone)
    lines = []
    for row in rows:
        tries = only_if(row.tries > 1, f", {row.tries} attempts")
        waited = only_if(row.waited, f", waited {write_duration(row.waited)}")
        lines.append(
            {
                "number": row.number,
                "kind": row.kind,
                "name": shorten(row.name, _LONGEST_NAME) + only_if(row.count > 1, f" {TIMES} {row.count:,}"),
                "status": row.status,
                "took": row.note or write_duration(row.took),
                "chart": draw_row(row, waterfall.scale, background),
                "hidden": f"{show_status(row.status).word.lower()}{tries}{waited}",
            }
        )
    return lines


def list_step(step: Json, visit: Visit, child: Json | None = None) -> Iterator[Fact]:
    """Yield the facts about a step. A call's have its payload, too."""
    yield "Status", show_status(step["status"]).word, False
    yield "Started", visit.moment(step["startedAt"]).text, False
    if step.get("finishedAt"):
        noticed = only_if(step.get("isUnnoticed"), ", not noticed yet")
        yield f"Finished{noticed}", visit.moment(step["finishedAt"]).text, False
    if step.get("dueAt"):
        yield "Due", visit.moment(step["dueAt"]).text, False
    yield from _list_tries(step, visit)

    if child is not None and not child.get("children"):
        yield "Payload", _write_json(child.get("payload", {})), True
    elif step["kind"] == "STEP":
        yield "Arguments", "not recorded; the handler computes them again", False
    if "result" in step:
        yield "Result", _write_json(step["result"]), True
    if step.get("error"):
        yield "Error", f"{step['error']['type']}: {step['error']['message']}", True
    if step.get("sender"):
        yield "Sent by", name_actor(step["sender"]), False


def _list_tries(step: Json, visit: Visit) -> Iterator[Fact]:
    attempts = step.get("attempts", 0)
    if attempts:
        yield "Attempts", str(attempts), False
    tries = step.get("tries", ())
    for number, each in enumerate(tries, attempts - len(tries) + 1):
        yield f"Try {number}", f"{visit.moment(each['startedAt']).text}, {write_took(each)}", False


def _write_json(value: object) -> str:
    return shorten(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)


def read_number(text: str | None) -> int:
    """Return the number in an address, such as that of a step. 0 if it is none."""
    if text and text.isascii() and text.isdigit() and len(text) < 6:  # noqa: PLR2004 - no number of a step is longer
        return int(text)
    return 0
