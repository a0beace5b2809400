"""Stored scripts over HTTP, through the client and on the command line: who may have them, and what is checked."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.callers import RoleHarness
from tests.web.conftest import Call

HELLO = {"source": "return `Hello ${input.name}`", "description": "Greets."}


def test_a_script_is_put_read_listed_and_deleted(call: Call) -> None:
    """It is read as it was put; a list leaves the sources out; after its deletion it is a 404."""
    made = call("PUT", "/v1/scripts/hello", {**HELLO, "owner": "ada"})
    assert made.status_code == 200, made.text
    content = made.get_json()
    assert content.keys() == {"name", "owner", "description", "source", "version", "createdAt", "updatedAt"}
    assert (content["name"], content["owner"], content["version"]) == ("hello", "ada", 1)
    assert call("GET", "/v1/scripts/hello?owner=ada").get_json() == content
    assert call("GET", "/v1/scripts/hello").status_code == 404
    (listed,) = call("GET", "/v1/scripts?owner=ada").get_json()["scripts"]
    assert listed == {name: value for name, value in content.items() if name != "source"}
    assert call("PUT", "/v1/scripts/hello", {"source": "return 2", "owner": "ada"}).get_json()["version"] == 2
    assert call("DELETE", "/v1/scripts/hello?owner=ada").status_code == 204
    assert call("GET", "/v1/scripts/hello?owner=ada").status_code == 404
    assert call("DELETE", "/v1/scripts/hello?owner=ada").status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "source"),
        ({"source": 1}, "source"),
        ({"source": "return ("}, "source"),
        ({"source": "return 1", "tools": ["no-tool"]}, "tools.0"),
        ({"source": "return 1", "version": 7}, "version"),
        ({"source": "return 1", "definedBy": None}, "definedBy"),
        ({"source": "x" * 70_000}, "source"),
    ],
)
def test_a_wrong_script_is_refused_by_field(call: Call, body: dict[str, Any], field: str) -> None:
    """Nothing is stored, and the problem names the field."""
    answer = call("PUT", "/v1/scripts/wrong", body)
    assert (answer.status_code, answer.get_json().get("field")) == (400, field), answer.text
    assert call("GET", "/v1/scripts/wrong").status_code == 404


def test_who_may_have_scripts(roles: RoleHarness) -> None:
    """Users have their own only, and neither see nor run nor remove another's; a viewer changes nothing."""
    assert roles.ask("ada", "PUT", "/v1/scripts/mine", HELLO).status_code == 200
    assert roles.ask("bob", "PUT", "/v1/scripts/mine", {**HELLO, "owner": "ada"}).status_code == 403
    assert roles.ask("viewer", "PUT", "/v1/scripts/mine", {**HELLO, "owner": "ada"}).status_code == 403
    assert roles.ask("bob", "GET", "/v1/scripts/mine").status_code == 404
    assert roles.ask("bob", "GET", "/v1/scripts/mine?owner=ada").status_code == 403
    assert roles.ask("bob", "GET", "/v1/scripts").get_json() == {"scripts": []}
    assert roles.ask("bob", "DELETE", "/v1/scripts/mine").status_code == 404
    task = {"title": "Theirs", "script": {"name": "mine"}}
    refused = roles.ask("bob", "POST", "/v1/tasks", task)
    assert (refused.status_code, refused.get_json()["field"]) == (400, "script.name")
    assert roles.ask("ada", "POST", "/v1/tasks", task).status_code == 201
    assert roles.ask("viewer", "GET", "/v1/scripts/mine?owner=ada").status_code == 200


@pytest.mark.parametrize(
    "script", [{}, {"name": "a", "source": "return 1"}, {"name": "a b"}, {"name": "a", "version": 1}]
)
def test_a_task_has_a_source_or_a_name(call: Call, script: dict[str, Any]) -> None:
    """Neither, both, and what cannot be a name are refused."""
    answer = call("POST", "/v1/tasks", {"title": "T", "script": script})
    assert answer.status_code == 400, answer.text
