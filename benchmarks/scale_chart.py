"""The chart of `benchmarks.scale`: lateness by rate, a line for each number of shards, as SVG."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from benchmarks.scale_chart_labels import Box, place_labels

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
    names = ["1 shard" if shards == 1 else f"{shards} shards" for shards in lines]
    drawn = [[(to_x(rate), to_y(seconds)) for rate, seconds in line] for line in lines.values()]
    labels = place_labels(names, drawn, Box(_LEFT, _TOP, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM))
    for name, points, label, color in zip(names, drawn, labels, _COLORS, strict=False):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in points]
        x, y = label.baseline
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" font-weight="bold">{name}</text>')
    parts.append("</g></svg>")
    return "\n".join(parts) + "\n"
