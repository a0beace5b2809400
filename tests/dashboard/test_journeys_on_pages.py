"""The pages say whom a task follows, and their form keeps it so."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from tests.dashboard.conftest import get, post, read_form, send

from cloudsched.local.stack import Stack


@pytest.fixture(scope="module", autouse=True)
def _zone_of_ada(stack: Stack) -> None:
    known = requests.put(f"{stack.url}/v1/people/ada", json={"timezone": "Asia/Tokyo"}, timeout=60)
    assert known.status_code == 201


def make(stack: Stack, task_id: str) -> dict[str, Any]:
    schedule = {"rrule": "FREQ=DAILY;BYHOUR=9", "timezone": "owner"}
    made = {"id": task_id, "owner": "ada", "title": "Tea", "handler": "report", "schedule": schedule}
    answer = send(f"{stack.url}/v1/tasks", made)
    assert answer.status_code == 201, answer.text
    task: dict[str, Any] = answer.json()
    return task


def edit(stack: Stack, task_id: str, **changes: str) -> dict[str, Any]:
    url = f"{stack.url}/ui/tasks/{task_id}/edit"
    form = read_form(get(url).text)
    assert form["timezone"] == "owner"
    saved = post(url, {**form, **changes, "verb": "save"})
    assert saved.status_code == 200, saved.text
    task: dict[str, Any] = get(f"{stack.url}/v1/tasks/{task_id}").json()
    return task


def test_the_page_says_whom_a_task_follows(stack: Stack) -> None:
    """With the zone in which the owner is now, in which the next occurrences are shown."""
    make(stack, "shown")
    text = get(f"{stack.url}/ui/tasks/shown").text
    assert "follows ada (Asia/Tokyo)" in text
    assert "wherever its owner is (Asia/Tokyo)" in text


def test_an_edit_of_something_else_keeps_it_following(stack: Stack) -> None:
    """The form has `owner` as the zone: saved again it changes nothing, also with another schedule."""
    before = make(stack, "kept")
    assert edit(stack, "kept", title="Green tea")["schedule"] == before["schedule"]
    changed = edit(stack, "kept", schedule="every day at 10:00")["schedule"]
    assert (changed["followsOwner"], changed["timezone"]) == (True, "Asia/Tokyo")
