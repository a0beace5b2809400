"""``validateOnly``: the same checks and the same answer as the real request, and nothing is stored or sent."""

from __future__ import annotations

from tests.web.callers import GREETING
from tests.web.conftest import Call

from cloudsched.testing import Simulation

DAILY = {"rrule": "FREQ=DAILY;BYHOUR=9", "dtstart": "2027-03-26T09:00:00", "timezone": "Europe/Paris"}


def count_changes(sim: Simulation) -> tuple[int, int, int, int]:
    """Return how much has been written, deleted and sent so far."""
    counts = sim.counts
    return counts.commits, counts.writes, counts.deletes, counts.dispatches


def test_a_creation_is_only_checked(call: Call, sim: Simulation) -> None:
    """The answer is the task as it would be, with its next ten occurrences; nothing is written and nothing sent."""
    before = count_changes(sim)
    answer = call("POST", "/v1/tasks?validateOnly=true", {**GREETING, "id": "a", "schedule": DAILY})
    assert answer.status_code == 200, answer.text
    assert "Location" not in answer.headers
    shown = answer.json
    assert (shown["id"], shown["status"], len(shown["upcoming"])) == ("a", "ACTIVE", 10)
    assert shown["upcoming"][2]["local"] == "2027-03-28T09:00:00+02:00"
    assert count_changes(sim) == before
    assert call("GET", "/v1/tasks/a").status_code == 404
    made = call("POST", "/v1/tasks?validateOnly=false", {**GREETING, "id": "a", "schedule": DAILY})
    assert made.status_code == 201
    stored = made.json
    assert stored.pop("allowedVerbs")
    written = ("createdAt", "updatedAt", "statusChangedAt")
    assert stored["createdAt"] > shown["createdAt"]
    assert {**stored, "upcoming": shown["upcoming"]} == {**shown, **{name: stored[name] for name in written}}
