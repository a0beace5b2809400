"""SVG as text: x in per cent and y in pixels, so nothing is measured; colours by class, and all text escaped."""

from __future__ import annotations

from markupsafe import Markup, escape

_NAMES = {"cls": "class", "text_anchor": "text-anchor", "fill_opacity": "fill-opacity", "aria_label": "aria-label"}


def element(tag: str, *children: Markup | str, **attributes: str | float) -> Markup:
    """Return an element; numbers have at most two decimals."""
    parts = ["<", tag]
    for name, value in attributes.items():
        if isinstance(value, str):
            text = str(escape(value))
        else:
            text = str(value) if isinstance(value, int) else f"{value:.2f}".rstrip("0").rstrip(".")
        parts.append(f' {_NAMES.get(name, name)}="{text}"')
    inside = "".join([escape(child) for child in children])
    return Markup("".join([*parts, ">", inside, "</", tag, ">"]))  # noqa: S704 - names of ours, and escaped values


def percent(fraction: float) -> str:
    """Return a part of the width, such as ``12.5%``."""
    return f"{min(1.0, max(0.0, fraction)) * 100:.2f}%"


def group(*children: Markup) -> Markup:
    """Return elements one after the other."""
    return Markup("").join(children)
