"""Every change of a task is answered with its receipt: by each verb, in each form, also where nothing is stored."""

from __future__ import annotations

from tests.verb_requests import REQUESTS
from tests.web.api.test_allowed_verbs import CHANGES
from tests.web.callers import GREETING
from tests.web.conftest import Call, create

from cloudsched.domain.documents.verbs import Verb
from cloudsched.testing import Simulation

DAILY = {"rrule": "FREQ=DAILY;BYHOUR=9", "dtstart": "2027-03-26T09:00:00", "timezone": "Europe/Paris"}


def test_each_verb_has_a_receipt(call: Call, sim: Simulation) -> None:
    """Of a task that is in a state in which it is allowed."""
    daily = {**GREETING, "schedule": {**DAILY, "dtstart": "2026-12-30T09:00:00"}}
    before = {Verb.RESUME: ["pause"], Verb.SNOOZE: ["trigger"], Verb.RETRY: ["trigger"], Verb.SEND_EVENT: []}
    tried = set()
    for verb, (_, end, body) in {**CHANGES, Verb.RETRY: ("POST", *REQUESTS[Verb.RETRY])}.items():
        if verb in {Verb.EDIT, Verb.DELETE}:
            continue
        task_id = call("POST", "/v1/tasks", daily).json["id"]
        for each in before.get(verb, []):
            call("POST", f"/v1/tasks/{task_id}/{each}")
            sim.run_until_idle()
        answer = call("POST", f"/v1/tasks/{task_id}{end}", body)
        if answer.status_code == 200:
            assert {"scheduled", "next", "doubts"} <= answer.json["receipt"].keys(), verb
            tried.add(verb)
    assert tried >= {Verb.PAUSE, Verb.RESUME, Verb.CANCEL, Verb.TRIGGER, Verb.SNOOZE, Verb.BACKFILL}


def test_a_schedule_without_a_zone_is_in_that_of_its_owner(call: Call) -> None:
    """In words, as cron and as a rule, and the answer says so. A zone that is given counts, and an edit keeps it."""
    call("PUT", "/v1/people/ada", {"timezone": "Asia/Tokyo"})
    rule = {"rrule": "FREQ=DAILY;BYHOUR=9", "dtstart": "2027-01-01T09:00:00"}
    told = "No time zone was given, so it is that of its owner, Asia/Tokyo."
    for schedule in ("every day at 9:00", "0 9 * * *", {"cron": "0 9 * * *"}, rule):
        made = create(call, schedule=schedule).json
        assert (made["timezone"], made["nextExecutionTime"]) == ("Asia/Tokyo", "2027-01-02T00:00:00Z"), schedule
        assert told in made["readBack"]["assumed"]
        assert call("POST", "/v1/tasks?validateOnly=true", {**GREETING, "schedule": schedule}).json["timezone"] == (
            "Asia/Tokyo"
        )
        moved = call("PATCH", f"/v1/tasks/{made['id']}", {"schedule": "every day at 10:00", "timezone": "Europe/Paris"})
        assert moved.json["timezone"] == "Europe/Paris"
        kept = call("PATCH", f"/v1/tasks/{made['id']}", {"schedule": rule}).json
        assert kept["timezone"] == "Europe/Paris"
        assert told not in kept["readBack"]["assumed"]
    for schedule in ("every day at 9:00 in Paris", "every day at 9:00 UTC", {**rule, "timezone": "UTC"}):
        made = create(call, schedule=schedule).json
        assert made["timezone"] != "Asia/Tokyo"
        assert told not in made["readBack"]["assumed"]
    assert create(call, owner="bob", schedule=rule).json["timezone"] == "UTC"
