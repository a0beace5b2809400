"""What an error carries besides its code: the recorded text, and details that point to the cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions
from tests.emulator.conftest import LOCATION, Client, make_task


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
