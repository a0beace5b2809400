"""Charts as pictures of their own, to be sent to others: SVG with its colours, a title, and when it was drawn."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from cloudsched.dashboard import calendar_view, execution_view, task_view
from cloudsched.dashboard.status import shorten
from cloudsched.dashboard.svg import element, group
from cloudsched.dashboard.times import find_zone
from cloudsched.dashboard.waterfall import make_waterfall

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.dashboard.api import Api
    from cloudsched.dashboard.visit import Visit

_HERE: Final = Path(__file__).parent
_WIDTH, _EDGE, _NAMES, _TOOK, _LINE, _TOP = 1280, 24, 190, 90, 20, 72
"""In pixels: the picture, its margin, the column of names, that of durations, a line of text, and the head."""
_ROWS: Final = 60
"""How many rows of a waterfall a picture has at most."""


@dataclass(frozen=True, slots=True)
class Part:
    """A chart in a picture, with what stands before and behind it."""

    chart: Markup
    name: str = ""
    more: tuple[str, ...] = ()
    """Lines below the name."""
    took: str = ""


def draw_task(api: Api, visit: Visit, task_id: str) -> str:
    """Return a task's life."""
    page = task_view.build(task_view.fetch(api, visit, task_id), visit)
    return _draw(page.title, page.life.text, [Part(page.life.chart)], page.zones, visit)


def draw_execution(api: Api, visit: Visit, task_id: str, execution_id: str) -> str:
    """Return what an execution did."""
    answer = execution_view.fetch(api, visit, task_id, execution_id)
    page = execution_view.build(answer, visit)
    axis = Part(page.axis, took="took")
    rows = [Part(line.chart, f"{line.kind} {line.name}", took=line.took) for line in page.lines[:_ROWS]]
    waterfall = make_waterfall(answer["execution"], visit.now)
    left_out = len(waterfall.rows) - len(rows)
    more = f" {left_out:,} more rows are not drawn." if left_out > 0 else ""
    gaps = f" {page.gaps}." if page.gaps else ""
    words = f"{page.at.text}. {page.sentence.rstrip('.')}.{more}{gaps}"
    return _draw(page.task_title, words, [axis, *rows], page.zones, visit)


def draw_calendar(api: Api, visit: Visit) -> str:
    """Return the days that the address names; a week, if it names a month."""
    visit = _without_month(visit)
    page = calendar_view.build(calendar_view.fetch(api, visit), visit)
    rows = [Part(row.chart, row.name, tuple(filter(None, [row.counts, row.failed, row.hours]))) for row in page.rows]
    return _draw("What ran and what is due", page.sentence, [Part(page.hours), *rows], page.zones, visit)


def _without_month(visit: Visit) -> Visit:
    return replace(visit, query={name: text for name, text in visit.query.items() if name != "month"})


def _draw(title: str, words: str, parts: Sequence[Part], zones: Sequence[object], visit: Visit) -> str:
    zone = next((str(getattr(each, "name", "")) for each in zones if getattr(each, "is_chosen", False)), visit.zone.key)
    has_names = any(part.name for part in parts)
    has_took = any(part.took for part in parts)
    left = _EDGE + _NAMES * has_names
    width = _WIDTH - _EDGE - left - _TOOK * has_took
    marks: list[Markup] = []
    y = _TOP
    for part in parts:
        height = max(_find_height(part.chart), (1 + len(part.more)) * _LINE if part.name else 0)
        marks += _draw_names(part, y, height)
        marks.append(element("svg", _unlink(part.chart), x=left, y=y, width=width, height=height, overflow="visible"))
        y += height + 4
    seen = replace(visit, zone=find_zone(zone) or visit.zone)
    foot = f"cloudsched, {seen.sure(visit.now).text}, times in {zone}"
    texts = (
        element("text", shorten(title, 90), cls="h", x=_EDGE, y=32),
        element("text", shorten(words, 190), x=_EDGE, y=54),
        element("text", foot, x=_EDGE, y=y + 20),
    )
    height = y + 36
    ground = element("rect", cls="ground", x=0, y=0, width=_WIDTH, height=height)
    inside = group(element("title", shorten(title, 90)), element("desc", words), ground, *texts, *marks)
    style = Markup("<style>{}</style>").format(Markup(find_style()))  # noqa: S704 - of our own file
    whole = element("svg", inside, cls="c", width=_WIDTH, height=height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img">{style}{_find_patterns()}{whole}</svg>\n'
    )


def _draw_names(part: Part, y: int, height: int) -> Iterator[Markup]:
    middle = y + (height // 2 + 4 if not part.more else 16)
    if part.name:
        yield element(
            "text", shorten(part.name.replace("\N{NO-BREAK SPACE}", " "), 30), cls="strong", x=_EDGE, y=middle
        )
    for number, line in enumerate(part.more, 1):
        yield element("text", shorten(line, 32), x=_EDGE, y=middle + number * 16)
    if part.took:
        yield element("text", part.took, x=_WIDTH - _EDGE, y=y + height // 2 + 4, text_anchor="end")


def _find_height(chart: Markup) -> int:
    found = re.match(r'<svg[^>]* height="(\d+)"', chart)
    return int(found[1]) if found else 0


def _unlink(chart: Markup) -> Markup:
    """Return a chart without its links: they lead nowhere once a picture has been sent to somebody."""
    text = re.sub(r'<a\b[^>]*?( class="[^"]*")?(?: tabindex="-1")?>', lambda found: f"<g{found[1] or ''}>", chart)
    return Markup(text.replace("</a>", "</g>"))  # noqa: S704 - what was safe, without some tags


@cache
def find_style() -> str:
    """Return the rules of the stylesheet that charts need, so that a picture has the colours of the pages."""
    css = (_HERE / "static/page.css").read_text("utf-8")
    light, dark = re.findall(r"^ *:root \{(.*?)\}", css, re.DOTALL | re.MULTILINE)[:2]
    charts = css[css.index("/* Charts:") : css.index("/* Waterfall */")]
    charts = re.sub(r"/\*.*?\*/", "", charts, flags=re.DOTALL)
    rules = f":root{{{light}}}@media (prefers-color-scheme: dark){{:root{{{dark}}}}}{charts}"
    rules += ".ground{fill:var(--panel)}svg.c text.h{font-size:20px;font-weight:620;fill:var(--ink)}a{color:inherit}"
    rules += ".fail{color:var(--fail)}"
    return re.sub(r"\s+", " ", rules)


@cache
def _find_patterns() -> str:
    shell = (_HERE / "templates/shell.html").read_text("utf-8")
    return shell[shell.index("<defs>") : shell.index("</defs>")] + "</defs>"
