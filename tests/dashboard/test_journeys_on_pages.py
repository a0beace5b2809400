"""The pages say whom a task follows, and their form keeps it so."""

from __future__ import annotations

import requests
from tests.dashboard.conftest import get, post, read_form, send

from cloudsched.local.stack import Stack


def test_the_page_says_whom_a_task_follows_and_an_edit_keeps_it_following(stack: Stack) -> None:
    """With the zone in which the owner is now. The form has `owner` as the zone, also with another schedule."""
    assert requests.put(f"{stack.url}/v1/people/ada", json={"timezone": "Asia/Tokyo"}, timeout=60).status_code == 201
    schedule = {"rrule": "FREQ=DAILY;BYHOUR=9", "timezone": "owner"}
    made = {"id": "kept", "owner": "ada", "title": "Tea", "handler": "report", "schedule": schedule}
    before = send(f"{stack.url}/v1/tasks", made).json()["schedule"]
    page = f"{stack.url}/ui/tasks/kept"
    text = get(page).text
    assert "follows ada (Asia/Tokyo)" in text
    assert "wherever its owner is (Asia/Tokyo)" in text
    for name, value in (("title", "Green tea"), ("schedule", "every day at 10:00")):
        form = read_form(get(f"{page}/edit").text)
        assert form["timezone"] == "owner"
        saved = post(f"{page}/edit", {**form, name: value, "verb": "save"})
        assert saved.status_code == 200, saved.text
        after = get(f"{stack.url}/v1/tasks/kept").json()["schedule"]
        assert (after == before) == (name == "title")
        assert (after["followsOwner"], after["timezone"]) == (True, "Asia/Tokyo")
