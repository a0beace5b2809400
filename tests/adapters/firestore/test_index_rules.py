"""The stand-in for production's index rules decides Google's own examples as Google does.

Here are the rules that none of our queries tries; `test_indexes.py` fails without the others.
"""

from __future__ import annotations

from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import Client, Query
from google.cloud.firestore_v1.base_query import FieldFilter
from tests.adapters.firestore.index_rules import Indexes
from tests.cases import try_each

CLIENT = Client(project="demo", credentials=AnonymousCredentials())  # type: ignore[no-untyped-call]  # as it is shipped
UP, DOWN = "ASCENDING", "DESCENDING"


def composite(*fields: str) -> dict[str, Any]:
    order = [{"fieldPath": field, "order": UP} for field in fields]
    return {"collectionGroup": "cities", "queryScope": "COLLECTION", "fields": order}


def exempt(path: str, *orders: str) -> dict[str, Any]:
    indexes = [{"queryScope": "COLLECTION", "order": order} for order in orders]
    return {"collectionGroup": "cities", "fieldPath": path, "indexes": indexes}


def where(*filters: tuple[str, str, object], order: str = "") -> Any:  # noqa: ANN401 - a protobuf message
    """Return a query as Google's own client builds it; an order after a minus is descending."""
    query: Any = CLIENT.collection("cities")
    for each in filters:
        query = query.where(filter=FieldFilter(*each))
    if order:
        query = query.order_by(order.lstrip("-"), direction=Query.DESCENDING if order[0] == "-" else Query.ASCENDING)
    return query.limit(9)._to_protobuf()._pb  # noqa: SLF001 - what the client would send


CA, DENVER, BIG = ("state", "==", "CA"), ("city", "==", "Denver"), ("population", ">", 10**6)
BOTH = [composite("state", "population"), composite("city", "population")]


@try_each(
    "query, indexes, overrides, is_served",
    [
        (where(), [], [exempt("*")], True),
        (where(CA, order="-population"), BOTH, [], False),
        (where(CA, DENVER, order="population"), BOTH, [], True),
        (where(CA, DENVER, BIG), BOTH, [], False),
        (where(CA, DENVER, BIG), [composite("city", "state", "population")], [], True),
        (where(("state", "in", ["x"] * 30)), [], [], True),
        (where(("state", "in", ["x"] * 31)), [], [], False),
        (where(("state", "in", ["x"] * 30), ("city", "in", ["y", "z"])), [composite("city", "state")], [], False),
        (where(order="state"), [], [exempt("*"), exempt("state", DOWN)], False),
        (where(order="population"), [], [exempt("state")], True),
        (where(order="place.state"), [], [exempt("place")], False),
        (where(order="place.state"), [], [exempt("place"), exempt("place.state", UP)], True),
        (where(("state", "!=", "CA")), [], [], False),
        (where(("tags", "array_contains_any", ["x"])), [], [], False),
    ],
)
def test_it_is_served_as_google_says(query: Any, indexes: list[Any], overrides: list[Any], is_served: bool) -> None:  # noqa: ANN401, FBT001
    """By direction, range, disjunctions and exemptions; what the rules do not cover is refused."""
    rules = Indexes.from_content({"indexes": indexes, "fieldOverrides": overrides})
    assert (rules.why_refused(query) is None) is is_served
