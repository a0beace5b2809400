"""The chart of `benchmarks.scale`: lateness by rate, a line for each number of shards, as SVG."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDTH, _HEIGHT = 760, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 30, 30, 60
_TEXT: Final = "#7d828a"
"""Readable on white and on black."""
_COLORS: Final = ("#d9730d", "#2b8a78", "#6d7fe0", "#c2559d")
_LATENESS: Final = (0.1, 0.3, 1, 3, 10, 30)


def draw_chart(lines: Mapping[int, Sequence[tuple[float, float]]]) -> str:
    """Return an SVG file; each line has rates, and the lateness at each."""
    rates = [rate for line in lines.values() for rate, _ in line]
    low, high = 10 ** math.floor(math.log10(min(rates))), 10 ** math.ceil(math.log10(max(rates)))

    def to_x(rate: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log(rate / low) / math.log(high / low)

    def to_y(seconds: float) -> float:
        part = math.log(min(max(seconds, _LATENESS[0]), _LATENESS[-1]) / _LATENESS[0])
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * part / math.log(_LATENESS[-1] / _LATENESS[0])

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        "<title>Lateness of 99 % of all occurrences, by occurrences a second, for several numbers of shards</title>",
        f'<g font-family="sans-serif" font-size="13" fill="{_TEXT}">',
    ]
    for seconds in _LATENESS:
        y = to_y(seconds)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="{_TEXT}" stroke-opacity=".3"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{seconds:g} s</text>')
    rate = low
    while rate <= high:
        x = to_x(rate)
        parts.append(f'<path d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="{_TEXT}" stroke-opacity=".3"/>')
        anchor = "end" if rate == high else "middle"
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="{anchor}">{rate:,}</text>')
        rate *= 10
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 14}" text-anchor="middle">occurrences a second</text>')
    parts.append(f'<text x="{_LEFT}" y="{_TOP - 12}">lateness, p99</text>')
    for (shards, line), color in zip(lines.items(), _COLORS, strict=False):
        path = " ".join(f"{to_x(rate):.1f},{to_y(seconds):.1f}" for rate, seconds in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2.5"/>')
        parts += [
            f'<circle cx="{to_x(rate):.1f}" cy="{to_y(late):.1f}" r="3.5" fill="{color}"/>' for rate, late in line
        ]
        x, y = to_x(line[0][0]), to_y(line[0][1])
        name = "1 shard" if shards == 1 else f"{shards} shards"
        style = f'fill="{color}" font-weight="bold" text-anchor="end"'
        parts.append(f'<text x="{x - 10:.1f}" y="{y - 4:.1f}" {style}>{name}</text>')
    parts.append("</g></svg>")
    return "\n".join(parts) + "\n"
