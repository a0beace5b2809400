"""The queries, scripts and options that pages on deployment and operations name are there."""

from __future__ import annotations

import json
import re

from tests.deployables.fake_project import ROOT

CLIENTS = (ROOT / "docs/guides/clients.md").read_text("utf-8")


def test_queries_in_the_documents_have_an_index() -> None:
    """Every query that the page shows to web and mobile clients has a deployed index."""
    indexes = json.loads((ROOT / "infra/firestore.indexes.json").read_text("utf-8"))
    served = {
        (index["collectionGroup"], *((field["fieldPath"], field.get("order")) for field in index["fields"]))
        for index in (*indexes["indexes"], *indexes["clients"]["indexes"])
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
