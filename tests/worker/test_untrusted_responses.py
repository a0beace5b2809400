"""A worker whose requests are sometimes answered by something else: a captive portal, a proxy, a newer API."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from tests.worker.harness import WorkerHarness
from werkzeug.wrappers import Request, Response

from cloudsched import App, Context
from cloudsched.errors import Unavailable
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api


class InterceptingProxy:
    """Stands before the API, and answers some requests by itself."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.takes: dict[str, int] = {}
        """How many requests to each verb are answered with a page."""
        self.unread = 0
        """How many claims a newer API makes of the first ones."""
        self.claimed: dict[str, object] = {}
        """What it changes in each claimed task."""

    def __call__(self, request: Request) -> Response:
        verb = request.path.rpartition("/")[2]
        if self.takes.get(verb, 0):
            self.takes[verb] -= 1
            return Response("<html>Log in to go on.</html>", mimetype="text/html")
        answer = serve_api(self._app, request)
        if verb != "claim":
            return answer
        content = json.loads(answer.get_data())
        for claim in content["claims"][: self.unread]:
            claim["task"]["priority"] = "ULTRA"
            self.unread -= 1
        for claim in content["claims"]:
            claim["task"].update(self.claimed)
        return Response(json.dumps(content), answer.status_code)


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


def test_a_claim_answered_by_a_portal_is_an_outage(
    harness: WorkerHarness, intercepting_proxy: InterceptingProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged in one line, and the worker continues; with `once` the error is raised."""
    caplog.set_level(logging.WARNING, "cloudsched.worker.worker")
    intercepting_proxy.takes = {"claim": 1}
    with pytest.raises(Unavailable, match="the response is not the API's"):
        harness.work()
    harness.offer("act")
    intercepting_proxy.takes = {"claim": 2}
    with harness.run_beside(harness.worker()):
        harness.wait_for_outcomes("succeeded")
    lines = [record for record in caplog.records if "cannot claim work" in record.getMessage()]
    assert [line.exc_info for line in lines] == [None]


def test_an_unreadable_claim_does_not_block_the_others(
    harness: WorkerHarness, intercepting_proxy: InterceptingProxy
) -> None:
    """It is released at no cost; the claims that can be parsed run, even with a single slot."""
    new, known = harness.offer("act", priority="HIGH"), harness.offer("act")
    intercepting_proxy.unread = 1
    harness.work()
    harness.work()
    (run,) = harness.app.get(new.id).runs
    assert (run.attempt, run.attempts, run.lease) == (1, (), None)
    assert [ended.work.task.id for ended in harness.summaries] == [known.id]
