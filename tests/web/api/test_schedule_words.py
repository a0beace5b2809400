"""A schedule in plain words or as cron is accepted wherever the API takes one; ambiguous words get a question back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from werkzeug.test import TestResponse

Call = Callable[..., TestResponse]

TASK = {"owner": "ada", "title": "Tea", "handler": "greet", "payload": {"name": "Ada"}}
WEEKDAYS = {"schedule": "every weekday at 9:00", "timezone": "Europe/Paris"}


def create(call: Call, **fields: Any) -> dict[str, Any]:
    answer = call("POST", "/v1/tasks", {**TASK, **fields})
    assert answer.status_code == 201, answer.text
    task: dict[str, Any] = answer.get_json()
    return task


@pytest.mark.parametrize(
    "schedule",
    [
        WEEKDAYS,
        {"schedule": "0 9 * * 1-5", "timezone": "Europe/Paris"},
        {"schedule": {"cron": "0 9 * * 1-5", "timezone": "Europe/Paris"}},
    ],
)
def test_words_and_cron_become_the_schedule(call: Call, schedule: dict[str, Any]) -> None:
    """The times are those of the zone that was given."""
    task = create(call, **schedule)
    times = call("GET", f"/v1/tasks/{task['id']}/upcoming?count=2").get_json()["occurrences"]
    assert [each["local"][:16] for each in times] == ["2027-01-01T09:00", "2027-01-04T09:00"]
    assert task["schedule"]["timezone"] == "Europe/Paris"


def test_the_title_may_be_in_the_words(call: Call) -> None:
    """It is taken where the task has none. Beside a title it would be lost, so that the words are refused."""
    words = {"schedule": "remind me to call mum every Sunday at 6pm"}
    answer = call("POST", "/v1/tasks", {**{name: TASK[name] for name in ("owner", "handler", "payload")}, **words})
    assert answer.get_json()["title"] == "call mum"
    assert call("POST", "/v1/tasks", {**TASK, **words}).status_code == 400


def test_a_question_comes_back_with_its_readings(call: Call) -> None:
    """Each reading is a schedule that can be sent as it is; nothing was stored before one was chosen."""
    answer = call("POST", "/v1/tasks", {**TASK, "schedule": "every second Tuesday at 9:00"})
    problem = answer.get_json(force=True)
    assert (answer.status_code, problem["title"], problem["field"]) == (400, "Ambiguous schedule", "schedule")
    assert len(problem["readings"]) == 2
    assert call("GET", "/v1/tasks").get_json()["tasks"] == []
    descriptions = [create(call, schedule=each["schedule"])["schedule"] for each in problem["readings"]]
    assert descriptions[0] != descriptions[1]


def test_a_preview_says_what_it_assumed(call: Call) -> None:
    """Nothing is stored."""
    answer = call("POST", "/v1/schedules/preview", {"schedule": "every weekday at 9", "timezone": "Europe/Paris"})
    preview = answer.get_json()
    assert preview["description"].startswith("every weekday at 09:00")
    assert preview["assumptions"] == ["9:00 is in the morning."]
    assert preview["occurrences"][0]["local"].startswith("2027-01-01T09:00")


def test_the_language_is_said_or_found_out(call: Call) -> None:
    """`locale` names it, and settles the order of a date; without it the words tell, and an unknown one is refused."""
    german = create(call, schedule="jeden Montag um 9 Uhr", locale="de")
    assert german["schedule"]["rrule"] == "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0"
    assert german["readBack"]["description"].startswith("jeden Montag")
    found = create(call, schedule="tous les lundis à 9h")
    assert found["schedule"]["rrule"] == german["schedule"]["rrule"]
    assert "The words were read as French." in found["readBack"]["assumed"]
    american = create(call, schedule="every year on 03/04 at 9:00", locale="en-US")
    assert "BYMONTH=3" in american["schedule"]["rrule"]
    answer = call("POST", "/v1/tasks", {**TASK, "schedule": "every Monday at 9", "locale": "xx"})
    assert (answer.status_code, answer.get_json(force=True)["field"]) == (400, "locale")
    answer = call("POST", "/v1/tasks", {**TASK, "schedule": "jeden Montag um 9", "locale": "en"})
    assert answer.status_code == 400
    assert "German" in answer.get_data(as_text=True)
