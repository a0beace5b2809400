"""The assistant over HTTP: who may have what, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.web.conftest import Call

TASK = {"handler": "assistant", "owner": "ada", "title": "Bikes", "purpose": "Say how the bikes sell"}


@pytest.mark.parametrize("more", [{}, {"payload": {"tools": ["greet"]}}, {"source": {"model": {"name": "small"}}}])
def test_where_it_is_off_it_is_refused_clearly(call: Call, more: dict[str, Any]) -> None:
    """With 400, the field, and the setting that turns it on; nothing is stored."""
    refused = call("POST", "/v1/tasks", {**TASK, **more})
    problem = refused.get_json()
    assert (refused.status_code, problem["field"]) == (400, "handler")
    assert "CLOUDSCHED_ASSISTANT=on" in str(problem)
    assert call("GET", "/v1/tasks").get_json()["tasks"] == []
