"""docs/run/costs.md gets its figures from the code when the site is built."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudsched import App, Settings
from cloudsched.adapters.firestore.list_fields import build_write
from cloudsched.adapters.firestore.values import decode
from cloudsched.config.settings import DEFAULT_PRICES
from cloudsched.domain.documents.json_limits import document_size, stored_size
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from cloudsched.domain.documents.document import Document

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
    assert {made.count(render()) for render in costs.TABLES.values()} == {1}


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


def test_the_bytes_of_a_task_and_of_a_record_are_counted(costs: Any) -> None:  # noqa: ANN401 - the same
    """They are those of an hourly task and of its record, as the adapter writes them, with all index entries."""
    app = App(Settings())
    app.handler("report")(lambda: None)
    with Simulation(app) as sim:
        task = app.create(owner="owner-0001", title="Report", handler="report", schedule="every hour")
        sim.advance(timedelta(days=1))
        record, path = sim.executions(task.id)[-1], ("tasks", task.id)
        assert count_bytes(path, app.get(task.id)) == costs.TASK_BYTES
        assert count_bytes((*path, "executions", record.id), record) == costs.RECORD_BYTES


def count_bytes(path: tuple[str, ...], document: Document) -> int:
    """Return the size of a document with its index entries (firebase.google.com/docs/firestore/storage-size)."""
    fields: Any = decode(build_write("", path, document).update.fields)
    if "changed" in fields["private"]:
        fields["private"]["changed"]["at"] = fields["createdAt"]  # as large as what Firestore sets
    size = document_size(path, fields)
    content = json.loads((ROOT / "infra" / "firestore.indexes.json").read_text("utf-8"))
    for index in content["indexes"] + content["fieldOverrides"]:
        paths = [each["fieldPath"].split(".") for each in index.get("fields", [index])]
        values = [reduce(lambda at, key: (at or {}).get(key), each, fields) for each in paths]
        if index["collectionGroup"] == path[-2] and None not in values:
            entry = document_size(path, {}) + stored_size(values) + stored_size(index.get("fieldPath", ()))
            parent = document_size(path[:-2], {}) - 32
            for each in index.get("indexes", [index]):
                size += entry + (parent if each["queryScope"] == "COLLECTION" else 0)
    return size
