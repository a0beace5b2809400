"""The colours of the stylesheet can be read by everybody: WCAG 2.2 AA, in both schemes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cloudsched.dashboard

CSS = (Path(cloudsched.dashboard.__file__).parent / "static" / "page.css").read_text("utf-8")
TEXT = ("ink", "soft", "now", "ok", "fail", "retry", "wait")
SHAPES = ("past", "edge")
GROUNDS = ("panel", "sunk", "bg")
TEXT_RATIO, SHAPE_RATIO = 4.5, 3.0


def read_tokens(scheme: str) -> dict[str, str]:
    """Return the colours of a scheme, as they stand in the stylesheet."""
    colours = re.findall(r"--(\w+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", CSS)
    return {name: light if scheme == "light" else dark for name, light, dark in colours}


def mix(colour: str, ground: str) -> str:
    """Return the ground of a note, which has a part of the colour of its status."""
    (share,) = map(int, re.findall(r"color-mix\(in srgb, currentColor (\d+)%, var\(--panel\)\)", CSS))
    parts = [[int(each[index : index + 2], 16) for index in (1, 3, 5)] for each in (colour, ground)]
    return "#" + "".join(
        f"{(share * one + (100 - share) * other) // 100:02x}" for one, other in zip(*parts, strict=True)
    )


def find_ratio(one: str, other: str) -> float:
    """Return the contrast of two colours (WCAG 2.2, "contrast ratio" and "relative luminance")."""

    def luminance(colour: str) -> float:
        parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_shapes_stand_out(scheme: str) -> None:
    """Text has at least 4.5 on every ground, a note's too, what carries meaning without being text 3.0."""
    tokens = read_tokens(scheme)
    for names, least in ((TEXT, TEXT_RATIO), (SHAPES, SHAPE_RATIO)):
        for name in names:
            for ground in GROUNDS:
                assert find_ratio(tokens[name], tokens[ground]) >= least, (name, ground)
            wash = mix(tokens[name], tokens["panel"])
            assert find_ratio(tokens[name], wash) >= least, name
            assert find_ratio(tokens["soft"], wash) >= TEXT_RATIO, name
    assert find_ratio(tokens["panel"], tokens["ink"]) >= TEXT_RATIO
