"""SVG elements as text.

In SVG, x is in per cent and y in pixels, so nothing is measured. Colours are by class, and all text is escaped.
"""

from __future__ import annotations

from typing import Final

from markupsafe import Markup, escape

from cloudsched.dashboard.words import show_unseen

_NAMES: Final = {
    "cls": "class",
    "fill_opacity": "fill-opacity",
    "aria_label": "aria-label",
}


def element(tag: str, *children: Markup | str, **attributes: str | float) -> Markup:
    """Return an element. Numbers have at most two decimals."""
    written = "".join([f' {_NAMES.get(name, name)}="{_write_value(value)}"' for name, value in attributes.items()])
    inside = "".join([child if isinstance(child, Markup) else escape(show_unseen(child)) for child in children])
    return Markup(f"<{tag}{written}>{inside}</{tag}>")  # noqa: S704 - names of ours, and escaped values


def _write_value(value: str | float) -> str | int:
    if isinstance(value, str):
        return escape(show_unseen(value))
    if isinstance(value, int):
        return value
    return f"{value:.2f}".rstrip("0").rstrip(".")


def percent(fraction: float) -> str:
    """Return a part of the width, such as ``12.5%``."""
    return f"{min(1.0, max(0.0, fraction)) * 100:.2f}%"


def draw_picture(height: float, *children: Markup) -> Markup:
    """Return a chart of the full width, hidden from screen readers, because words beside it say the same."""
    return element("svg", *children, cls="c", height=height, **{"aria-hidden": "true"})


def draw_vertical(css: str, place: float, top: float, bottom: float) -> Markup:
    """Return a vertical line at a place of the width, from 0 to 1."""
    return element("line", cls=css, x1=percent(place), x2=percent(place), y1=top, y2=bottom)
