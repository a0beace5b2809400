"""SVG as text: x in per cent and y in pixels, so nothing is measured; colours by class, and all text escaped."""

from __future__ import annotations

from markupsafe import Markup, escape

_NAMES = {"cls": "class", "text_anchor": "text-anchor", "fill_opacity": "fill-opacity", "aria_label": "aria-label"}


def element(tag: str, *children: Markup | str, **attributes: str | float) -> Markup:
    """Return an element; numbers have at most two decimals."""
    parts = [Markup("<"), Markup(tag)]  # noqa: S704 - a tag of ours
    for name, value in attributes.items():
        text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
        parts.append(Markup(' {}="{}"').format(Markup(_NAMES.get(name, name)), text))  # noqa: S704 - a name of ours
    inside = Markup("").join(escape(child) for child in children)
    return Markup("").join([*parts, Markup(">"), inside, Markup(f"</{tag}>")])  # noqa: S704 - a tag of ours


def percent(fraction: float) -> str:
    """Return a part of the width, such as ``12.5%``."""
    return f"{min(1.0, max(0.0, fraction)) * 100:.2f}%"


def group(*children: Markup) -> Markup:
    """Return elements one after the other."""
    return Markup("").join(children)
