"""``validateOnly``: the same checks and the same answer as the real request, and nothing is stored or sent."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.conftest import Call

from cloudsched.testing import Simulation

DAILY = {"rrule": "FREQ=DAILY;BYHOUR=9", "dtstart": "2027-03-26T09:00:00", "timezone": "Europe/Paris"}


def count_changes(sim: Simulation) -> tuple[int, int, int, int]:
    """Return how much has been written, deleted and sent so far."""
    counts = sim.counts
    return counts.commits, counts.writes, counts.deletes, counts.dispatches


def test_a_creation_is_only_checked(call: Call, sim: Simulation, greeting: dict[str, Any]) -> None:
    """The answer is the task as it would be, with its next ten occurrences; nothing is written and nothing sent."""
    before = count_changes(sim)
    answer = call("POST", "/v1/tasks?validateOnly=true", {**greeting, "id": "a", "schedule": DAILY})
    assert answer.status_code == 200, answer.text
    assert "Location" not in answer.headers
    shown = answer.get_json()
    assert (shown["id"], shown["status"], len(shown["upcoming"])) == ("a", "ACTIVE", 10)
    assert shown["upcoming"][2]["local"] == "2027-03-28T09:00:00+02:00"
    assert count_changes(sim) == before
    assert call("GET", "/v1/tasks/a").status_code == 404
    made = call("POST", "/v1/tasks?validateOnly=false", {**greeting, "id": "a", "schedule": DAILY})
    assert made.status_code == 201
    stored = made.get_json()
    assert stored.pop("allowedVerbs")
    written = ("createdAt", "updatedAt", "statusChangedAt")
    assert stored["createdAt"] > shown["createdAt"]
    assert {**stored, "upcoming": shown["upcoming"]} == {**shown, **{name: stored[name] for name in written}}


def test_an_edit_is_only_checked(call: Call, sim: Simulation, greeting: dict[str, Any]) -> None:
    """By PATCH, or by creating it again; also one that changes nothing."""
    call("POST", "/v1/tasks", {**greeting, "id": "a", "schedule": DAILY})
    before = count_changes(sim)
    bodies: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("PATCH", "/v1/tasks/a", {"title": "Other", "schedule": "every weekday at 10"}),
        ("POST", "/v1/tasks", {**greeting, "id": "a", "title": "Other"}),
        ("PATCH", "/v1/tasks/a", {}),
    )
    for method, path, body in bodies:
        answer = call(method, f"{path}?validateOnly=true", body)
        assert answer.status_code == 200, answer.text
        assert answer.get_json()["title"] == body.get("title", "Greet")
        assert count_changes(sim) == before


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"handler": "none"}, 400),
        ({"payload": {"nam": "Ada"}}, 400),
        ({"schedule": "every blue moon"}, 400),
    ],
    ids=str,
)
def test_what_is_refused_is_refused_alike(
    call: Call, greeting: dict[str, Any], change: dict[str, Any], status: int
) -> None:
    """With the same words."""
    answers = [call("POST", f"/v1/tasks{query}", {**greeting, **change}) for query in ("", "?validateOnly=true")]
    assert [answer.status_code for answer in answers] == [status, status]
    assert answers[0].text == answers[1].text
    assert call("POST", "/v1/tasks?validateOnly=yes", greeting).status_code == 400
