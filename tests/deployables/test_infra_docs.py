"""The numbers and names in the pages on deployment and operations match the code and the configuration."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from tests.deployables.fake_project import ROOT

if TYPE_CHECKING:
    from pathlib import Path

COSTS = (ROOT / "docs/explanation/costs.md").read_text(encoding="utf-8")
RESOURCES = (ROOT / "docs/reference/resources.md").read_text(encoding="utf-8")
CLIENTS = (ROOT / "docs/how-to/web-clients.md").read_text(encoding="utf-8")
OWN_FILES = {"infra/config.sh", "infra/staging.sh", "infra/production.sh"}
"""What a reader of the pages writes."""
MILLION = 1_000_000


def read_table(text: str, heading: str) -> dict[str, list[str]]:
    """Return a table's rows, keyed by their first cell."""
    table = text.partition(heading)[2].partition("\n\n")[0]
    cells = ([cell.strip(" *") for cell in line.strip("|").split("|")] for line in table.splitlines()[2:])
    return {first: rest for first, *rest in cells}


def parse_number(text: str) -> float:
    return float(text.replace(",", ""))


SIZES = re.compile(r"counted at ([\d,]+) bytes each.*? logs are counted at ([\d,]+)\s+bytes", re.DOTALL)
"""The bytes of a record and of an occurrence's log entries, as docs/explanation/costs.md states them."""


def test_costs_follow_from_the_counted_operations() -> None:
    """The cost of a million executions is the operations counted on the page times the prices."""
    counted = re.search(r"\| one successful occurrence \| (\d+) \| \d+ \((\d+)\) \| (\d+) \|", COSTS)
    assert counted, "docs/explanation/costs.md no longer counts a successful occurrence"
    reads, writes, created = (int(count) * MILLION for count in counted.groups())
    prices = {
        name: parse_number(usd) / parse_number(of)
        for name, (of, usd) in read_table(COSTS, "| price | of | USD |").items()
    }
    read, write, delete, queue, request, second, stored_gib, logged_gib = prices.values()
    record, log_entries = (int(found.replace(",", "")) for found in SIZES.search(COSTS).groups())  # type: ignore[union-attr]
    stored, logged = MILLION * record / 2**30, MILLION * log_entries / 2**30
    deleted = MILLION  # each record, by its TTL
    before = [
        (reads, read),
        (writes, write),
        (deleted, delete),
        (created + MILLION, queue),
        (MILLION, request),
        (stored, stored_gib),
    ]
    after = [(MILLION // 10, second), (logged, logged_gib)]
    rows = list(read_table(COSTS, "| part | amount | USD | quick handlers: amount | USD |").values())[
        :-1
    ]  # and a comment
    amounts = [parse_number(row[0]) for row in rows if row[0]]
    assert amounts == pytest.approx([amount for amount, _ in (*before, *after)], abs=0.005)
    half, whole = (sum(amount * price for amount, price in some) for some in (before, [*before, *after]))
    costs = [amount * price for amount, price in before]
    costs = [*costs, half, *(amount * price for amount, price in after), whole]
    assert [parse_number(row[1]) for row in rows] == pytest.approx(costs, abs=0.0051)


def test_settings_are_explained_as_they_are() -> None:
    """The tables show the queue limits and concurrency of the example configuration."""
    config = (ROOT / "infra/config.example.sh").read_text(encoding="utf-8")
    values = dict(re.findall(r'(?m)^([A-Z_]+)="?([^"#\s]*)', config))
    queues = [values[f"QUEUE_{priority}"].split("/") for priority in ("CRITICAL", "HIGH", "NORMAL", "LOW")]
    table = read_table(RESOURCES, "| setting | value | why |")
    assert table["dispatches a second"][0] == " · ".join(rate for rate, _ in queues)
    assert table["at the same time"][0] == " · ".join(count for _, count in queues)
    functions = read_table(RESOURCES, "| | api | execute | sweep | why |")
    assert functions["concurrency, and threads"][:2] == [values["API_CONCURRENCY"], values["EXECUTE_CONCURRENCY"]]
    assert functions["maximum"][:2] == [values["API_MAX_INSTANCES"], values["EXECUTE_MAX_INSTANCES"]]
    assert functions["timeout"][1:3] == [f"{values['EXECUTE_TIMEOUT']} s", f"{values['SWEEP_TIMEOUT']} s"]


def test_queries_in_the_documents_have_an_index() -> None:
    """Every query that the page shows to web and mobile clients has a deployed index."""
    indexes = json.loads((ROOT / "infra/firestore.indexes.json").read_text(encoding="utf-8"))
    served = {
        (index["collectionGroup"], *((field["fieldPath"], field.get("order")) for field in index["fields"]))
        for index in indexes["indexes"]
    } | {
        (field["collectionGroup"], (field["fieldPath"], index["order"]))
        for field in indexes["fieldOverrides"]
        for index in field["indexes"]
    }
    queries = re.findall(r"(?m)^onSnapshot\(query\((collection.*)\), show\)$", CLIENTS)
    assert len(queries) == 3
    for query in queries:
        (collection,) = re.findall(r'"(\w+)"\)', query.partition("where")[0].partition("orderBy")[0])
        equal = [(field, "ASCENDING") for field in re.findall(r'where\("(\w+)"', query)]
        order = [(field, f"{way.upper()}ENDING") for field, way in re.findall(r'orderBy\("(\w+)", "(\w+)"\)', query)]
        assert (collection, *equal, *order) in served, query


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_scripts_that_are_named_exist(page: Path) -> None:
    """Every script and option named on the pages exists."""
    text = page.read_text(encoding="utf-8")
    for script in set(re.findall(r"infra/[\w./-]+\.(?:sh|json)", text)) - OWN_FILES:
        assert (ROOT / script).is_file(), script
    for script, option in set(re.findall(r"(infra/[\w-]+\.sh) (--[a-z-]+)", text)):
        shared = (ROOT / "infra/lib/commands.sh").read_text(encoding="utf-8")
        code = (ROOT / script).read_text(encoding="utf-8") + shared
        assert f"{option})" in code or f"{option}=*)" in code or option == "--force", option
