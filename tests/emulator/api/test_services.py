"""The API's calls, over gRPC and over REST, by Google's own client; refusals as the real service words them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core import exceptions
from google.cloud import tasks_v2
from google.protobuf import json_format  # type: ignore[import-untyped]

from cloudsched.emulator import CloudTasksEmulator
from cloudsched.emulator.api import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.emulator.conftest import Client, Connect

LOCATION = "projects/demo/locations/us-central1"
QUEUE = f"{LOCATION}/queues/default"
START = datetime(2027, 1, 1, tzinfo=UTC)
URL = "http://127.0.0.1:9/"
LATER = START + timedelta(days=1)
TASK_FORM = "can contain only letters"


def waiting(**fields: Any) -> dict[str, Any]:
    return {"http_request": {"url": URL}, "schedule_time": LATER, **fields}


def test_our_messages_are_the_installed_clients_messages() -> None:
    """Every message that the client has is ours, field by field: number, type, name, repetition and oneof."""
    installed = tasks_v2.CreateTaskRequest.pb().DESCRIPTOR
    ours = messages.message_class("CreateTaskRequest").DESCRIPTOR
    seen: set[str] = set()

    def compare(theirs: Any, mine: Any) -> None:  # noqa: ANN401 - descriptors have no types
        if theirs.full_name in seen:
            return
        seen.add(theirs.full_name)
        assert mine.full_name == theirs.full_name
        for field in theirs.fields:
            same = mine.fields_by_name[field.name]
            assert (same.number, same.type, same.is_repeated) == (field.number, field.type, field.is_repeated), (
                field.full_name
            )
            oneofs = [one.containing_oneof.name if one.containing_oneof else "" for one in (field, same)]
            assert oneofs[0] == oneofs[1], field.full_name
            if field.message_type is not None:
                compare(field.message_type, same.message_type)
            if field.enum_type is not None:
                values = [[(value.name, value.number) for value in one.enum_type.values] for one in (field, same)]
                assert values[0] == values[1]

    compare(installed, ours)
    for name in dir(tasks_v2):
        kind = getattr(tasks_v2, name)
        if isinstance(kind, type(tasks_v2.Task)):
            compare(kind.pb().DESCRIPTOR, messages.message_class(kind.pb().DESCRIPTOR.full_name).DESCRIPTOR)
    assert len(seen) > 30


def test_a_queue_has_the_services_defaults(client: Client) -> None:
    name = f"{LOCATION}/queues/fresh"
    client.create_queue(parent=LOCATION, queue={"name": name})
    queue = client.get_queue(name=name)
    assert queue.state == tasks_v2.Queue.State.RUNNING
    assert queue.rate_limits.max_dispatches_per_second == 500
    assert queue.rate_limits.max_burst_size == 100
    assert queue.rate_limits.max_concurrent_dispatches == 1000
    assert queue.retry_config.max_attempts == 100
    assert queue.retry_config.max_doublings == 16
    assert queue.retry_config.min_backoff == timedelta(seconds=0.1)
    assert queue.retry_config.max_backoff == timedelta(hours=1)
    assert "max_retry_duration" not in queue.retry_config


def test_an_update_changes_what_its_mask_names(client: Client) -> None:
    retry = {"max_attempts": 7, "max_doublings": 0, "min_backoff": {"seconds": 3}}
    queue = {"name": QUEUE, "retry_config": retry, "rate_limits": {"max_dispatches_per_second": 0.5}, "state": 2}
    mask = {"paths": ["retry_config.max_attempts", "retry_config.max_doublings", "state"]}
    changed = client.update_queue(queue=queue, update_mask=mask)
    assert (changed.retry_config.max_attempts, changed.retry_config.max_doublings) == (7, 0)
    assert changed.retry_config.min_backoff == timedelta(seconds=0.1)
    assert changed.rate_limits.max_dispatches_per_second == 500
    assert changed.state == tasks_v2.Queue.State.RUNNING
    changed = client.update_queue(queue={"name": QUEUE}, update_mask={"paths": ["retry_config"]})
    assert (changed.retry_config.max_attempts, changed.retry_config.max_doublings) == (100, 16)


def test_an_update_creates_a_missing_queue(client: Client) -> None:
    name = f"{LOCATION}/queues/made-by-update"
    client.update_queue(queue={"name": name, "rate_limits": {"max_dispatches_per_second": 2}})
    assert client.get_queue(name=name).rate_limits.max_burst_size == 10


@pytest.mark.parametrize(
    ("queue", "paths"),
    [
        ({"rate_limits": {"max_dispatches_per_second": -1}}, ["rate_limits"]),
        ({"rate_limits": {"max_dispatches_per_second": 501}}, ["rate_limits"]),
        ({"rate_limits": {"max_concurrent_dispatches": 5001}}, ["rate_limits"]),
        ({"rate_limits": {"max_concurrent_dispatches": -1}}, ["rate_limits"]),
        ({"retry_config": {"max_attempts": -2}}, ["retry_config"]),
        ({"retry_config": {"max_doublings": -1}}, ["retry_config"]),
        ({"retry_config": {"min_backoff": {"seconds": -1}}}, ["retry_config"]),
        ({"stackdriver_logging_config": {"sampling_ratio": 1.5}}, ["stackdriver_logging_config"]),
        ({"http_target": {"uri_override": {"host": ""}}}, ["http_target"]),
        ({}, ["no_such_field"]),
        ({}, ["retry_config.no_such_field"]),
    ],
)
def test_a_wrong_update_is_refused_and_changes_nothing(client: Client, queue: dict[str, Any], paths: list[str]) -> None:
    before = client.get_queue(name=QUEUE)
    with pytest.raises(exceptions.BadRequest):
        client.update_queue(queue={"name": QUEUE, **queue}, update_mask={"paths": paths})
    assert client.get_queue(name=QUEUE) == before


RECORDED_QUEUE_REFUSALS = [
    ({"rate_limits": {"max_dispatches_per_second": -1}}, "RateLimits.maxDispatchesPerSecond cannot be negative."),
    (
        {"rate_limits": {"max_dispatches_per_second": 501}},
        "RateLimits.maxDispatchesPerSecond must be less than or equal to 500.",
    ),
    ({"rate_limits": {"max_concurrent_dispatches": -1}}, "RateLimits.maxConcurrentDispatches cannot be negative."),
    (
        {"rate_limits": {"max_concurrent_dispatches": 5001}},
        "RateLimits.maxConcurrentDispatches must be less than or equal to 5000.",
    ),
    ({"retry_config": {"max_attempts": -2}}, "RetryConfig.maxAttempts must be greater or equal to -1."),
    ({"retry_config": {"max_doublings": -1}}, "RetryConfig.maxDoublings cannot be negative."),
    ({"retry_config": {"min_backoff": {"seconds": -1}}}, "RetryConfig.minBackoff cannot be negative."),
    (
        {"retry_config": {"min_backoff": {"seconds": 20}, "max_backoff": {"seconds": 10}}},
        "RetryConfig.minBackoff must be less than or equal to RetryConfig.maxBackoff.",
    ),
]


@pytest.mark.parametrize(("fields", "message"), RECORDED_QUEUE_REFUSALS)
def test_recorded_refusals_of_a_queues_settings(client: Client, fields: dict[str, Any], message: str) -> None:
    """Creating and updating a queue give the texts that were recorded from the service."""
    new = f"{LOCATION}/queues/new"
    with pytest.raises(exceptions.BadRequest) as created:
        client.create_queue(parent=LOCATION, queue={"name": new, **fields})
    with pytest.raises(exceptions.BadRequest) as updated:
        client.update_queue(queue={"name": QUEUE, **fields}, update_mask={"paths": list(fields)})
    assert created.value.message.endswith(message)
    assert updated.value.message.endswith(message)
    assert [queue.name for queue in client.list_queues(parent=LOCATION)] == [QUEUE]


def test_the_minimum_backoff_stays_below_the_maximum_across_updates(client: Client) -> None:
    """A mask that names one of the two is checked against the other one's present value."""
    queue = {"name": QUEUE, "retry_config": {"min_backoff": {"seconds": 7200}}}
    with pytest.raises(exceptions.BadRequest, match="minBackoff must be less than or equal to"):
        client.update_queue(queue=queue, update_mask={"paths": ["retry_config.min_backoff"]})
    with pytest.raises(exceptions.BadRequest, match="minBackoff must be less than or equal to"):
        client.create_task(parent=QUEUE, task=waiting(retry_config=queue["retry_config"]))


