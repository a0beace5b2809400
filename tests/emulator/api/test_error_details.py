"""What an error carries besides its code: recorded texts and details that point to the cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions
from google.protobuf import json_format  # type: ignore[import-untyped]
from tests.emulator.conftest import LOCATION, QUEUE, Client, make_task


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


def test_errors_about_malformed_names_link_to_the_definition(client: Client) -> None:
    """The error for a malformed queue name or task id has a Help detail."""
    reference = "https://cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.queues"
    with pytest.raises(exceptions.BadRequest) as of_queue:
        client.create_queue(parent=LOCATION, queue={"name": f"{LOCATION}/queues/under_score"})
    with pytest.raises(exceptions.BadRequest) as of_task:
        client.create_task(parent=QUEUE, task=make_task(name=f"{QUEUE}/tasks/sp ace"))
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
