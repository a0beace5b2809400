"""The tables of docs/run/capacity.md are those that `python -m benchmarks.scale --markdown` prints."""

from __future__ import annotations

import re

import pytest
from benchmarks import scale
from benchmarks.scale_limits import DEMANDS, make_ceilings_sheet, make_limits_sheet
from benchmarks.scale_tables import PAGE, Sheet, make_loads_sheet, make_sizes_sheet, put
from tests.cases import try_each

TEXT = PAGE.read_text(encoding="utf-8")
SIMULATED: dict[str, tuple[Sheet, int]] = {
    "sizes": (make_sizes_sheet([]), len(scale.list_sizes())),
    "loads": (make_loads_sheet([]), len(scale.list_loads())),
    "ceilings": (make_ceilings_sheet([]), len(scale.list_ceilings())),
}
"""The tables that need a simulation: their columns, and how many rows that gives."""


def read_rows(name: str) -> list[list[str]]:
    """Return the cells of a table of the page."""
    found = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", TEXT, re.DOTALL)
    assert found
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()]


@try_each("name", SIMULATED)
def test_the_page_shows_all_that_is_simulated(name: str) -> None:
    """No row and no column is left out, and each cell has something."""
    sheet, count = SIMULATED[name]
    heading, _, *rows = read_rows(name)
    assert tuple(heading) == sheet.headings
    assert len(rows) == count
    assert all(all(row) and len(row) == len(heading) for row in rows)


@try_each("name", ["sizes", "loads"])
def test_what_falls_behind_comes_first(name: str) -> None:
    """Nobody has to look for it."""
    behind = ["growing" in " ".join(row) for row in read_rows(name)[2:]]
    assert any(behind)
    assert behind == sorted(behind, reverse=True)


def test_the_page_has_the_limits_with_their_sources() -> None:
    """Each limit is shown as the models have it. A line that they only interpret says how."""
    assert put(TEXT, [make_limits_sheet()]) == TEXT
    for each in DEMANDS:
        assert each.limit.source.startswith("https://")
        assert each.limit.said or each.limit.assumed
        figure = f"{each.limit.value:,.0f}"
        assert (
            each.limit.assumed
            or figure in each.limit.said
            or f"{each.limit.value:.0f}" in each.limit.said
            or (f"{60 * each.limit.value:,.0f} requests per minute" in each.limit.said)
        )


def test_the_limit_that_breaks_first_is_named() -> None:
    """The load is raised until it falls behind: with ids that rise, the names of documents are what is hot."""
    effort = scale.Effort(rate=6.0, recovery_rate=6.0, window=60, backlog=1, hashed=1_000, ceiling_steps=4)
    rising = scale.choose_deployment(10**6, 1_000, has_rising_ids=True)
    found = scale.measure_ceiling(rising, effort, start=80)
    assert 120 < found.carried < found.broke_at < 220
    assert "`__name__`" in found.limit


@pytest.mark.parametrize("name", ["sizes", "nothing"])
def test_a_table_without_its_place_is_an_error(name: str) -> None:
    """A page that somebody has rearranged is not left with old figures in silence."""
    with pytest.raises(ValueError, match="places for"):
        put(TEXT.replace("<!-- /sizes -->", ""), [Sheet(name, ("a",), (("b",),))])
