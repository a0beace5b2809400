"""Calendars and stored scripts over HTTP: who may have them, what is checked, and what is made of them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.conftest import Call, create, fetch

DAYS = {
    "title": "Closed",
    "days": [{"date": "2027-08-02", "until": "2027-08-20", "name": "Summer"}, {"date": "2027-12-24"}],
}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"days": [{"date": "2027-13-01"}]}, "days.0.date"),
        ({"days": [{"date": "2027-02-02", "until": "1801526400"}]}, "days.0.until"),
        ({"days": [{"date": "2027-02-02", "until": "2027-02-01"}]}, "days"),
        ({"days": [{"date": "2027-02-02"}], "ics": "BEGIN:VCALENDAR"}, "ics"),
        ({"ics": "hello"}, "ics"),
        ({"url": "http://169.254.169.254/a.ics"}, "url"),
        ({"holidays": {"country": "QQ"}}, "holidays"),
        ({}, "source"),
        ({"source": "return ("}, "source"),
        ({"source": "return 1", "tools": ["no-tool"]}, "tools.0"),
        ({"source": "return 1", "version": 7}, "version"),
        ({"source": "x" * 70_000}, "source"),
    ],
)
def test_a_wrong_calendar_or_script_is_refused_by_field(call: Call, body: dict[str, Any], field: str) -> None:
    """Nothing is stored, and the problem names the field."""
    path = f"/v1/{'scripts' if field == 'source' or 'source' in body else 'calendars'}/wrong"
    answer = call("PUT", path, body)
    assert (answer.status_code, answer.json.get("field")) == (400, field), answer.text
    assert call("GET", path).status_code == 404


def test_a_calendars_days_are_removed_only_on_purpose(call: Call) -> None:
    """A body without any days is refused while the calendar has some, and an empty list removes them."""
    call("PUT", "/v1/calendars/closed", DAYS)
    days = fetch(call, "/v1/calendars/closed")["days"]
    answer = call("PUT", "/v1/calendars/closed", {"title": "Closed for ever"})
    assert (answer.status_code, answer.json.get("field")) == (400, "days"), answer.text
    assert fetch(call, "/v1/calendars/closed")["days"] == days != []
    assert call("PUT", "/v1/calendars/closed", {"title": "Open", "days": []}).status_code == 200
    assert fetch(call, "/v1/calendars/closed")["days"] == []
    assert call("PUT", "/v1/calendars/closed", {"title": "Still open"}).status_code == 200


@pytest.mark.parametrize("name", ["a.b", "a%20b", "caf%C3%A9", "a" * 65, "weekends", "u0123456789abcdef-a"])
def test_a_name_that_a_calendar_cannot_have_is_refused(call: Call, name: str) -> None:
    """Names are 1 to 64 letters, digits, hyphens and underscores, and no one else's."""
    answer = call("PUT", f"/v1/calendars/{name}", DAYS)
    assert (answer.status_code, answer.json.get("field")) == (400, "id"), answer.text


def test_a_preview_and_a_task_respect_calendars_and_do_not_show_the_days(call: Call) -> None:
    """The preview's occurrences skip the days; the task's schedule names the calendar, and a copy of it can be sent."""
    call("PUT", "/v1/calendars/closed", DAYS)
    schedule = {"rrule": "FREQ=DAILY;BYHOUR=9", "dtstart": "2027-07-30T09:00:00", "calendars": [{"id": "closed"}]}
    preview = call("POST", "/v1/schedules/preview", {"schedule": schedule, "from": "2027-08-01T00:00:00Z", "count": 2})
    assert [each["utc"] for each in preview.json["occurrences"]] == [
        "2027-08-01T09:00:00Z",
        "2027-08-21T09:00:00Z",
    ]
    made = create(call, id="t", schedule=schedule).json
    assert made["schedule"]["calendars"] == [{"id": "closed", "on": "SKIP"}]
    changed = call("PATCH", "/v1/tasks/t", {"schedule": made["schedule"], "title": "Same"})
    assert changed.status_code == 200, changed.text
    forged = {**schedule, "calendars": [{"id": "closed", "content": "weekdays MO"}]}
    assert call("POST", "/v1/schedules/preview", {"schedule": forged}).status_code == 400


HELLO = {"source": "return `Hello ${input.name}`", "description": "Greets."}


def test_a_script_is_put_read_listed_and_deleted(call: Call) -> None:
    """It is read as it was put; a list leaves the sources out; after its deletion it is a 404."""
    made = call("PUT", "/v1/scripts/hello", {**HELLO, "owner": "ada"})
    content = made.json
    assert content.keys() == {"name", "owner", "description", "source", "version", "createdAt", "updatedAt"}
    assert (content["name"], content["owner"], content["version"]) == ("hello", "ada", 1)
    assert fetch(call, "/v1/scripts/hello?owner=ada") == content
    assert call("GET", "/v1/scripts/hello").status_code == 404
    (listed,) = fetch(call, "/v1/scripts?owner=ada")["scripts"]
    assert listed == {name: value for name, value in content.items() if name != "source"}
    assert call("PUT", "/v1/scripts/hello", {"source": "return 2", "owner": "ada"}).json["version"] == 2
    assert call("DELETE", "/v1/scripts/hello?owner=ada").status_code == 204
    assert call("GET", "/v1/scripts/hello?owner=ada").status_code == 404
    assert call("DELETE", "/v1/scripts/hello?owner=ada").status_code == 404


@pytest.mark.parametrize(
    "script", [{}, {"name": "a", "source": "return 1"}, {"name": "a b"}, {"name": "a", "version": 1}]
)
def test_a_task_has_a_source_or_a_name(call: Call, script: dict[str, Any]) -> None:
    """Neither, both, and what cannot be a name are refused."""
    answer = call("POST", "/v1/tasks", {"title": "T", "script": script})
    assert answer.status_code == 400, answer.text
