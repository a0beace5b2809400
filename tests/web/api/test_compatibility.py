"""The API under ``/v1`` stays compatible with the last released one."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.web.api import compatibility
from tests.web.conftest import Call

Json = dict[str, Any]
RELEASED: Json = json.loads(compatibility.RELEASED.read_text("utf-8"))


def test_nothing_breaks_callers_of_the_released_api() -> None:
    """Nothing that a caller may send or read has gone; what is allowed to change is not looked at."""
    assert compatibility.find_breaks(RELEASED, compatibility.describe()) == []


BREAKS: dict[str, Callable[[Json], object]] = {
    "/v1/tasks get is gone": lambda api: api["paths"].pop("/v1/tasks get"),
    "no longer takes orderBy": lambda api: api["paths"]["/v1/tasks get"]["parameters"].pop(),
    "requires pageSize": lambda api: api["paths"]["/v1/tasks get"]["parameters"][0].update(required=True),
    ".labels is gone": lambda api: api["schemas"]["NewTask"]["properties"].pop("labels"),
    ".title is required": lambda api: api["schemas"]["NewTask"].update(required=["title"]),
    "no longer takes ['skip']": lambda api: api["schemas"]["Overlap"]["enum"].remove("skip"),
    "maxRetries has a stricter maximum": lambda api: api["schemas"]["RetryPolicyInput"]["properties"][
        "maxRetries"
    ].update(maximum=5),
    ".revision was integer, and is string": lambda api: api["schemas"]["Task"]["properties"].update(
        revision={"type": "string"}
    ),
    ".status may be missing": lambda api: api["schemas"]["Task"]["required"].remove("status"),
    ".attempts is gone": lambda api: api["schemas"]["Execution"]["properties"].pop("attempts"),
}


@pytest.mark.parametrize(("found", "change"), BREAKS.items(), ids=BREAKS)
def test_each_kind_of_break_is_found(change: Callable[[Json], None], found: str) -> None:
    """A change that a caller would notice is named with its place."""
    newer = copy.deepcopy(RELEASED)
    change(newer)
    breaks = compatibility.find_breaks(RELEASED, newer)
    assert any(found in each for each in breaks), breaks


def test_what_may_change_is_no_break() -> None:
    """New operations, optional fields, fields of answers and members of sets in answers are compatible."""
    newer = copy.deepcopy(RELEASED)
    newer["paths"]["/v1/moons get"] = newer["paths"]["/v1/tasks get"]
    newer["paths"]["/v1/tasks get"]["parameters"].append({"name": "moon", "in": "query", "schema": {"type": "string"}})
    newer["schemas"]["NewTask"]["properties"]["moon"] = {"type": "string"}
    newer["schemas"]["Task"]["properties"]["moon"] = {"type": "string"}
    newer["schemas"]["Verb"]["enum"].append("moon")
    newer["schemas"]["RetryPolicyInput"]["properties"]["maxRetries"]["maximum"] = 500
    assert compatibility.find_breaks(RELEASED, newer) == []


def test_a_task_may_have_the_name_of_a_method(call: Call, greeting: Json) -> None:
    """An id such as ``draft`` still names a task: only POST is the method's."""
    assert call("POST", "/v1/tasks", {**greeting, "id": "draft"}).status_code == 201
    assert call("GET", "/v1/tasks/draft").get_json()["id"] == "draft"
    assert call("POST", "/v1/tasks/draft/pause").get_json()["status"] == "PAUSED"
    assert call("DELETE", "/v1/tasks/draft").status_code == 204
