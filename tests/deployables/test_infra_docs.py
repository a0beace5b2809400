"""The queries, scripts and options that pages on deployment and operations name are there."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.cases import try_each
from tests.deployables.fake_project import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CLIENTS = (ROOT / "docs/how-to/web-clients.md").read_text(encoding="utf-8")
OWN_FILES = {"infra/config.sh", "infra/staging.sh", "infra/production.sh"}
"""What a reader of the pages writes."""


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
    assert queries
    for query in queries:
        (collection,) = re.findall(r'"(\w+)"\)', query.partition("where")[0].partition("orderBy")[0])
        equal = [(field, "ASCENDING") for field in re.findall(r'where\("(\w+)"', query)]
        order = [(field, f"{way.upper()}ENDING") for field, way in re.findall(r'orderBy\("(\w+)", "(\w+)"\)', query)]
        assert (collection, *equal, *order) in served, query


@try_each("page", sorted((ROOT / "docs").rglob("*.md")))
def test_scripts_that_are_named_exist(page: Path) -> None:
    """Every script and option named on the pages exists."""
    text = page.read_text(encoding="utf-8")
    for script in set(re.findall(r"infra/[\w./-]+\.(?:sh|json)", text)) - OWN_FILES:
        assert (ROOT / script).is_file(), script
    for script, option in set(re.findall(r"(infra/[\w-]+\.sh) (--[a-z-]+)", text)):
        shared = (ROOT / "infra/lib/commands.sh").read_text(encoding="utf-8")
        code = (ROOT / script).read_text(encoding="utf-8") + shared
        assert f"{option})" in code or f"{option}=*)" in code or option == "--force", option
