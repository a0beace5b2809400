"""What a form reads back is what it saves; it begins with what is there; and an edit can be taken back."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from tests.dashboard.conftest import get, post, read_form, read_hidden

from cloudsched.local.stack import Stack

FRIDAYS = {"rrule": "FREQ=WEEKLY;BYDAY=FR;BYHOUR=9;BYMINUTE=0", "timezone": "Europe/Paris"}


def call(stack: Stack, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    answer = requests.request(method, f"{stack.url}{path}", json=body, timeout=60)
    assert answer.status_code < 300, answer.text
    content: dict[str, Any] = answer.json() if answer.text else {}
    return content


@pytest.fixture
def task(stack: Stack) -> Iterator[str]:
    """A task of Fridays that respects a calendar with the next of them."""
    calendar = {"days": [{"date": "2027-04-02", "name": "Good Friday"}]}
    call(stack, "PUT", "/v1/calendars/easter", calendar)
    schedule = {**FRIDAYS, "calendars": [{"id": "easter"}]}
    body = {"owner": "ada", "title": "Fridays", "handler": "echo", "payload": {"a": "1"}, "schedule": schedule}
    task_id = str(call(stack, "POST", "/v1/tasks", body)["id"])
    yield task_id
    call(stack, "DELETE", f"/v1/tasks/{task_id}")


def read_times(page: str) -> list[str]:
    """Return the instants that the form reads back."""
    return re.findall(r'<td>\s*<time datetime="([^"]+)"', page[page.index('id="preview"') :])


def check(url: str, **changes: str) -> str:
    page = post(url, read_form(get(url).text) | {"deliveryChannels": "WEB", **changes, "verb": "check"})
    assert page.status_code == 200
    return html.unescape(page.text)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"title": "Other"},
        {"timezone": "Asia/Tokyo"},
        {"schedule": "every friday at 10:00"},
        {"schedule": '{"rrule": "FREQ=WEEKLY;BYDAY=FR;BYHOUR=11;BYMINUTE=0"}'},
        {"schedule": '{"rrule": "FREQ=WEEKLY;BYDAY=FR;BYHOUR=11;BYMINUTE=0", "calendars": [{"id": "easter"}]}'},
    ],
    ids=str,
)
def test_what_is_read_back_is_what_is_saved(stack: Stack, ui: str, task: str, changes: dict[str, str]) -> None:
    """To the instant: with its calendars, which new words keep, and without them if a rule does not name them."""
    url = f"{ui}/tasks/{task}/edit"
    page = check(url, **changes)
    shown = read_times(page)
    saved = post(url, read_form(get(url).text) | {"deliveryChannels": "WEB", **changes, "verb": "save"})
    assert saved.status_code == 200
    upcoming = call(stack, "GET", f"/v1/tasks/{task}/upcoming?count=10")["occurrences"]
    assert shown == [each["local"] for each in upcoming]
    is_lost = changes.get("schedule", "").startswith("{") and "easter" not in changes["schedule"]
    assert ("It no longer follows the calendar easter" in page) == is_lost
    assert ("2027-04-02" in " ".join(shown)) == is_lost


def test_the_words_name_the_first_of_the_times_that_follow(stack: Stack, ui: str) -> None:
    """An interval counts from now, so that the first run is at once."""
    body = {"owner": "ada", "handler": "report", "schedule": FRIDAYS}
    task_id = call(stack, "POST", "/v1/tasks", body)["id"]
    page = check(f"{ui}/tasks/{task_id}/edit", schedule="every 3 hours")
    call(stack, "DELETE", f"/v1/tasks/{task_id}")
    told = re.search(r"every 3 hours, first on [^,]* at (\d\d:\d\d)", page[page.index('id="preview"') :])
    assert told
    assert told[1] == read_times(page)[0][11:16]


@pytest.mark.parametrize(
    "schedule",
    [
        {"local": "2028-04-01T10:00:00"},
        {"at": "2028-04-01T10:00:00Z"},
        {"dtstart": "2028-04-01T09:00:00", "rdates": ["2028-04-03T10:00:00"]},
        {"rrule": "FREQ=WEEKLY;INTERVAL=2", "dtstart": "2027-03-01T09:00:00"},
        {"rrule": "FREQ=DAILY;COUNT=5", "dtstart": "2028-03-01T09:00:00"},
        {"rrule": "FREQ=DAILY", "dtstart": "2028-03-01T09:00:00", "exdates": ["2028-03-03T09:00:00"]},
        {"rrule": "FREQ=DAILY", "dtstart": "2027-03-01T02:30:00", "gap": "SKIP"},
    ],
    ids=str,
)
def test_a_form_begins_with_words_where_they_mean_the_schedule(stack: Stack, ui: str, schedule: dict[str, Any]) -> None:
    """Those of the task's page. What no words say, such as a policy for clock changes, is JSON."""
    body = {"owner": "ada", "handler": "report", "schedule": {**schedule, "timezone": "Europe/Paris"}}
    task_id = call(stack, "POST", "/v1/tasks", body)["id"]
    words = read_form(get(f"{ui}/tasks/{task_id}/edit").text)["schedule"]
    assert words.startswith("{") == ("gap" in schedule)
    assert words.startswith("{") or words in html.unescape(re.sub("<[^>]*>", "", get(f"{ui}/tasks/{task_id}").text))
    call(stack, "DELETE", f"/v1/tasks/{task_id}")


