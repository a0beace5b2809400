"""Legends: an entry for each kind of mark that a chart has drawn, and for no other.

Each chart has a table of its marks, by their classes. What is in no table is structure: lines of hours, and labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from cloudsched.dashboard.charts.svg import element

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_CLASSES: Final = re.compile(r'(?<= class=")[^"]+')


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A mark and its meaning."""

    swatch: Markup
    word: str


def _box(css: str, **fill: str) -> Markup:
    return element("rect", cls=css, x=0.5, y=0.5, width=11, height=11, rx=1, **fill)


def _circle(css: str) -> Markup:
    return element("circle", cls=css, cx=6, cy=6, r=4.5)


def _line(css: str) -> Markup:
    return element("path", cls=css, d="M6 0v12")


_FAILED: Final = element("rect", cls="f-fail", y=4, width=12, height=8, rx=1)
_SKIPPED: Final = element("path", cls="skipped", d="M1 2l4 4-4 4m5-8l4 4-4 4")
_CROSS: Final = element("path", cls="failx", d="M2 2l8 8M10 2l-8 8")
_MARKS: Final[Mapping[str, Markup]] = {
    "f-past": _box("f-past"),
    "f-past one": _circle("f-past"),
    "f-fail": _FAILED,
    "f-run": _box("f-run"),
    "failx": _CROSS,
    "opened": element("circle", cls="opened", cx=6, cy=6, r=4.5)
    + element("path", cls="opened", d="M6 1.5a4.5 4.5 0 0 0 0 9z"),
    "skipbar": _box("skipbar"),
    "skipped": _SKIPPED,
    "o": _box("o"),
    "o one": _circle("o"),
    "overdue": _box("overdue"),
    "overdue one": element("path", cls="overdue", d="M1.5 6a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0M6 3.5v2.5h2"),
    "overdue tray": element("path", cls="overdue", d="M1.5 7h2.6l.8 1.5h2.2L7.9 7h2.6M1.5 7v3.2h9V7L9 2H3z"),
    "hatched": _box("hatched", fill="url(#hatch)"),
    "tail": element("path", cls="tail", d="M0 6h12"),
    "f-past stem": element("rect", cls="f-past", x=5, y=1, width=2, height=11),
    "chg": _line("chg"),
    "gapped": _box("gapped", fill="url(#gapped)"),
    "uncounted": _box("uncounted", fill="url(#full)"),
    "deploy": Markup('<path class="deploy" d="M2 0v12"/><path class="flag" d="M2 0h8l-3 3 3 3h-8z"/>'),
    "nowl": _line("nowl"),
}
"""The marks of all charts, as legends draw them, by the classes of what is drawn."""

CALENDAR: Final[Mapping[str, str]] = {
    "f-past": "succeeded",
    "f-past one": "one that succeeded",
    "opened": "open: has not ended",
    "overdue tray": "waits for a worker",
    "tail": "waited to start",
    "skipbar": "skipped",
    "skipped": "one that was skipped",
    "overdue": "not started",
    "overdue one": "one that has not started",
    "o": "due",
    "o one": "one that is due",
    "f-fail": "failed, below the line",
    "failx": "one that failed",
    "gapped": "an hour that does not exist",
    "chg": "an hour that comes twice",
    "uncounted": "not counted",
    "nowl": "now",
}
STRIP: Final[Mapping[str, str]] = {
    "f-past": "succeeded",
    "skipbar": "skipped",
    "overdue": "not started",
    "f-fail": "failed, below",
    "o": "due",
    "hatched": "what is due is not known",
    "f-past stem": "how late a run started",
    "deploy": "deployment",
    "nowl": "now",
}


def list_legend(words: Mapping[str, str], charts: Iterable[Markup]) -> list[LegendEntry]:
    """Return the entries of what some charts have drawn, in the order of their table. One look has one entry."""
    drawn = {css for chart in charts for css in _CLASSES.findall(chart)}
    looks: dict[Markup, list[str]] = {}
    for css, word in words.items():
        if css in drawn:
            looks.setdefault(_find_mark(css), []).append(word)
    return [LegendEntry(swatch, ", or ".join(meanings)) for swatch, meanings in looks.items()]


def _find_mark(css: str) -> Markup:
    """Return a mark. A class that follows another one only tells what it means."""
    return _MARKS.get(css) or _MARKS[css.partition(" ")[0]]
