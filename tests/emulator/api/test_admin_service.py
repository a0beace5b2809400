"""IAM, locations, batches and encryption keys by Google's own client, over gRPC and REST."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from google.api_core import exceptions
from google.cloud import tasks_v2
from tests.emulator.api.task_fields import make_task
from tests.emulator.conftest import LOCATION, QUEUE

if TYPE_CHECKING:
    from tests.emulator.conftest import Client


def test_an_iam_policy_is_stored_and_guarded_by_its_etag(client: Client) -> None:
    """A policy with an old etag is refused; every permission that is tested is granted."""
    policy = client.get_iam_policy(request={"resource": QUEUE})
    policy.bindings.add(role="roles/cloudtasks.enqueuer", members=["user:a@example.com"])
    changed = client.set_iam_policy(request={"resource": QUEUE, "policy": policy})
    assert changed.bindings == policy.bindings
    assert client.get_iam_policy(request={"resource": QUEUE}) == changed
    with pytest.raises(exceptions.Conflict):
        client.set_iam_policy(request={"resource": QUEUE, "policy": policy})  # an old etag
    asked = ["cloudtasks.tasks.create"]
    assert client.test_iam_permissions(request={"resource": QUEUE, "permissions": asked}).permissions == asked


def test_locations_are_listed_and_found(client: Client) -> None:
    """The list contains the regions of Cloud Tasks, and each can be loaded by name."""
    found = {place.location_id for place in client.list_locations(request={"name": "projects/demo"}).locations}
    assert {"us-central1", "europe-west1"} <= found
    assert client.get_location(request={"name": LOCATION}).location_id == "us-central1"


def test_a_batch_reports_the_items_that_failed(client: Client) -> None:
    """The other items take effect; a batch in which every item fails is an error, and so is one that is too large."""
    tasks = [make_task(name=f"{QUEUE}/tasks/{name}") for name in ("one", "two", "one")]
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


def test_the_encryption_key_of_a_location_is_stored(client: Client) -> None:
    """A key that was set can be read back; the emulator encrypts nothing."""
    name = f"{LOCATION}/cmekConfig"
    key = "projects/demo/locations/us-central1/keyRings/a/cryptoKeys/b"
    client.update_cmek_config(request={"cmek_config": {"name": name, "kms_key": key}})
    assert client.get_cmek_config(name=name).kms_key == key