def test_a_malformed_parent_is_a_project_without_permission(client: Client) -> None:
    """PERMISSION_DENIED with the details that were recorded, for each call with a parent."""
    parent = "not-a-valid-parent"
    calls: tuple[Callable[[], Any], ...] = (
        lambda: client.create_queue(parent=parent, queue={"name": f"{LOCATION}/queues/new"}),
        lambda: client.list_queues(parent=parent),
        lambda: client.create_task(parent=parent, task=waiting()),
        lambda: client.list_tasks(parent=parent),
    )
    for call in calls if client.transport.kind == "grpc" else ():  # the REST client refuses such a path by itself
        with pytest.raises(exceptions.PermissionDenied) as denied:
            call()
        message = "Permission denied on resource project not-a-valid-parent."
        assert denied.value.message == message
        info, localized, link = denied.value.details
        assert (info.reason, info.domain) == ("CONSUMER_INVALID", "googleapis.com")
        assert info.metadata["consumer"] == "projects/not-a-valid-parent"
        assert (localized.locale, localized.message) == ("en-US", message)
        assert link.links[0].url == "https://console.developers.google.com"


def test_malformed_names_link_to_their_definition(client: Client) -> None:
    """The refusal of a queue's name or a task's id carries a Help detail."""
    reference = "https://cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.queues"
    with pytest.raises(exceptions.BadRequest) as of_queue:
        client.create_queue(parent=LOCATION, queue={"name": f"{LOCATION}/queues/under_score"})
    with pytest.raises(exceptions.BadRequest) as of_task:
        client.create_task(parent=QUEUE, task=waiting(name=f"{QUEUE}/tasks/sp ace"))
    expected = (
        (of_queue, "Definition of queue name", f"{reference}#Queue.FIELDS.name"),
        (of_task, "Definition of task ID", f"{reference}.tasks#Task.FIELDS.name"),
    )
    for refused, description, url in expected:
        (detail,) = refused.value.details  # over REST the client leaves it as JSON
        links = (
            detail["links"] if isinstance(detail, dict) else [json_format.MessageToDict(each) for each in detail.links]
        )
        assert links == [{"description": description, "url": url}]


