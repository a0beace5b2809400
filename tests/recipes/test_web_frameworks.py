"""The recipes for FastAPI and Flask: a route of the service creates tasks, and refuses what it cannot."""

from __future__ import annotations

import httpx
import pytest
from tests.instants import DAY
from tests.recipes.conftest import Load, post

from cloudsched.testing import Simulation

BODY = {"text": "Tea"}


@pytest.mark.parametrize("section", ["FastAPI on one server", "FastAPI on Google Cloud", "Flask on one server"])
def test_a_route_creates_a_task_that_runs(section: str, load: Load) -> None:
    """Words and zone come from the request; words that are no time are the caller's mistake."""
    handlers = load("web-frameworks.md#Start with a handler", "handlers")
    service = load(f"web-frameworks.md#{section}", "web" if "Flask" in section else "main").service
    service.testing = True
    with Simulation(handlers.app) as sim, httpx.Client(transport=httpx.WSGITransport(app=service)) as flask:

        def send(path: str) -> httpx.Response:
            if "Flask" in section:
                return flask.post(f"http://service{path}", json=BODY)
            return post(service, path, json=BODY)

        created = send("/users/ada/reminders?when=every%20day%20at%209&timezone=Europe/Paris")
        assert created.status_code == 201
        assert created.json()["when"] == "every day at 09:00, Europe/Paris"
        refused = send("/users/ada/reminders?when=every%20blue%20moon")
        assert (refused.status_code, refused.json()["field"]) == (400, "schedule")
        sim.advance(2 * DAY)
        assert [message.body for message in sim.inbox("ada")] == ["Tea", "Tea"]
        assert len(sim.app.tasks().items) == 1
