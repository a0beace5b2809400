"""docs/run/costs.md gets its figures from the code when the site is built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cloudsched.config.settings import DEFAULT_PRICES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "run" / "costs.md").read_text("utf-8")


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a module of the site's own folder
    monkeypatch.syspath_prepend(str(ROOT / ".ci" / "site"))
    import costs  # type: ignore[import-not-found]  # noqa: PLC0415 - the same

    return costs


def test_every_figure_has_its_place(costs: Any) -> None:  # noqa: ANN401 - the same
    """Each table and sentence that is generated is put into the page once, whatever stood there."""
    page = re.sub(r"(<!-- (\w+) -->\n).*?(<!-- /\2 -->)", r"\1stale\n\3", PAGE, flags=re.DOTALL)
    assert "stale" in page
    made = costs.put(page)
    assert "stale" not in made
    for render in (costs.render_prices, costs.render_sizes, costs.render, costs.render_million, costs.render_examples):
        assert made.count(render()) == 1
    assert costs.render_standing() in made


def test_dollars_are_amounts_times_prices(costs: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401 - the same
    """With a price of one dollar for a million of each, a row's dollars are the sum of its amounts."""
    for name in DEFAULT_PRICES:
        monkeypatch.setitem(DEFAULT_PRICES, name, 1.0)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in costs.render().splitlines()[2:]]
    assert rows
    for row in rows:
        assert float(row[-1]) == sum(int(cell.removesuffix(" M")) for cell in row[1:-1] if cell)
    assert "| documents written | 3,000,000 | 3.00 |" in costs.render_million()
    assert "| document written | 100,000 | 0.10 |" in costs.render_prices()