def test_recorded_refusals_that_name_what_was_sent(client: Client) -> None:
    """Both names of a mismatch are shown, and a schedule time in US Pacific time."""
    other = f"{LOCATION}/queues/other"
    with pytest.raises(exceptions.BadRequest) as mismatch:
        client.create_task(parent=QUEUE, task=waiting(name=f"{other}/tasks/t"))
    assert mismatch.value.message.endswith(
        f"The queue name from request ('{QUEUE}') must be the same as the queue name in the named task ('{other}')."
    )
    elsewhere = "projects/demo/locations/europe-west1/queues/q"
    with pytest.raises(exceptions.BadRequest) as parent:
        client.create_queue(parent=LOCATION, queue={"name": elsewhere})
    assert parent.value.message.endswith(f"{elsewhere} must begin with {LOCATION}.")
    with pytest.raises(exceptions.BadRequest) as far:
        client.create_task(parent=QUEUE, task=waiting(schedule_time=datetime(2030, 12, 1, 20, tzinfo=UTC)))
    assert far.value.message.endswith(
        "The Task.scheduleTime, 2030-12-01T12:00:00-08:00, is too far in the future. "
        "Schedule time must be no more than 720h in the future."
    )


def test_queues_are_listed_by_name_page_by_page(client: Client) -> None:
    for letter in "cab":
        client.create_queue(parent=LOCATION, queue={"name": f"{LOCATION}/queues/{letter}"})
    client.create_queue(parent=f"{LOCATION}1", queue={"name": f"{LOCATION}1/queues/elsewhere"})
    client.pause_queue(name=f"{LOCATION}/queues/b")
    pages = list(client.list_queues(request={"parent": LOCATION, "page_size": 2}).pages)
    assert [[queue.name[-1] for queue in page.queues] for page in pages] == [["a", "b"], ["c", "t"]]
    paused = client.list_queues(request={"parent": LOCATION, "filter": "state: PAUSED"})
    assert [queue.name[-1] for queue in paused] == ["b"]


def test_recorded_refusals_of_queues(client: Client) -> None:
    missing = f"{LOCATION}/queues/missing"
    no_queue = "Queue does not exist. If you just created the queue, wait at least a minute"
    with pytest.raises(exceptions.Conflict, match="Queue already exists"):
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})
    for name in ("nonsense", f"{LOCATION}/queues/under_score", f"{LOCATION}/queues/{'x' * 101}"):
        with pytest.raises(exceptions.BadRequest, match="Queue name must be formatted"):
            client.create_queue(parent=LOCATION, queue={"name": name})
    for call in (client.get_queue, client.pause_queue, client.resume_queue, client.purge_queue):
        with pytest.raises(exceptions.NotFound, match=no_queue):
            call(name=missing)
    with pytest.raises(exceptions.NotFound, match=no_queue):
        client.create_task(parent=missing, task=waiting())
    with pytest.raises(exceptions.NotFound, match="Requested entity was not found"):
        client.delete_queue(name=missing)
    client.delete_queue(name=QUEUE)
    with pytest.raises(exceptions.BadRequest, match="a queue with this name existed too recently"):
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})


