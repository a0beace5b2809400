"""The API under ``/v1`` stays compatible with the last released one, and says what of it is deprecated."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.web.api import compatibility
from tests.web.conftest import Call

from cloudsched.web.api.operations import OPERATIONS

Json = dict[str, Any]
RELEASED: Json = json.loads(compatibility.RELEASED.read_text("utf-8"))
ALIASES = {older: operation.path for operation in OPERATIONS for older, _ in operation.deprecated_paths}


def test_nothing_breaks_callers_of_the_released_api() -> None:
    """Nothing that a caller may send or read has gone; what is allowed to change is not looked at."""
    assert compatibility.find_breaks(RELEASED, compatibility.describe(), ALIASES) == []


def _drop_path(api: Json) -> None:
    del api["paths"]["/v1/tasks get"]


def _drop_parameter(api: Json) -> None:
    api["paths"]["/v1/tasks get"]["parameters"].pop()


def _require_parameter(api: Json) -> None:
    api["paths"]["/v1/tasks get"]["parameters"][0]["required"] = True


def _drop_field(api: Json) -> None:
    del api["schemas"]["NewTask"]["properties"]["labels"]


def _require_field(api: Json) -> None:
    api["schemas"]["NewTask"]["required"] = ["title"]


def _drop_choice(api: Json) -> None:
    api["schemas"]["Overlap"]["enum"].remove("skip")


def _lower_limit(api: Json) -> None:
    api["schemas"]["RetryPolicyInput"]["properties"]["maxRetries"]["maximum"] = 5


def _change_type(api: Json) -> None:
    api["schemas"]["Task"]["properties"]["revision"] = {"type": "string"}


def _omit_answer(api: Json) -> None:
    api["schemas"]["Task"]["required"].remove("status")


def _drop_answer(api: Json) -> None:
    del api["schemas"]["Execution"]["properties"]["attempts"]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (_drop_path, "/v1/tasks get is gone"),
        (_drop_parameter, "no longer takes orderBy"),
        (_require_parameter, "requires pageSize"),
        (_drop_field, ".labels is gone"),
        (_require_field, ".title is required"),
        (_drop_choice, "no longer takes ['skip']"),
        (_lower_limit, "maxRetries has a stricter maximum"),
        (_change_type, ".revision was integer, and is string"),
        (_omit_answer, ".status may be missing"),
        (_drop_answer, ".attempts is gone"),
    ],
)
def test_each_kind_of_break_is_found(change: Callable[[Json], None], found: str) -> None:
    """A change that a caller would notice is named with its place."""
    newer = copy.deepcopy(RELEASED)
    change(newer)
    breaks = compatibility.find_breaks(RELEASED, newer, ALIASES)
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
    assert compatibility.find_breaks(RELEASED, newer, ALIASES) == []


def test_deprecated_paths_work_and_say_so(call: Call, greeting: Json) -> None:
    """They answer as their successors do, with `Deprecation` (RFC 9745) and the successor; these have neither."""
    older = call("POST", "/v1/tasks:batchCreate", {"tasks": [greeting]})
    newer = call("POST", "/v1/tasks/batchCreate", {"tasks": [greeting]})
    assert (older.status_code, newer.status_code) == (200, 200)
    assert older.headers["Deprecation"] == "@1795392000"
    assert older.headers["Link"] == '</v1/tasks/batchCreate>; rel="successor-version"'
    assert not {"Deprecation", "Link"} & set(newer.headers.keys())


def test_a_task_may_have_the_name_of_a_method(call: Call, greeting: Json) -> None:
    """An id such as ``draft`` still names a task: only POST is the method's."""
    assert call("POST", "/v1/tasks", {**greeting, "id": "draft"}).status_code == 201
    assert call("GET", "/v1/tasks/draft").get_json()["id"] == "draft"
    assert call("POST", "/v1/tasks/draft/pause").get_json()["status"] == "PAUSED"
    assert call("DELETE", "/v1/tasks/draft").status_code == 204
    assert call("OPTIONS", "/v1/tasks/draft").headers["Allow"] == "POST"
