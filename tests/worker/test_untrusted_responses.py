"""A worker whose requests are sometimes answered by something else: a captive portal, a proxy."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.worker.harness import WorkerHarness
from werkzeug.wrappers import Request, Response

from cloudsched import App, Context
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api


class InterceptingProxy:
    """Stands before the API, and answers some requests by itself."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.takes: dict[str, int] = {}
        """How many requests to each verb are answered with a page."""

    def __call__(self, request: Request) -> Response:
        verb = request.path.rpartition("/")[2]
        if self.takes.get(verb, 0):
            self.takes[verb] -= 1
            return Response("<html>Log in to go on.</html>", mimetype="text/html")
        return serve_api(self._app, request)


@pytest.fixture
def intercepting_proxy(app: App) -> InterceptingProxy:
    """What stands before the API."""
    return InterceptingProxy(app)


@pytest.fixture
def harness(sim: Simulation, intercepting_proxy: InterceptingProxy) -> Iterator[WorkerHarness]:
    """The world, behind that."""
    with WebServer(Request.application(intercepting_proxy)) as server:
        server.serve()
        yield WorkerHarness(sim, f"http://{server.address}", "api")


@pytest.fixture(autouse=True)
def _act_handler(app: App) -> None:
    """A handler that says something."""

    @app.handler("act")
    def act(ctx: Context) -> str:
        ctx.progress("at it")
        return "done"


def test_a_result_is_delivered_once_the_proxy_is_gone(
    harness: WorkerHarness, intercepting_proxy: InterceptingProxy
) -> None:
    """A page in place of a response is not a response: the result is sent again, and counts once."""
    task = harness.offer("act")
    intercepting_proxy.takes = {"complete": 3}
    harness.work()
    record = harness.record(task)
    assert (record.status, record.content, len(record.attempts)) == ("SUCCEEDED", "done", 1)
    assert harness.statuses() == ["succeeded"]


def test_an_intercepting_proxy_does_not_disturb_the_handler(
    harness: WorkerHarness, intercepting_proxy: InterceptingProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """A heartbeat answered by such a page counts as unanswered: the log says so, and the handler sees no error."""
    caplog.set_level(logging.WARNING, "cloudsched.engine.handlers.context")
    task = harness.offer("act")
    intercepting_proxy.takes = {"heartbeat": 100}
    harness.work()
    assert harness.record(task).error is None
    assert harness.statuses() == ["succeeded"]
    (said,) = {record.getMessage() for record in caplog.records if record.name == "cloudsched.engine.handlers.context"}
    assert said.count("cannot be reached") == 1
