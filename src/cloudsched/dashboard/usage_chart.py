"""How much of a budget is used, as one bar: what is used is filled, what is left is outlined, 80 % is marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.svg import element, percent

if TYPE_CHECKING:
    from markupsafe import Markup

WARNING: Final = 0.8
"""The part of a budget from which on the API warns."""
_HEIGHT, _BAR, _LEAST = 16, 10, 0.01


def draw_budget(used: int, most: int) -> Markup:
    """Return the bar; the words beside it say the same.

    Args:
        used: How many queries were used.
        most: How many may be used. None of a budget of 0 is left.
    """
    part = min(1.0, used / most) if most else 1.0
    filled = max(part, _LEAST) if used or not most else 0.0
    css = "f-fail" if part >= 1 else "f-retry" if part >= WARNING else "f-past"
    top = (_HEIGHT - _BAR) / 2
    parts = [element("rect", cls="o", x="0.5", y=top, width="99%", height=_BAR)]
    if filled:
        parts.append(element("rect", cls=css, x="0", y=top, width=percent(filled * 0.99), height=_BAR))
    mark = percent(WARNING * 0.99)
    parts.append(element("line", cls="base", x1=mark, x2=mark, y1=0, y2=_HEIGHT))
    return element("svg", *parts, cls="c", height=_HEIGHT, **{"aria-hidden": "true"})