def test_a_task_as_it_was_made(client: Client) -> None:
    """Cut to the second and to the microsecond; headers keep their case, the body shows only in the full view."""
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
    assert made.dispatch_deadline == timedelta(seconds=15)
    assert dict(made.http_request.headers) == {"User-Agent": "Google-Cloud-Tasks", "x-Mixed-CASE": "1"}
    assert made.view == tasks_v2.Task.View.BASIC
    assert made.http_request.body == b""
    full = client.get_task(request={"name": made.name, "response_view": tasks_v2.Task.View.FULL})
    assert full.http_request.body == b"\x00\xff"
    assert full.http_request.http_method == tasks_v2.HttpMethod.PUT
    assert full.view == tasks_v2.Task.View.FULL


def test_unset_and_past_schedule_times_become_now(client: Client) -> None:
    client.pause_queue(name=QUEUE)
    for fields in ({}, {"schedule_time": START - timedelta(days=400)}):
        task = client.create_task(parent=QUEUE, task={"http_request": {"url": URL}, **fields})
        assert task.schedule_time == START
        assert task.dispatch_deadline == timedelta(minutes=10)


def test_instants_are_cut_and_not_rounded(emulator: CloudTasksEmulator, client: Client) -> None:
    """create_time to the second, schedule_time to the microsecond."""
    emulator.clock.freeze(START + timedelta(seconds=7, microseconds=999_999))
    exact = {"seconds": int(LATER.timestamp()), "nanos": 123_456_999}
    task = client.create_task(parent=QUEUE, task=waiting(schedule_time=exact))
    assert task.create_time == START + timedelta(seconds=7)
    assert task.schedule_time == LATER + timedelta(microseconds=123_456)
    assert task.schedule_time.nanosecond == 123_456_000


def test_tasks_are_listed_page_by_page(client: Client) -> None:
    names = [client.create_task(parent=QUEUE, task=waiting()).name for _ in range(7)]
    pages = list(client.list_tasks(request={"parent": QUEUE, "page_size": 3}).pages)
    assert [len(page.tasks) for page in pages] == [3, 3, 1]
    assert [task.name for page in pages for task in page.tasks] == names
    with pytest.raises(exceptions.BadRequest):
        list(client.list_tasks(request={"parent": QUEUE, "page_token": "made-up"}))


