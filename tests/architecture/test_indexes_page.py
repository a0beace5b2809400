"""docs/reference/resources.md names every index and its query."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.doc_blocks import read_section

ROOT = Path(__file__).parents[2]
CONTENT: dict[str, Any] = json.loads((ROOT / "infra" / "firestore.indexes.json").read_text("utf-8"))


def read_rows(heading: str) -> list[tuple[str, ...]]:
    text = read_section(ROOT / "docs" / "reference" / "resources.md", heading)
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in text.splitlines() if "|" in line]
    return [row for row in rows if row[0] != "collection" and set(row[0]) != {"-"}]


def read_names(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


def write_index(index: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    fields = (
        f"{each['fieldPath']}{'[]' if 'arrayConfig' in each else '↓' if each['order'] == 'DESCENDING' else ''}"
        for each in index["fields"]
    )
    return index["collectionGroup"], tuple(fields)


def test_the_page_names_a_query_for_every_index() -> None:
    """No index is without one, and none is on the page that is not in the file."""
    composites = read_rows("Composite indexes")
    kinds = (CONTENT, CONTENT["sharded"], CONTENT["clients"])
    expected = [write_index(each) for kind in kinds for each in kind["indexes"]]
    assert sorted((row[0], read_names(row[1])) for row in composites) == sorted(expected)
    single = read_rows("Single fields")
    listed = {
        (each["collectionGroup"], f"{each['fieldPath']}{'↓' if index['order'] == 'DESCENDING' else ''}")
        for each in CONTENT["fieldOverrides"]
        for index in each["indexes"]
    }
    assert {(row[0], *read_names(row[1])) for row in single} == listed
    assert len(single) == len(listed)
    assert all(len(row) == 5 and all(row) for row in [*composites, *single])
