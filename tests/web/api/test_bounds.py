"""A time that ends before it begins is refused: nothing is in it, which would read as if there were nothing."""

from __future__ import annotations

from tests.web.conftest import Call, create

from cloudsched.web.api.operations import OPERATIONS

LATER, EARLIER = "2027-01-02T00:00:00Z", "2027-01-01T00:00:00Z"


def test_every_list_and_count_refuses_an_end_before_its_beginning(call: Call) -> None:
    task = create(call).json["id"]
    fields = {each: each.query.model_fields for each in OPERATIONS if each.method == "GET" and each.query is not None}
    bounded = [each for each, names in fields.items() if {"since", "until"} <= names.keys()]
    assert len(bounded) > 5, "hardly anything was tried"
    for each in bounded:
        query = {"from": LATER, "until": EARLIER}
        refused = call("GET", each.path.replace("{taskId}", task), query_string=query)
        assert refused.status_code == 400, each.name
        assert "from" in refused.text
        found = call("GET", each.path.replace("{taskId}", task), query_string={"from": EARLIER, "until": LATER})
        assert found.status_code == 200, each.name
