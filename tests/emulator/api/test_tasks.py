"""Tasks by Google's own client, over gRPC and REST; errors have the texts that were recorded from the real service."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import tasks_v2
from tests.cases import try_each
from tests.emulator.conftest import LATER, LOCATION, QUEUE, START, URL, Client, make_task
from tests.instants import DAY, MINUTE, SECOND

from cloudsched.emulator import CloudTasksEmulator

TASK_FORM = "can contain only letters"


def test_a_task_is_returned_as_it_was_created(client: Client) -> None:
    """Header names keep their case, headers of Google's are dropped, and only the full view contains the body."""
    request = {
        "url": URL,
        "http_method": "PUT",
        "body": b"\x00\xff",
        "headers": {"x-Mixed-CASE": "1", "X-Google-A": "2"},
    }
    made = client.create_task(
        parent=QUEUE,
        task={
            "name": f"{QUEUE}/tasks/a_B-1",
            "http_request": request,
            "schedule_time": LATER,
            "dispatch_deadline": {"seconds": 15},
        },
    )
    assert made.name == f"{QUEUE}/tasks/a_B-1"
    assert made.create_time == START
    assert made.schedule_time == LATER
    assert made.dispatch_deadline == 15 * SECOND
    assert dict(made.http_request.headers) == {"User-Agent": "Google-Cloud-Tasks", "x-Mixed-CASE": "1"}
    assert made.view == tasks_v2.Task.View.BASIC
    assert made.http_request.body == b""
    full = client.get_task(request={"name": made.name, "response_view": tasks_v2.Task.View.FULL})
    assert full.http_request.body == b"\x00\xff"
    assert full.http_request.http_method == tasks_v2.HttpMethod.PUT
    assert full.view == tasks_v2.Task.View.FULL


def test_a_missing_or_past_schedule_time_becomes_now(client: Client) -> None:
    """The dispatch deadline is ten minutes unless the task sets one."""
    client.pause_queue(name=QUEUE)
    for fields in ({}, {"schedule_time": START - 400 * DAY}):
        task = client.create_task(parent=QUEUE, task={"http_request": {"url": URL}, **fields})
        assert task.schedule_time == START
        assert task.dispatch_deadline == 10 * MINUTE


def test_instants_are_truncated_not_rounded(emulator: CloudTasksEmulator, client: Client) -> None:
    """`create_time` is truncated to the second, `schedule_time` to the microsecond."""
    emulator.clock.freeze(START + timedelta(seconds=7, microseconds=999_999))
    exact = {"seconds": int(LATER.timestamp()), "nanos": 123_456_999}
    task = client.create_task(parent=QUEUE, task=make_task(schedule_time=exact))
    assert task.create_time == START + 7 * SECOND
    assert task.schedule_time == LATER + timedelta(microseconds=123_456)
    assert task.schedule_time.nanosecond == 123_456_000


def test_tasks_are_listed_page_by_page(client: Client) -> None:
    """Each task is listed once, in the order of creation; an invented page token is refused."""
    names = [client.create_task(parent=QUEUE, task=make_task()).name for _ in range(7)]
    pages = list(client.list_tasks(request={"parent": QUEUE, "page_size": 3}).pages)
    assert [len(page.tasks) for page in pages] == [3, 3, 1]
    assert [task.name for page in pages for task in page.tasks] == names
    with pytest.raises(exceptions.BadRequest):
        list(client.list_tasks(request={"parent": QUEUE, "page_token": "made-up"}))


def test_invalid_calls_on_tasks_fail_with_the_recorded_messages(client: Client) -> None:
    """Taken, recently deleted and missing names give the errors of the real service."""
    taken = f"{QUEUE}/tasks/taken"
    client.create_task(parent=QUEUE, task=make_task(name=taken))
    with pytest.raises(exceptions.Conflict, match="Requested entity already exists"):
        client.create_task(parent=QUEUE, task=make_task(name=taken))
    client.delete_task(name=taken)
    with pytest.raises(exceptions.Conflict, match="Requested entity already exists"):
        client.create_task(parent=QUEUE, task=make_task(name=taken))
    with pytest.raises(exceptions.NotFound, match="a task with this name existed recently"):
        client.get_task(name=taken)
    for call in (client.get_task, client.delete_task, client.run_task):
        with pytest.raises(exceptions.NotFound, match="Requested entity was not found"):
            call(name=f"{QUEUE}/tasks/never")


@try_each(
    "fields, problem",
    [
        ({"name": f"{QUEUE}/tasks/sp ace"}, TASK_FORM),
        ({"name": "nonsense"}, "Task name must be formatted"),
        ({"name": f"{LOCATION}/queues/other/tasks/t"}, "must be the same as the queue name in the named task"),
        ({"http_request": {"url": ""}}, "HttpRequest.url is required"),
        ({"http_request": {"url": "ftp://a/"}}, "must start with 'http://' or 'https://'"),
        ({"http_request": {"url": "http://a:99999/"}}, "not a valid URL"),
        ({"http_request": {"url": f"http://a/{'x' * 2083}"}}, "2083"),
        ({"http_request": {"url": URL, "http_method": 2, "body": b"x"}}, "allowed only if"),
        ({"http_request": {"url": URL, "headers": {"bad name": "x"}}}, "header name"),
        ({"http_request": {"url": URL, "headers": {"a": "x\r\nEvil: 1"}}}, "line break"),
        ({"http_request": {"url": URL, "headers": {"a": "x" * 81 * 1024}}}, "80KB"),
        ({"http_request": {"url": URL, "body": b"x" * 1024 * 1024}}, "too large"),
        ({"schedule_time": START + timedelta(days=30, seconds=1)}, "no more than 720h"),
        ({"dispatch_deadline": {"seconds": 14}}, "15s, 30m"),
        ({"retry_config": {"max_attempts": -2}}, "maxAttempts"),
        ({"http_request": None}, "must have an http_request"),
    ],
)
def test_an_invalid_task_is_refused(client: Client, fields: dict[str, Any], problem: str) -> None:
    """The error names what is wrong, and nothing is created."""
    with pytest.raises(exceptions.BadRequest, match=problem):
        client.create_task(parent=QUEUE, task={**make_task(), **fields})
    assert not list(client.list_tasks(parent=QUEUE))
