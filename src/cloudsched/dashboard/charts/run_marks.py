"""The latest executions of a task as a row of marks, and the same in words."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.charts.svg import element
from cloudsched.dashboard.status import BAD, show_status
from cloudsched.dashboard.words import only_if
from cloudsched.domain.documents.execution import NOT_RUN_STATUSES, ExecutionStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

MARKS: Final = 12
"""The largest number of marks."""
_STEP: Final = 7
"""In pixels: from a mark to the next."""
_WIDTH: Final = 5
_LINE: Final = 12
"""In pixels: the height of the line on which they stand, and below which failures hang."""
_HEIGHT: Final = 9
_FAILURE_HEIGHT: Final = 8
_SHAPES: Final[dict[str, str]] = {
    ExecutionStatus.SKIPPED: "M{x} 5l2 2-2 2m2.5-4l2 2-2 2",
    ExecutionStatus.CANCELLED: "M{x} 9l5-5",
    ExecutionStatus.EXPIRED: "M{x} 4h5l-5 6h5z",
}
"""The outlines of what did not run."""
_FILLS: Final[dict[str, str]] = {ExecutionStatus.RUNNING: "f-run", ExecutionStatus.RETRYING: "f-retry"}


def draw_runs(statuses: Sequence[str]) -> Markup:
    """Return the marks of executions, the earliest first. The latest is at the right."""
    shown = statuses[-MARKS:]
    parts = [element("line", cls="base", x1=0, x2=_STEP * MARKS, y1=_LINE, y2=_LINE)]
    for place, status in enumerate(shown, MARKS - len(shown)):
        parts += _draw_mark(status, place * _STEP)
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
    return f"Last {len(shown)}: {said}{only_if(in_a_row > 1, f', the last {in_a_row} in a row')}"


def _draw_mark(status: str, left: int) -> list[Markup]:
    if status in BAD:
        return [element("rect", cls="f-fail", x=left, y=_LINE, width=_WIDTH, height=_FAILURE_HEIGHT)]
    top = _LINE - _HEIGHT
    if status == ExecutionStatus.SUSPENDED:
        hatched = element("rect", x=left, y=top, width=_WIDTH, height=_HEIGHT, fill="url(#hatch)")
        frame = element(
            "rect", cls="o w", x=left + 0.5, y=top + 0.5, width=_WIDTH - 1, height=_HEIGHT - 1, fill_opacity=0
        )
        return [hatched, frame]
    if status in NOT_RUN_STATUSES:
        base = element("rect", cls="f-past", x=left, y=_LINE - 1, width=_WIDTH, height=1)
        return [base, element("path", cls="skipped", d=_SHAPES[status].format(x=left))]
    return [element("rect", cls=_FILLS.get(status, "f-past"), x=left, y=top, width=_WIDTH, height=_HEIGHT)]
