"""v2beta3 and v2beta2 with Google's own clients, over gRPC and REST."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import grpc  # type: ignore[import-untyped]
import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import tasks_v2beta2, tasks_v2beta3

from cloudsched.emulator.api import messages

if TYPE_CHECKING:
    from types import ModuleType

    from tests.emulator.conftest import Client, Http, Target

    from cloudsched.emulator import CloudTasksEmulator

LOCATION = "projects/demo/locations/us-central1"
QUEUE = f"{LOCATION}/queues/default"
LATER = datetime(2027, 1, 2, tzinfo=UTC)


def connect(module: ModuleType, transport: str, address: str) -> Client:
    """Return the client of a version."""
    kind = module.CloudTasksClient.get_transport_class(transport)
    if transport == "grpc":
        return module.CloudTasksClient(transport=kind(channel=grpc.insecure_channel(address)))
    anonymous = AnonymousCredentials()  # type: ignore[no-untyped-call]
    return module.CloudTasksClient(transport=kind(host=address, url_scheme="http", credentials=anonymous))


@pytest.fixture(params=["grpc", "rest"])
def beta3(emulator: CloudTasksEmulator, request: pytest.FixtureRequest) -> Client:
    return connect(tasks_v2beta3, request.param, emulator.address)


@pytest.fixture(params=["grpc", "rest"])
def beta2(emulator: CloudTasksEmulator, request: pytest.FixtureRequest) -> Client:
    return connect(tasks_v2beta2, request.param, emulator.address)


@pytest.mark.parametrize("module", [tasks_v2beta3, tasks_v2beta2])
def test_messages_have_the_fields_of_the_installed_client(module: ModuleType) -> None:
    """Every field of every message of that version which we use has the same number, type and repetition."""
    compared = 0
    for kind in (getattr(module, name) for name in dir(module)):
        if not isinstance(kind, type(tasks_v2beta3.Task)):
            continue
        theirs = kind.pb().DESCRIPTOR
        if messages.has_message(theirs.full_name):
            compared += 1
            ours = messages.message_class(theirs.full_name).DESCRIPTOR.fields_by_number
            for field in theirs.fields:
                own = ours[field.number]
                assert (own.type, own.is_repeated) == (field.type, field.is_repeated), field.full_name
                assert own.name == field.name.rstrip("_")
    assert compared > 10


def test_v2beta3_has_queues_with_an_http_target(beta3: Client, emulator: CloudTasksEmulator, target: Target) -> None:
    """Google's sample for HTTP queues works: a queue with a target, and a task that has only a body."""
    host, port = target.url.removeprefix("http://").split(":")
    override = {"uri_override": {"scheme": "HTTP", "host": host, "port": int(port)}}
    queue = beta3.create_queue(
        parent=LOCATION,
        queue={
            "name": f"{LOCATION}/queues/http",
            "http_target": override,
            "app_engine_http_queue": {"app_engine_routing_override": {"service": "s"}},
        },
    )
    assert queue.type_ == tasks_v2beta3.Queue.Type.PUSH
    assert queue.http_target.uri_override.host == host
    assert queue.app_engine_http_queue.app_engine_routing_override.service == "s"
    assert queue.retry_config.max_attempts == 100
    task = beta3.create_task(parent=queue.name, task={"http_request": {"body": b"hi"}, "schedule_time": LATER})
    assert beta3.get_task(name=task.name).schedule_time == LATER
    assert [each.name for each in beta3.list_tasks(parent=queue.name)] == [task.name]
    emulator.advance(timedelta(days=1))
    assert [hit.body for hit in target.hits] == [b"hi"]
    retry = {"max_attempts": 7}
    changed = beta3.update_queue(
        queue={"name": queue.name, "retry_config": retry}, update_mask={"paths": ["retry_config.max_attempts"]}
    )
    assert changed.retry_config.max_attempts == 7
    assert beta3.pause_queue(name=queue.name).state == tasks_v2beta3.Queue.State.PAUSED
    assert {each.name for each in beta3.list_queues(parent=LOCATION)} == {QUEUE, queue.name}
    with pytest.raises(exceptions.NotFound):
        beta3.get_task(name=task.name)


def test_v2beta3_has_batches(beta3: Client) -> None:
    """The metadata and the response of the operation are messages of that version."""
    task = {"http_request": {"url": "http://127.0.0.1:9/"}, "schedule_time": LATER}
    requests = [{"parent": QUEUE, "task": task}]
    operation = beta3.batch_create_tasks(request={"parent": QUEUE, "requests": requests}).operation
    metadata, response = tasks_v2beta3.BatchCreateTasksMetadata.pb()(), tasks_v2beta3.BatchCreateTasksResponse.pb()()
    assert operation.metadata.Unpack(metadata)
    assert operation.response.Unpack(response)
    assert response.tasks[0].http_request.url == "http://127.0.0.1:9/"


