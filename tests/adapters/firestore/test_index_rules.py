"""The stand-in for production's index rules decides Google's own examples as Google does."""

from __future__ import annotations

from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import Client, Query
from google.cloud.firestore_v1.base_query import FieldFilter
from tests.adapters.firestore.index_rules import Indexes
from tests.cases import try_each

CLIENT = Client(project="demo", credentials=AnonymousCredentials())  # type: ignore[no-untyped-call]  # as it is shipped
CITIES = CLIENT.collection("cities")
UP, DOWN = "ASCENDING", "DESCENDING"


def composite(*fields: str) -> dict[str, Any]:
    """Return a composite index; a field after a minus is descending."""
    order = [{"fieldPath": field.lstrip("-"), "order": DOWN if field.startswith("-") else UP} for field in fields]
    return {"collectionGroup": "cities", "queryScope": "COLLECTION", "fields": order}


def exempt(path: str, *orders: str) -> dict[str, Any]:
    indexes = [{"queryScope": "COLLECTION", "order": order} for order in orders]
    return {"collectionGroup": "cities", "fieldPath": path, "indexes": indexes}


def where(*filters: tuple[str, str, object], order: str = "") -> Any:  # noqa: ANN401 - a protobuf message
    """Return a query as Google's own client builds it."""
    query: Any = CITIES
    for each in filters:
        query = query.where(filter=FieldFilter(*each))
    for field in order.split():
        direction = Query.DESCENDING if field.startswith("-") else Query.ASCENDING
        query = query.order_by(field.lstrip("-"), direction=direction)
    return query.limit(9)._to_protobuf()._pb  # noqa: SLF001 - what the client would send


CA, DENVER, SOME = ("state", "==", "CA"), ("city", "==", "Denver"), ("state", "in", ["CA", "CO"])
BIG = ("population", ">", 10**6)


@try_each(
    "query, indexes, overrides, is_served",
    [
        (where(), [], [exempt("*")], True),
        (where(CA), [], [], True),
        (where(CA, DENVER), [], [], True),
        (where(BIG), [], [], True),
        (where(order="population"), [], [], True),
        (where(BIG, order="-population"), [], [], True),
        (where(CA, order="population"), [], [], False),
        (where(CA, order="population"), [composite("state", "population")], [], True),
        (where(CA, order="-population"), [composite("state", "population")], [], False),
        (where(CA, BIG), [], [], False),
        (where(CA, BIG), [composite("state", "population")], [], True),
        (where(SOME, order="population"), [composite("state", "population")], [], True),
        (where(order="state population"), [composite("state", "population")], [], True),
        (where(order="state population"), [composite("population", "state")], [], False),
    ],
)
def test_single_fields_and_composites(query: Any, indexes: list[Any], overrides: list[Any], is_served: bool) -> None:  # noqa: ANN401, FBT001
    """One field is served by itself; several take an index with the equal fields first, then the order."""
    rules = Indexes.from_content({"indexes": indexes, "fieldOverrides": overrides})
    assert (rules.why_refused(query) is None) is is_served


BY_STATE, BY_CITY = composite("state", "population"), composite("city", "population")
BOTH = composite("city", "state", "population")


@try_each(
    "query, indexes, is_served",
    [
        (where(CA, DENVER, order="population"), [BY_STATE, BY_CITY], True),
        (where(CA, DENVER, order="population"), [BY_STATE], False),
        (where(CA, DENVER, order="-population"), [BY_STATE, BY_CITY], False),
        (where(CA, DENVER, BIG), [BY_STATE, BY_CITY], False),
        (where(CA, DENVER, BIG), [BOTH], True),
        (where(SOME, DENVER, order="population"), [BY_STATE, BY_CITY], False),
        (where(SOME, DENVER, order="population"), [BOTH], True),
        (where(SOME, DENVER), [], False),
    ],
)
def test_indexes_are_merged_for_equality_alone(query: Any, indexes: list[Any], is_served: bool) -> None:  # noqa: ANN401, FBT001
    """Nothing documented promises merging beside a range or an ``in``."""
    rules = Indexes.from_content({"indexes": indexes, "fieldOverrides": []})
    assert (rules.why_refused(query) is None) is is_served


@pytest.mark.parametrize(
    ("overrides", "field", "is_served"),
    [
        ([exempt("*")], "state", False),
        ([exempt("*"), exempt("state", UP)], "state", True),
        ([exempt("*"), exempt("state", DOWN)], "state", False),
        ([exempt("state")], "population", True),
        ([exempt("place")], "place.state", False),
        ([exempt("place"), exempt("place.state", UP)], "place.state", True),
    ],
    ids=str,
)
def test_exemptions(overrides: list[Any], field: str, is_served: bool) -> None:  # noqa: FBT001
    """An exempt field has only the indexes that its exemption lists; a map's counts for what is in it."""
    rules = Indexes.from_content({"indexes": [], "fieldOverrides": overrides})
    assert (rules.why_refused(where(order=field)) is None) is is_served


@pytest.mark.parametrize(("count", "is_served"), [(30, True), (31, False)])
def test_thirty_disjunctions_are_the_maximum(count: int, *, is_served: bool) -> None:
    """Each value of an ``in`` is one, and those of two are multiplied."""
    rules = Indexes.from_content({"indexes": [composite("city", "state")], "fieldOverrides": []})
    assert (rules.why_refused(where(("state", "in", ["x"] * count))) is None) is is_served
    two = where(("state", "in", ["x"] * count), ("city", "in", ["y", "z"]))
    assert rules.why_refused(two) is not None


def test_what_the_rules_do_not_cover_is_refused() -> None:
    """A new kind of query needs its rule here first."""
    rules = Indexes.from_content({"indexes": [], "fieldOverrides": []})
    assert rules.why_refused(where(("state", "!=", "CA"))) is not None
    assert rules.why_refused(where(("tags", "array_contains_any", ["x"]))) is not None
