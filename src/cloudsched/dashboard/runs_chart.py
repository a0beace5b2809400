"""A task's latest executions as small marks: what failed hangs below the line, what is open is at the end."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.status import BAD, show_status
from cloudsched.dashboard.svg import element
from cloudsched.domain.documents.execution import NOT_RUN_STATUSES, ExecutionStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

MARKS: Final = 12
"""How many marks there are at most."""
_STEP, _WIDE, _LINE = 7, 5, 12
_ABOVE, _BELOW, _NOT_RUN = 9, 8, 1
_FILLS: Final[dict[str, str]] = {ExecutionStatus.RUNNING: "f-run", ExecutionStatus.RETRYING: "f-retry"}


def draw_runs(statuses: Sequence[str]) -> Markup:
    """Return the marks of executions, the earliest first; the latest is at the right."""
    shown = statuses[-MARKS:]
    first = MARKS - len(shown)
    parts = [element("line", cls="base", x1=0, x2=_STEP * MARKS, y1=_LINE, y2=_LINE)]
    for index, status in enumerate(shown):
        parts += _draw_mark(status, (first + index) * _STEP)
    return element("svg", *parts, cls="runs", role="img", aria_label=write_runs(statuses))


def write_runs(statuses: Sequence[str]) -> str:
    """Return the same in words, such as ``Last 12: 9 succeeded, 3 failed, the last two in a row``."""
    shown = statuses[-MARKS:]
    if not shown:
        return "Nothing has run yet"
    if len(shown) == 1:
        return f"The last one: {show_status(shown[0]).word.lower()}"
    counts = Counter(show_status(each).word.lower() for each in shown)
    if len(counts) == 1:
        return f"Last {len(shown)}: all {next(iter(counts))}"
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    in_a_row = len(list(takewhile(lambda each: each in BAD, reversed(shown))))
    return f"Last {len(shown)}: {said}" + (f", the last {in_a_row} in a row" if in_a_row > 1 else "")


def _draw_mark(status: str, left: int) -> list[Markup]:
    if status in BAD:
        return [element("rect", cls="f-fail", x=left, y=_LINE, width=_WIDE, height=_BELOW)]
    top = _LINE - _ABOVE
    if status == "SUSPENDED":
        hatched = element("rect", x=left, y=top, width=_WIDE, height=_ABOVE, fill="url(#hatch)")
        frame = element(
            "rect", cls="o w", x=left + 0.5, y=top + 0.5, width=_WIDE - 1, height=_ABOVE - 1, fill_opacity=0
        )
        return [hatched, frame]
    tall = _NOT_RUN if status in NOT_RUN_STATUSES else _ABOVE
    return [element("rect", cls=_FILLS.get(status, "f-past"), x=left, y=_LINE - tall, width=_WIDE, height=tall)]
