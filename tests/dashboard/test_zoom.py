"""The part of a time axis that is shown: what the buttons show, and that addresses say it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.conftest import get, look
from tests.web.callers import DAY, HOUR, SECOND

from cloudsched.dashboard.charts.axis import WHOLE, Part, clip, find_parts, read_window
from cloudsched.dashboard.charts.waterfall_scale import make_scale

PLACES = st.floats(0, 1, allow_nan=False)
START = datetime(2027, 2, 1, 8, tzinfo=UTC)


@st.composite
def parts(draw: st.DrawFn) -> Part:
    left, right = sorted((draw(PLACES), draw(PLACES)))
    return (left, right) if right - left > 1e-3 else WHOLE


@given(parts(), st.one_of(st.none(), PLACES))
def test_every_move_stays_on_the_axis(shown: Part, anchor: float | None) -> None:
    """Zooming in halves what is shown, out doubles it; a move keeps its width; nothing leaves the axis."""
    left, right = shown
    found = find_parts(shown, anchor)
    for part in found.values():
        assert 0 <= part[0] < part[1] <= 1 + 1e-9
    inside = found["+"]
    assert inside[1] - inside[0] == pytest.approx((right - left) / 2)
    assert left - 1e-9 <= inside[0]
    assert inside[1] <= right + 1e-9
    for key in ("ArrowLeft", "ArrowRight"):
        part = found.get(key, WHOLE)
        if part != WHOLE:
            assert part[1] - part[0] == pytest.approx(right - left)
    assert ("-" in found) == ("0" in found) == (right - left < 1)
    assert ("ArrowLeft" in found) == (left > 0)
    assert ("ArrowRight" in found) == (right < 1)


@given(parts(), PLACES)
def test_now_stays_in_sight_while_zooming(shown: Part, now: float) -> None:
    """As long as it was in sight before, zooming in as often as one likes does not lose it."""
    if not shown[0] <= now <= shown[1]:
        return
    while (part := find_parts(shown, now).get("+")) is not None:
        assert part[0] - 1e-9 <= now <= part[1] + 1e-9
        shown = part


@given(st.lists(st.tuples(st.integers(0, 900_000), st.integers(0, 5000)), max_size=8), PLACES, st.booleans())
def test_an_instant_has_a_place_on_a_scale_and_back(
    spans: list[tuple[int, int]],
    place: float,
    is_true: bool,  # noqa: FBT001 - Hypothesis names it
) -> None:
    """Whatever is compressed, what lies at the place of an instant is that instant."""
    running = [(START + timedelta(seconds=a), START + timedelta(seconds=a + b)) for a, b in spans]
    scale = make_scale(running, START, START + 1000000 * SECOND, true=is_true)
    at = START + timedelta(seconds=1_000_000 * place)
    assert abs(scale.find_instant(scale.place(at)) - at) < timedelta(milliseconds=10)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"from": "2027-03-24T10:00:00Z"},
        {"from": "yesterday", "until": "today"},
        {"from": "2027-03-24T10:00:00", "until": "2027-03-24T11:00:00"},
        {"from": "2027-03-24T11:00:00Z", "until": "2027-03-24T10:00:00Z"},
        {"from": "0001-01-01T00:00:00+14:00", "until": "2027-03-24T10:00:00Z"},
    ],
)
def test_an_address_that_says_no_window_shows_all(query: dict[str, str]) -> None:
    """Missing, mistyped, without an offset, the wrong way round, or before the calendar begins."""
    assert read_window(look(**query)) is None


def test_a_window_beside_the_axis_shows_all() -> None:
    """Old addresses still show something: a window where there is nothing is not taken."""
    end = START + DAY
    assert clip((START - 2 * DAY, START - DAY), START, end) is None
    assert clip((START - 2 * DAY, START + HOUR), START, end) == (
        START,
        START + HOUR,
    )


def test_pages_show_a_part_of_their_axis(ui: str) -> None:
    """An execution and a week offer to zoom; the links lead to pages that say which part they show."""
    execution = re.findall(r'href="[^"]*(tasks/monthly-close/executions/[^"]+)"', get(f"{ui}/tasks/monthly-close").text)
    for path, words in (
        (execution[0], " to "),
        ("calendar?week=2027-03-22&tz=UTC", "Saturday 27 March 2027"),
    ):
        page = get(f"{ui}/{path}")
        (link,) = re.findall(r'<a href="([^"]*)" data-press="\+"', page.text)
        shown = get(f"{ui}/{path.partition('?')[0]}{unescape(link)}")
        assert words in shown.text
        assert 'aria-label="Zoom out"' in shown.text
        assert shown.text != page.text