def test_recorded_refusals_of_tasks(client: Client) -> None:
    taken = f"{QUEUE}/tasks/taken"
    client.create_task(parent=QUEUE, task=waiting(name=taken))
    with pytest.raises(exceptions.Conflict, match="Requested entity already exists"):
        client.create_task(parent=QUEUE, task=waiting(name=taken))
    client.delete_task(name=taken)
    with pytest.raises(exceptions.Conflict, match="Requested entity already exists"):
        client.create_task(parent=QUEUE, task=waiting(name=taken))
    with pytest.raises(exceptions.NotFound, match="a task with this name existed recently"):
        client.get_task(name=taken)
    for call in (client.get_task, client.delete_task, client.run_task):
        with pytest.raises(exceptions.NotFound, match="Requested entity was not found"):
            call(name=f"{QUEUE}/tasks/never")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"name": f"{QUEUE}/tasks/sp ace"}, TASK_FORM),
        ({"name": f"{QUEUE}/tasks/{'x' * 501}"}, TASK_FORM),
        ({"name": "nonsense"}, "Task name must be formatted"),
        ({"name": f"{LOCATION}/queues/other/tasks/t"}, "must be the same as the queue name in the named task"),
        ({"http_request": {"url": ""}}, "HttpRequest.url is required"),
        ({"http_request": {"url": "ftp://a/"}}, "must start with 'http://' or 'https://'"),
        ({"http_request": {"url": "http://"}}, "not a valid URL"),
        ({"http_request": {"url": "http://a:99999/"}}, "not a valid URL"),
        ({"http_request": {"url": f"http://a/{'x' * 2083}"}}, "2083"),
        ({"http_request": {"url": URL, "http_method": 2, "body": b"x"}}, "allowed only if"),
        ({"http_request": {"url": URL, "headers": {"bad name": "x"}}}, "header name"),
        ({"http_request": {"url": URL, "headers": {"a": "x\r\nEvil: 1"}}}, "line break"),
        ({"http_request": {"url": URL, "headers": {"a": "x" * 81 * 1024}}}, "80KB"),
        ({"http_request": {"url": URL, "body": b"x" * 1024 * 1024}}, "too large"),
        ({"schedule_time": START + timedelta(days=30, seconds=1)}, "no more than 720h"),
        ({"dispatch_deadline": {"seconds": 14}}, "15s, 30m"),
        ({"dispatch_deadline": {"seconds": 1801}}, "15s, 30m"),
        ({"retry_config": {"max_attempts": -2}}, "maxAttempts"),
        ({"http_request": None}, "exactly one of"),
        ({"http_request": None, "app_engine_http_request": {"relative_uri": "x"}}, "must begin with '/'"),
    ],
)
def test_a_wrong_task_is_refused_with_the_field(client: Client, fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(exceptions.BadRequest, match=problem):
        client.create_task(parent=QUEUE, task={**waiting(), **fields})
    assert not list(client.list_tasks(parent=QUEUE))


def test_thirty_days_ahead_is_not_too_far(client: Client) -> None:
    client.create_task(parent=QUEUE, task=waiting(schedule_time=START + timedelta(days=30)))


def test_a_missing_queue_is_created_if_that_was_asked_for(connect: Connect) -> None:
    with CloudTasksEmulator(auto_create_queues=True) as emulator:
        client = connect(emulator.address)
        client.create_task(parent=QUEUE, task={"http_request": {"url": URL}})
        assert client.get_queue(name=QUEUE).rate_limits.max_dispatches_per_second == 500


def test_purge_empties_the_queue_and_says_when(client: Client) -> None:
    name = client.create_task(parent=QUEUE, task=waiting()).name
    assert client.purge_queue(name=QUEUE).purge_time == START
    assert not list(client.list_tasks(parent=QUEUE))
    with pytest.raises(exceptions.NotFound):
        client.get_task(name=name)


def test_iam(client: Client) -> None:
    policy = client.get_iam_policy(request={"resource": QUEUE})
    policy.bindings.add(role="roles/cloudtasks.enqueuer", members=["user:a@example.com"])
    changed = client.set_iam_policy(request={"resource": QUEUE, "policy": policy})
    assert changed.bindings == policy.bindings
    assert client.get_iam_policy(request={"resource": QUEUE}) == changed
    with pytest.raises(exceptions.Conflict):
        client.set_iam_policy(request={"resource": QUEUE, "policy": policy})  # an old etag
    asked = ["cloudtasks.tasks.create"]
    assert client.test_iam_permissions(request={"resource": QUEUE, "permissions": asked}).permissions == asked


def test_locations(client: Client) -> None:
    found = {place.location_id for place in client.list_locations(request={"name": "projects/demo"}).locations}
    assert {"us-central1", "europe-west1"} <= found
    assert client.get_location(request={"name": LOCATION}).location_id == "us-central1"


def test_batches_do_what_they_can_and_say_what_they_could_not(client: Client) -> None:
    tasks = [waiting(name=f"{QUEUE}/tasks/{name}") for name in ("one", "two", "one")]
    requests = [{"parent": QUEUE, "task": task} for task in tasks]
    operation = client.batch_create_tasks(request={"parent": QUEUE, "requests": requests, "request_id": "r1"}).operation
    assert operation.done
    metadata = tasks_v2.BatchCreateTasksMetadata.pb()()
    operation.metadata.Unpack(metadata)
    assert (metadata.state, metadata.failed_requests[2].code) == (5, 6)
    assert len(list(client.list_tasks(parent=QUEUE))) == 2
    assert client.get_operation(request={"name": operation.name}).done
    names = [f"{QUEUE}/tasks/{name}" for name in ("one", "never")]
    client.batch_delete_tasks(request={"parent": QUEUE, "names": names})
    assert [task.name[-3:] for task in client.list_tasks(parent=QUEUE)] == ["two"]
    failed = client.batch_delete_tasks(request={"parent": QUEUE, "names": names}).operation
    assert failed.error.code == 10
    with pytest.raises(exceptions.BadRequest):
        client.batch_create_tasks(request={"parent": QUEUE, "requests": requests * 34})


def test_encryption_keys_are_remembered(client: Client) -> None:
    name = f"{LOCATION}/cmekConfig"
    key = "projects/demo/locations/us-central1/keyRings/a/cryptoKeys/b"
    client.update_cmek_config(request={"cmek_config": {"name": name, "kms_key": key}})
    assert client.get_cmek_config(name=name).kms_key == key
