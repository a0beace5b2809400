"""Many tasks at once: the count comes first, and nothing happens if it is another one by then."""

from __future__ import annotations

import re
import uuid

import pytest
import requests
from tests.dashboard.conftest import ATTACK, get, post, read_hidden, send

from cloudsched.local.stack import Stack


@pytest.fixture
def label(stack: Stack) -> str:
    """A label that three tasks of this test have."""
    label = f"lot=l{uuid.uuid4().hex[:12]}"
    for number in range(3):
        add_task(stack, label, number)
    return label


def add_task(stack: Stack, label: str, number: int) -> None:
    task = {
        "id": f"{label[4:]}-{number}",
        "owner": "ada",
        "title": f"{label} {ATTACK}",
        "handler": "report",
        "labels": [label],
        "schedule": {"rrule": "FREQ=DAILY", "dtstart": "2030-01-01T09:00:00", "timezone": "UTC"},
    }
    response = send(f"{stack.url}/v1/tasks", task)
    assert response.status_code == 201, response.text


def statuses(stack: Stack, label: str) -> list[str]:
    return [each["status"] for each in get(f"{stack.url}/v1/tasks", label=label).json()["tasks"]]


def test_the_list_leads_to_the_count(ui: str, label: str) -> None:
    """The filters of the list are taken over; each task can be ticked."""
    text = get(f"{ui}/tasks", label=label).text
    bar = text[text.index('id="bulk"') :]
    assert f'name="label" value="{label}"' in bar[: bar.index("</form>")]
    assert text.count('form="bulk" name="ids"') == 3


def test_an_action_is_named_in_words(stack: Stack, ui: str) -> None:
    """On its page and in the list: its filters are those of the API, with an ISO instant and a status in capitals."""
    body = {"action": "PAUSE", "filter": {"status": "ACTIVE", "dueFrom": "2041-01-01T00:00:00Z"}}
    answer = send(f"{stack.url}/v1/tasks/batchChange", body)
    assert answer.ok, answer.text
    action = answer.json()["id"]
    for path in (f"actions/{action}", "actions"):
        text = get(f"{ui}/{path}").text.replace("\N{NO-BREAK SPACE}", " ")
        assert re.search("Status.{0,20}Active", text), path
        assert "Tue 01 Jan 2041 00:00 +0000" in text
    here = {"cloudsched-zone": "Asia/Tokyo"}  # the viewer's zone, and not that of the task that runs it
    page = requests.get(f"{ui}/actions/{action}", cookies=here, timeout=60).text
    assert "Times in Asia/Tokyo<" in page


@pytest.mark.parametrize("typed", ["", "2", "30", "three", "-3"])
def test_deleting_asks_for_the_number(stack: Stack, ui: str, label: str, typed: str) -> None:
    """Anything else than the number deletes nothing."""
    form = read_hidden(get(f"{ui}/bulk", action="delete", label=label).text)
    page = post(f"{ui}/bulk", {**form, "typed": typed})
    assert page.status_code == 400
    assert "Nothing was done." in page.text
    assert len(statuses(stack, label)) == 3
