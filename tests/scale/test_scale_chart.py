"""The chart of `benchmarks.scale` can be read: it has every line, and no label hides one or another label."""

from __future__ import annotations

import itertools
import re
from random import Random

from benchmarks.scale_chart import draw_chart
from benchmarks.scale_chart_labels import Box, place_labels
from tests.cases import try_each

AREA = Box(70.0, 30.0, 730.0, 340.0)
MEASURED = {
    1: [(60, 0.1), (125, 0.27), (200, 0.44), (240, 1.1), (300, 2.7), (400, 6.2), (600, 14.5)],
    8: [(480, 0.47), (1_000, 0.48), (1_600, 0.475), (1_920, 1.15), (2_400, 2.7), (3_200, 6.5), (4_800, 14.4)],
    512: [(30_720, 0.48), (64_000, 0.48), (102_400, 0.53), (122_880, 2.3), (153_600, 5.2), (204_800, 10.0)],
}


def test_the_chart_has_a_line_for_each_number_of_shards() -> None:
    """Its text says which; a lateness beyond its axis is at the axis's end."""
    svg = draw_chart({1: [(60, 0.2), (600, 100.0)], 8: [(480, 0.2), (4_800, 25.0)]})
    assert svg.count("<polyline") == 2
    assert "1 shard<" in svg
    assert "8 shards<" in svg


def test_the_labels_of_a_measured_chart_hide_nothing() -> None:
    """Figures whose second label once stood in the first line."""
    svg = draw_chart(MEASURED)
    lines = [
        [(float(x), float(y)) for x, y in (pair.split(",") for pair in points.split())]
        for points in re.findall(r'points="([^"]+)"', svg)
    ]
    labels = [
        Box(float(x), float(y) - 10, float(x) + 7 * len(name), float(y) + 3)
        for x, y, name in re.findall(r'<text x="([\d.]+)" y="([\d.]+)" fill="#\w+" font-weight="bold">([^<]+)<', svg)
    ]
    assert len(labels) == len(lines) == 3
    require_free(labels, lines)


@try_each("seed", range(30))
def test_no_label_hides_a_line_a_point_or_a_label(seed: int) -> None:
    """Any three rising lines, near each other or apart, also at the edges."""
    chance = Random(seed)  # noqa: S311 - to be repeated
    lines = []
    for _ in range(3):
        xs = sorted(chance.uniform(AREA.left, AREA.right) for _ in range(7))
        ys = sorted((chance.uniform(AREA.top, AREA.bottom) for _ in range(7)), reverse=True)
        lines.append(list(zip(xs, ys, strict=True)))
    labels = place_labels(["1 shard", "8 shards", "512 shards"], lines, AREA)
    require_free(labels, lines)
    assert all(each.is_within(AREA) for each in labels)


def require_free(labels: list[Box], lines: list[list[tuple[float, float]]]) -> None:
    for one, other in itertools.combinations(labels, 2):
        assert not one.meets(other)
    for box in labels:
        for line in lines:
            for (x, y), (next_x, next_y) in itertools.pairwise(line):
                for part in range(201):
                    place = x + (next_x - x) * part / 200, y + (next_y - y) * part / 200
                    assert not box.has(place), (box, place)


def test_where_there_is_no_room_the_label_is_at_its_point() -> None:
    """A chart is drawn all the same."""
    (label,) = place_labels(["8 shards"], [[(5.0, 5.0), (8.0, 5.0)]], Box(0.0, 0.0, 10.0, 10.0))
    assert label.right < 5.0
