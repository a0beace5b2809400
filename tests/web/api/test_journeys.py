"""Schedules that follow their owner, over HTTP: creation, edits, previews, feeds, and who may change the zone."""

from __future__ import annotations

from typing import Any

from tests.web.callers import MINUTE
from tests.web.conftest import Call, fetch

from cloudsched.testing import Simulation

AT_NINE = {"rrule": "FREQ=DAILY;BYHOUR=9", "timezone": "owner"}
TASK: dict[str, Any] = {
    "id": "t",
    "owner": "ada",
    "title": "Tea",
    "handler": "greet",
    "payload": {"name": "Ada"},
    "schedule": AT_NINE,
}


def be_in(call: Call, sim: Simulation, zone: str) -> None:
    answer = call("PUT", "/v1/people/ada", {"timezone": zone})
    assert answer.status_code < 300, answer.text
    assert "zoneRevision" not in answer.json
    sim.advance(2 * MINUTE)


def test_a_task_follows_and_says_so(call: Call, sim: Simulation) -> None:
    """What comes back has the zone that it is planned in, and can be sent again as it is."""
    refused = call("POST", "/v1/tasks", TASK)
    assert (refused.status_code, refused.get_json(force=True)["field"]) == (400, "schedule.timezone")
    be_in(call, sim, "Europe/Berlin")
    made = call("POST", "/v1/tasks", TASK).json
    assert made["schedule"] | {"timezone": "Europe/Berlin", "followsOwner": True} == made["schedule"]
    assert made["timezone"] == "Europe/Berlin"
    assert "It follows ada, who is in Europe/Berlin." in made["readBack"]["assumed"]
    be_in(call, sim, "Asia/Tokyo")
    moved = fetch(call, "/v1/tasks/t")
    assert (moved["timezone"], moved["nextExecutionTime"]) == ("Asia/Tokyo", "2027-01-02T00:00:00Z")
    again = call("PATCH", "/v1/tasks/t", {"schedule": made["schedule"]}).json
    assert (again["revision"], again["timezone"]) == (moved["revision"], "Asia/Tokyo")
    (first, *_) = fetch(call, "/v1/tasks/t/upcoming?count=1")["occurrences"]
    assert first["local"] == "2027-01-02T09:00:00+09:00"
    ics = call("GET", "/v1/tasks/t.ics").text
    assert "Follows its owner\\, in Asia/Tokyo now." in ics.replace("\r\n ", "")
    sentences = [each["sentence"] for each in fetch(call, "/v1/tasks/t/explain")["findings"]]
    assert "It follows ada from one time zone to another, and is in Asia/Tokyo." in sentences


def test_a_preview_is_where_the_owner_is(call: Call, sim: Simulation) -> None:
    """It says whom the schedule follows and where they are, or that nobody knows, and what a clock change moved."""
    unknown = call("POST", "/v1/schedules/preview", {"schedule": AT_NINE, "owner": "ada"}).json
    assert "is not known here" in unknown["assumptions"][0]
    be_in(call, sim, "Asia/Tokyo")
    for given in ({"schedule": AT_NINE}, {"schedule": "every day at 9, wherever I am"}):
        shown = call("POST", "/v1/schedules/preview", {**given, "owner": "ada", "count": 1}).json
        assert shown["occurrences"][0]["local"] == "2027-01-02T09:00:00+09:00"
        assert "It follows ada, who is in Asia/Tokyo." in shown["assumptions"]
        assert "wherever its owner is (Asia/Tokyo)" in shown["description"]
    gap = {"schedule": {"rrule": "FREQ=DAILY", "dtstart": "2027-03-28T02:30:00", "timezone": "Europe/Paris"}}
    (shown, *_) = call("POST", "/v1/schedules/preview", gap).json["occurrences"]
    assert shown["local"] == "2027-03-28T03:30:00+02:00"
