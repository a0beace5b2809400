"""Schedules in words over HTTP: what is understood, and that every answer tells it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.callers import GREETING
from tests.web.conftest import Call, create, fetch

DAILY = {"rrule": "FREQ=DAILY;BYHOUR=9", "dtstart": "2027-03-26T09:00:00", "timezone": "Europe/Paris"}
NEXT = [f"2027-03-{day}T09:00:00+0{1 if day < 28 else 2}:00" for day in (26, 27, 28, 29, 30)]
TOLD = {
    "description": "every day at 09:00, first on Friday 26 March 2027, Europe/Paris",
    "isSummary": False,
    "next": NEXT,
    "timezone": "Europe/Paris",
    "assumed": [],
}
PROMISED = {"scheduled": True, "next": NEXT[:3], "dueBy": "2027-03-26T09:03:00+01:00", "doubts": []}


def test_creations_and_edits_tell_what_they_understood_and_promise(call: Call) -> None:
    """Alone, in a batch, only validated and repeated; what changes no schedule only promises, and a list does neither.

    A task says what it promises where it is asked for.
    """
    body = {**GREETING, "schedule": DAILY}
    made, again = (create(call, schedule=DAILY, id="tea").json for _ in range(2))
    checked = call("POST", "/v1/tasks?validateOnly=true", body).json
    batch = call("POST", "/v1/tasks/batchCreate", {"tasks": [body] * 2}).json["results"]
    for told in (made, again, checked, *(each["task"] for each in batch)):
        assert (told["readBack"], told["receipt"]) == (TOLD, PROMISED)
    path = f"/v1/tasks/{made['id']}"
    assert fetch(call, f"{path}?receipt=true")["receipt"] == PROMISED
    renamed = call("PATCH", path, {"title": "Coffee"}).json
    assert (renamed["receipt"], "readBack" in renamed) == (PROMISED, False)
    moved = call("PATCH", path, {"schedule": "an hour later"}).json
    assert moved["readBack"]["description"].startswith("every day at 10:00, ")
    later = call("PATCH", f"{path}?validateOnly=true", {"schedule": "make it 11:00"}).json
    assert later["readBack"]["next"][0][11:16] == "11:00"
    for shown in (fetch(call, path), fetch(call, f"{path}?receipt=false"), *fetch(call, "/v1/tasks")["tasks"]):
        assert not {"readBack", "receipt"} & shown.keys()


@pytest.mark.parametrize(
    ("fields", "assumed"),
    [
        ({"schedule": "every weekday at 14:00"}, ["No time zone was given, so it is UTC."]),
        ({"schedule": "every weekday at 9:00", "timezone": "Europe/Paris"}, ["9:00 is in the morning."]),
        ({"schedule": "0 9 * * 1"}, ["No time zone was given, so it is UTC."]),
        ({"schedule": {"at": "2027-02-01T09:00:00Z"}}, []),
        (
            {"schedule": {"rrule": "FREQ=DAILY;BYHOUR=9", "timezone": "UTC"}},
            ["No start was given, so it counts from {dtstart}."],
        ),
        ({}, ["No schedule was given, so it runs once."]),
        (
            {"schedule": "every day", "timezone": "UTC"},
            ["No time was given, so it is 9:00."],
        ),
    ],
)
def test_what_was_assumed_is_said(call: Call, fields: dict[str, Any], assumed: list[str]) -> None:
    """The zone, the time of day and the start, where the request left them open; and nothing that it said."""
    task = create(call, **fields).json
    expected = [each.format(dtstart=task["schedule"].get("dtstart")) for each in assumed]
    assert task["readBack"]["assumed"] == expected


def test_a_search_that_is_given_up_costs_the_read_back_and_not_the_task(call: Call) -> None:
    """A schedule whose second instant is too far away to be found is created, and told nothing of."""
    sparse = {"rrule": "FREQ=SECONDLY;INTERVAL=86413;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "dtstart": "2027-01-01T09:00:00"}
    answer = create(call, schedule=sparse)
    assert answer.status_code == 201
    assert "readBack" not in answer.json


def make(call: Call, **fields: Any) -> dict[str, Any]:
    answer = create(call, **fields)
    assert answer.status_code == 201, answer.text
    task: dict[str, Any] = answer.json
    return task


def test_the_title_may_be_in_the_words(call: Call) -> None:
    """It is taken where the task has none. Beside a title it would be lost, so that the words are refused."""
    words = {"schedule": "remind me to call mum every Sunday at 6pm"}
    answer = call("POST", "/v1/tasks", {**{name: GREETING[name] for name in ("owner", "handler", "payload")}, **words})
    assert answer.json["title"] == "call mum"
    assert create(call, **words).status_code == 400


def test_the_language_is_said_or_found_out(call: Call) -> None:
    """`locale` names it, and settles the order of a date; without it the words tell, and an unknown one is refused."""
    german = make(call, schedule="jeden Montag um 9 Uhr", locale="de")
    assert german["schedule"]["rrule"] == "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0"
    assert german["readBack"]["description"].startswith("jeden Montag")
    found = make(call, schedule="jeden Montag um 9 Uhr")
    assert found["schedule"]["rrule"] == german["schedule"]["rrule"]
    assert "Die Wörter wurden als Deutsch gelesen." in found["readBack"]["assumed"]
    assert found["readBack"]["description"] == german["readBack"]["description"]
    assert "Ohne Zeitzone gilt UTC." in found["readBack"]["assumed"]
    last = make(call, schedule="jeden fünften Montag im Monat um 14 Uhr", timezone="Etc/GMT-2")
    assert [each[:40] for each in last["readBack"]["assumed"] if "Deutsch" not in each] == [
        "Etc/GMT-2 ist UTC um 2 Stunden voraus.",
        "Es läuft nur in Monaten, die einen 5. Mo",
    ]
    american = make(call, schedule="every year on 03/04 at 9:00", locale="en-US")
    assert "BYMONTH=3" in american["schedule"]["rrule"]
    answer = create(call, schedule="every Monday at 9", locale="xx")
    assert (answer.status_code, answer.get_json(force=True)["field"]) == (400, "locale")
    answer = create(call, schedule="jeden Montag um 9", locale="en")
    assert answer.status_code == 400
    assert "German" in answer.get_data(as_text=True)