def test_the_form_begins_with_what_is_there(stack: Stack, ui: str, task: str) -> None:
    """Words where the API reads them as the schedule, JSON where words say less; saving it as it is changes nothing.

    A paused task is read back as it would go on: nothing of it is due, which is not what its schedule means.
    """
    url = f"{ui}/tasks/{task}/edit"
    form = read_form(get(url).text)
    assert "easter" in form["schedule"]
    before = call(stack, "GET", f"/v1/tasks/{task}")
    assert "Nothing was changed." in post(url, form | {"verb": "save"}).text
    assert call(stack, "GET", f"/v1/tasks/{task}") == before
    call(stack, "PATCH", f"/v1/tasks/{task}", {"schedule": "every weekday at 9:00", "timezone": "Europe/Paris"})
    assert read_form(get(url).text)["schedule"] == 'every weekday at 09:00, except on days of "easter"'
    call(stack, "POST", f"/v1/tasks/{task}/pause")
    page = check(url)
    assert "It is paused. This applies once it is resumed." in page
    assert len(read_times(page)) == 10


def test_a_change_is_told_from_what_to_what_and_taken_back(stack: Stack, ui: str, task: str) -> None:
    """In words for schedules. A question says what would change from what to what, and its one button does it."""
    call(stack, "PATCH", f"/v1/tasks/{task}", {"schedule": "every monday at 8:00", "timezone": "Europe/Paris"})
    call(stack, "PATCH", f"/v1/tasks/{task}", {"title": "Mondays", "labels": ["a=b"], "payload": {"b": "2"}})
    page = html.unescape(get(f"{ui}/tasks/{task}").text)
    assert "every Friday at 09:00" in page
    assert "every Monday at 08:00" in page
    keys = re.findall(r'<li data-key="(\d+)">', page[page.index("History") :])
    assert keys == ["3", "2", "1"], "each has its own, also at one instant: a live page would drop others"
    links = [each.removeprefix("../") for each in re.findall(r'href="([^"]+/back/\d+)">Take it back', page)]
    assert len(links) == 2
    asked = get(f"{ui}/{links[0]}").text
    assert "stays as it is: Payload" in asked
    assert read_changes(asked) == [["Title", "Mondays", "Fridays"], ["Labels", "a=b", "none"]]
    assert "rrule" not in html.unescape(get(f"{ui}/{links[1]}").text), "a schedule is said in words"
    assert call(stack, "GET", f"/v1/tasks/{task}")["title"] == "Mondays", "nothing is saved by looking"
    assert "Taken back." in post(f"{ui}/{links[0]}", read_hidden(asked)).text
    assert "Nothing to take back" in get(f"{ui}/{links[0]}").text
    assert "edit of" not in get(f"{ui}/tasks/{task}/back/1").text, "that has created it"
    first = get(f"{ui}/{links[1]}")
    assert post(f"{ui}/{links[1]}", read_hidden(first.text)).status_code == 200
    now = call(stack, "GET", f"/v1/tasks/{task}")
    assert (now["title"], now.get("labels", []), now["schedule"]["calendars"]) == (
        "Fridays",
        [],
        [{"id": "easter", "on": "SKIP"}],
    )
    assert now["schedule"]["rrule"] == FRIDAYS["rrule"]


def test_an_edit_since_the_question_is_not_taken_back(stack: Stack, ui: str, task: str) -> None:
    """The page then shows what would change now; and there is no question about what nobody did."""
    call(stack, "PATCH", f"/v1/tasks/{task}", {"title": "Mondays"})
    url = f"{ui}/tasks/{task}/back/2"
    form = read_hidden(get(url).text)
    call(stack, "PATCH", f"/v1/tasks/{task}", {"title": "Tuesdays"})
    again = post(url, form)
    assert again.status_code == 412
    assert read_changes(again.text) == [["Title", "Tuesdays", "Fridays"]]
    assert call(stack, "GET", f"/v1/tasks/{task}")["title"] == "Tuesdays"
    assert get(f"{ui}/tasks/{task}/back/9").status_code == 404


def read_changes(page: str) -> list[list[str]]:
    """Return the rows of the question: each field, what it is now, and what it would be."""
    cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", page[page.index("<tbody>") : page.index("</tbody>")])
    return [cells[index : index + 3] for index in range(0, len(cells), 3)]
