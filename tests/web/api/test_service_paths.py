"""Paths of the service itself, which a probe or a monitor asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from werkzeug.test import Client as LocalClient
from werkzeug.wrappers import Request

from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_what_cloud_run_keeps_to_itself_has_another_name(path: str, simulate: Callable[..., Simulation]) -> None:
    """Each path that ends in z, which Cloud Run may not hand on, answers the same as the one without."""
    sim = simulate()
    client = LocalClient(Request.application(lambda request: serve_api(sim.app, request)))
    ours, other = client.get(path), client.get(f"{path}z")
    assert (ours.status_code, ours.json) == (other.status_code, other.json)
    assert ours.json is not None
    assert ours.json["status"] in {"ok", "ready"}
