"""docs/explanation/costs.md has the prices of the settings, and dollars that follow from them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from benchmarks.index_entries import count_entries, make_subjects, measure_document

from cloudsched.config.features import DEFAULT_PRICES
from cloudsched.domain.transitions.cost_plan import LOGGED_GIB, RECORD_BYTES, STORED_GIB, VCPU_SECOND, plan_costs
from cloudsched.domain.transitions.forecast import OCCURRENCE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "costs.md").read_text("utf-8")
NAMES = {
    "document read": "read",
    "document written": "write",
    "document deleted": "delete",
    "queue operation": "queueOperation",
    "request to a function": "request",
}


def test_the_dollars_are_those_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python .ci/site/costs.py` writes the table; a count or price that was changed since makes another one."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci" / "site"))
    import costs  # type: ignore[import-not-found]  # noqa: PLC0415 - of the site's own folder

    assert costs.put(PAGE) == PAGE
    for table in (costs.render(), costs.render_million(), costs.render_levers(), costs.render_sweep()):
        assert table in PAGE


@pytest.mark.parametrize("name", NAMES)
def test_the_prices_are_the_defaults(name: str) -> None:
    """Each that has a default in `CLOUDSCHED_PRICES` is on the page, for the number of operations that Google says."""
    found = re.search(rf"^\| {name}[^|]* \| ([\d,]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert found
    per, dollars = int(found[1].replace(",", "")), float(found[2])
    assert dollars / per * 1_000_000 == pytest.approx(DEFAULT_PRICES[NAMES[name]])


def test_the_forecast_counts_an_occurrence_as_the_page_does() -> None:
    """The row of a successful occurrence, which tests/engine/test_billed_operations.py measures."""
    found = re.search(r"\| one successful occurrence \| (\d+) \| \d+ \((\d+)\) \| (\d+) \|", PAGE)
    assert found
    assert tuple(map(int, found.groups())) == (OCCURRENCE.reads, OCCURRENCE.writes, OCCURRENCE.dispatches)


def test_records_are_counted_as_they_are_stored() -> None:
    """`python -m benchmarks.index_entries` counts them: the document, and its entries in the indexes of the file."""
    found = re.search(r"at ([\d,]+) bytes each: ([\d,]+) for a record without content, ([\d,]+) for its", PAGE)
    assert found
    together, document, entries = (int(each.replace(",", "")) for each in found.groups())
    record = next(each for each in make_subjects(0) if each.name == "record")
    content = json.loads((ROOT / "infra" / "firestore.indexes.json").read_text("utf-8"))
    assert (document, entries) == (measure_document(record), count_entries(content, record).size)
    assert together == document + entries == RECORD_BYTES


@pytest.mark.parametrize(
    ("name", "price"), [("vCPU-second", VCPU_SECOND), ("GiB in Firestore", STORED_GIB), ("GiB of logs", LOGGED_GIB)]
)
def test_the_plan_has_the_prices_of_the_page(name: str, price: float) -> None:
    """Also those that no setting has."""
    found = re.search(rf"^\| {name}[^|]* \| 1 \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert found
    assert float(found[1]) == price


def test_the_alert_on_spending_prices_a_run_as_the_page_does() -> None:
    """What `ALERT_DOLLARS_A_DAY` takes for the price of a million runs is near the page's."""
    table = json.loads((ROOT / "infra" / "resources.json").read_text("utf-8"))
    whole = sum(each.dollars for each in plan_costs(1e6, DEFAULT_PRICES))
    assert table["dollarsPerMillionRuns"] == pytest.approx(whole, rel=0.05)