def test_v2beta2_has_its_own_field_names(beta2: Client, emulator: CloudTasksEmulator) -> None:
    """Rates, attempts, App Engine requests and the status have other names than in v2."""
    limits = {"max_tasks_dispatched_per_second": 5, "max_concurrent_tasks": 6}
    queue = beta2.create_queue(
        parent=LOCATION,
        queue={"name": f"{LOCATION}/queues/b2", "rate_limits": limits, "retry_config": {"unlimited_attempts": True}},
    )
    assert (queue.rate_limits.max_tasks_dispatched_per_second, queue.rate_limits.max_concurrent_tasks) == (5, 6)
    assert queue.retry_config.unlimited_attempts is True
    changed = beta2.update_queue(
        queue={"name": queue.name, "rate_limits": {"max_concurrent_tasks": 9}},
        update_mask={"paths": ["rate_limits.max_concurrent_tasks"]},
    )
    assert changed.rate_limits.max_concurrent_tasks == 9
    request = {"relative_url": "/x", "payload": b"hi"}
    task = beta2.create_task(parent=queue.name, task={"app_engine_http_request": request, "schedule_time": LATER})
    assert task.app_engine_http_request.relative_url == "/x"
    emulator.advance(timedelta(days=1))
    assert beta2.get_task(name=task.name).status.attempt_dispatch_count == 1
    page = beta2.list_tasks(request={"parent": queue.name, "page_size": 1, "response_view": 2})
    assert [each.app_engine_http_request.payload for each in page] == [b"hi"]


def test_pull_queues_are_refused(beta2: Client) -> None:
    with pytest.raises(exceptions.BadRequest, match="not emulated"):
        beta2.create_queue(parent=LOCATION, queue={"name": f"{LOCATION}/queues/pull", "pull_target": {}})


def test_the_beta_versions_write_enums_as_numbers_on_request(http: Http) -> None:
    """Generated REST clients send and expect numbers for all enums, including a queue's type."""
    path = f"/v2beta3/{LOCATION}/queues"
    queue = http("POST", f"{path}?$alt=json;enum-encoding=int", {"name": f"{LOCATION}/queues/n", "type": 2})[1]
    assert (queue["type"], queue["state"]) == (2, 1)
    assert http("GET", f"{path}/n")[1]["type"] == "PUSH"
    assert http("POST", path, {"name": f"{LOCATION}/queues/pull", "type": 1})[0] == 400


def test_task_ttl_and_tombstone_ttl_are_applied(beta3: Client, emulator: CloudTasksEmulator, http: Http) -> None:
    """`task_ttl` ends a waiting task, `tombstone_ttl` frees its name, v2 shows neither; unset, both have defaults."""
    name = f"{LOCATION}/queues/ttl"
    ttls = {"task_ttl": timedelta(days=10), "tombstone_ttl": timedelta(hours=2)}
    queue = beta3.create_queue(parent=LOCATION, queue={"name": name, **ttls})
    assert (queue.task_ttl, queue.tombstone_ttl) == (timedelta(days=10), timedelta(hours=2))
    assert not {"taskTtl", "tombstoneTtl"} & http("GET", f"/v2/{name}")[1].keys()
    assert http("POST", f"/v2/{LOCATION}/queues", {"name": f"{name}2", "taskTtl": "864000s"})[0] == 400
    task = {"name": f"{name}/tasks/t", "http_request": {"url": "http://127.0.0.1:9/"}}
    late = {**task, "schedule_time": LATER + timedelta(days=20)}
    beta3.create_task(parent=name, task=late)
    emulator.advance(timedelta(days=10, seconds=1))
    with pytest.raises(exceptions.NotFound):
        beta3.get_task(name=task["name"])
    with pytest.raises(exceptions.Conflict):
        beta3.create_task(parent=name, task=late)
    emulator.advance(timedelta(hours=2))
    beta3.create_task(parent=name, task=late)
    cleared = beta3.update_queue(queue={"name": name}, update_mask={"paths": ["task_ttl", "tombstone_ttl"]})
    assert (cleared.task_ttl, cleared.tombstone_ttl) == (timedelta(days=31), timedelta(days=1))
    for wrong in ({"task_ttl": timedelta(days=9)}, {"tombstone_ttl": timedelta(days=10)}):
        with pytest.raises(exceptions.BadRequest, match="must be between"):
            beta3.create_queue(parent=LOCATION, queue={"name": f"{name}3", **wrong})


def test_a_read_mask_selects_fields_and_statistics(beta3: Client, http: Http) -> None:
    """Only fields in the mask are returned, statistics only if the mask contains them; v2 has no such mask."""
    task = {"http_request": {"url": "http://127.0.0.1:9/"}, "schedule_time": LATER}
    beta3.create_task(parent=QUEUE, task=task)
    mask = {"paths": ["name", "stats", "rate_limits.max_burst_size"]}
    queue = beta3.get_queue(request={"name": QUEUE, "read_mask": mask})
    assert (queue.name, queue.stats.tasks_count, queue.rate_limits.max_burst_size) == (QUEUE, 1, 100)
    assert queue.stats.oldest_estimated_arrival_time == LATER
    assert queue.rate_limits.max_concurrent_dispatches == 0
    assert "retry_config" not in queue
    (listed,) = beta3.list_queues(request={"parent": LOCATION, "read_mask": {"paths": ["name"]}})
    assert listed == tasks_v2beta3.Queue(name=QUEUE)
    assert "stats" not in beta3.get_queue(name=QUEUE)
    assert http("GET", f"/v2/{QUEUE}?readMask=name")[0] == 400
