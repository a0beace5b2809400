"""Queues by Google's own client, over gRPC and REST; errors have what was recorded from the real service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import tasks_v2
from tests.cases import try_each
from tests.emulator.conftest import LOCATION, QUEUE, START, URL, Client, Connect, make_task
from tests.instants import HOUR, SECOND

from cloudsched.emulator import CloudTasksEmulator


def test_a_new_queue_has_the_defaults_of_the_real_service(client: Client) -> None:
    """The limits and the retry settings are those that the real service gives a queue without any."""
    name = f"{LOCATION}/queues/fresh"
    client.create_queue(parent=LOCATION, queue={"name": name})
    queue = client.get_queue(name=name)
    assert queue.state == tasks_v2.Queue.State.RUNNING
    assert queue.rate_limits.max_dispatches_per_second == 500
    assert queue.rate_limits.max_burst_size == 100
    assert queue.rate_limits.max_concurrent_dispatches == 1000
    assert queue.retry_config.max_attempts == 100
    assert queue.retry_config.max_doublings == 16
    assert queue.retry_config.min_backoff == 0.1 * SECOND
    assert queue.retry_config.max_backoff == HOUR
    assert "max_retry_duration" not in queue.retry_config


def test_an_update_changes_only_the_fields_in_its_mask(client: Client) -> None:
    """A named field that the request omits returns to its default; the state cannot be set."""
    retry = {"max_attempts": 7, "max_doublings": 0, "min_backoff": {"seconds": 3}}
    queue = {"name": QUEUE, "retry_config": retry, "rate_limits": {"max_dispatches_per_second": 0.5}, "state": 2}
    mask = {"paths": ["retry_config.max_attempts", "retry_config.max_doublings", "state"]}
    changed = client.update_queue(queue=queue, update_mask=mask)
    assert (changed.retry_config.max_attempts, changed.retry_config.max_doublings) == (7, 0)
    assert changed.retry_config.min_backoff == 0.1 * SECOND
    assert changed.rate_limits.max_dispatches_per_second == 500
    assert changed.state == tasks_v2.Queue.State.RUNNING
    changed = client.update_queue(queue={"name": QUEUE}, update_mask={"paths": ["retry_config"]})
    assert (changed.retry_config.max_attempts, changed.retry_config.max_doublings) == (100, 16)


def test_an_update_creates_a_missing_queue(client: Client) -> None:
    """Its burst size follows from its rate, as for a queue that was created."""
    name = f"{LOCATION}/queues/made-by-update"
    client.update_queue(queue={"name": name, "rate_limits": {"max_dispatches_per_second": 2}})
    assert client.get_queue(name=name).rate_limits.max_burst_size == 10


@try_each(
    "queue, paths",
    [
        ({"retry_config": {"max_attempts": -2}}, ["retry_config"]),
        ({"stackdriver_logging_config": {"sampling_ratio": 1.5}}, ["stackdriver_logging_config"]),
        ({"http_target": {"http_method": 1}}, ["http_target"]),
        ({}, ["no_such_field"]),
        ({}, ["retry_config.no_such_field"]),
    ],
)
def test_an_invalid_update_changes_nothing(client: Client, queue: dict[str, Any], paths: list[str]) -> None:
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


@try_each("fields, message", RECORDED_QUEUE_REFUSALS)
def test_invalid_settings_are_refused_with_the_recorded_messages(
    client: Client, fields: dict[str, Any], message: str
) -> None:
    """Creating and updating a queue fail with the texts that were recorded from the real service."""
    new = f"{LOCATION}/queues/new"
    with pytest.raises(exceptions.BadRequest) as created:
        client.create_queue(parent=LOCATION, queue={"name": new, **fields})
    with pytest.raises(exceptions.BadRequest) as updated:
        client.update_queue(queue={"name": QUEUE, **fields}, update_mask={"paths": list(fields)})
    assert created.value.message.endswith(message)
    assert updated.value.message.endswith(message)
    assert [queue.name for queue in client.list_queues(parent=LOCATION)] == [QUEUE]


def test_the_minimum_backoff_stays_below_the_maximum_across_updates(client: Client) -> None:
    """If a mask names only one of the two, it is checked against the current value of the other."""
    queue = {"name": QUEUE, "retry_config": {"min_backoff": {"seconds": 7200}}}
    with pytest.raises(exceptions.BadRequest, match="minBackoff must be less than or equal to"):
        client.update_queue(queue=queue, update_mask={"paths": ["retry_config.min_backoff"]})
    with pytest.raises(exceptions.BadRequest, match="minBackoff must be less than or equal to"):
        client.create_task(parent=QUEUE, task=make_task(retry_config=queue["retry_config"]))


def test_queues_are_listed_by_name_page_by_page(client: Client) -> None:
    """Only those of the location are listed. A filter, which the emulator has not, is not passed over in silence."""
    for letter in "cab":
        client.create_queue(parent=LOCATION, queue={"name": f"{LOCATION}/queues/{letter}"})
    client.create_queue(parent=f"{LOCATION}1", queue={"name": f"{LOCATION}1/queues/elsewhere"})
    pages = list(client.list_queues(request={"parent": LOCATION, "page_size": 2}).pages)
    assert [[queue.name[-1] for queue in page.queues] for page in pages] == [["a", "b"], ["c", "t"]]
    with pytest.raises(exceptions.BadRequest, match="leave the filter out"):
        client.list_queues(request={"parent": LOCATION, "filter": "state: PAUSED"})


def test_invalid_calls_on_queues_fail_with_the_recorded_messages(client: Client) -> None:
    """Existing, missing, malformed and recently deleted names give the errors of the real service."""
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
        client.create_task(parent=missing, task=make_task())
    with pytest.raises(exceptions.NotFound, match="Requested entity was not found"):
        client.delete_queue(name=missing)
    client.delete_queue(name=QUEUE)
    with pytest.raises(exceptions.BadRequest, match="a queue with this name existed too recently"):
        client.create_queue(parent=LOCATION, queue={"name": QUEUE})


def test_auto_create_queues_creates_a_missing_queue(connect: Connect) -> None:
    """With ``auto_create_queues``, the first task creates its queue with the default settings."""
    with CloudTasksEmulator(auto_create_queues=True) as emulator:
        client = connect(emulator.address)
        client.create_task(parent=QUEUE, task={"http_request": {"url": URL}})
        assert client.get_queue(name=QUEUE).rate_limits.max_dispatches_per_second == 500


def test_purge_removes_all_tasks_and_records_its_time(client: Client) -> None:
    """The tasks are gone from the list, and cannot be loaded."""
    name = client.create_task(parent=QUEUE, task=make_task()).name
    assert client.purge_queue(name=QUEUE).purge_time == START
    assert not list(client.list_tasks(parent=QUEUE))
    with pytest.raises(exceptions.NotFound):
        client.get_task(name=name)


def test_a_malformed_parent_is_reported_as_permission_denied(client: Client) -> None:
    """Every call with a parent fails with PERMISSION_DENIED and the recorded details."""
    parent = "not-a-valid-parent"
    calls: tuple[Callable[[], Any], ...] = (
        lambda: client.create_queue(parent=parent, queue={"name": f"{LOCATION}/queues/new"}),
        lambda: client.list_queues(parent=parent),
        lambda: client.create_task(parent=parent, task=make_task()),
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
