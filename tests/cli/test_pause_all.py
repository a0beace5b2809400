"""``cloudsched tasks pause-all`` and ``restore``: the question, the refusal, and that one takes back the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.instants import DAY, MINUTE
from werkzeug.wrappers import Request

from cloudsched import App, Settings
from cloudsched.cli.tasks import tasks
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api

Run = Callable[..., Result]


@pytest.fixture
def world() -> Iterator[tuple[Simulation, Run]]:
    """A simulation with three tasks, one of them paused, and its command line."""
    app = App(Settings())

    @app.handler("work")
    def work() -> None: ...

    with ExitStack() as parts:
        sim = parts.enter_context(Simulation(app))
        for number in range(3):
            app.create(id=f"t{number}", handler="work", schedule="every day at 9")
        app.pause("t0")
        server = parts.enter_context(WebServer(Request.application(lambda request: serve_api(app, request))))
        server.serve()

        def run(*words: str, **more: Any) -> Result:
            return CliRunner().invoke(tasks, ["--url", f"http://{server.address}", *words], **more)

        yield sim, run


def test_everything_is_paused_and_restored(world: tuple[Simulation, Run]) -> None:
    """Nobody is there to ask: nothing happens. With --yes it is done, and the id takes it back."""
    sim, run = world
    refused = run("pause-all")
    assert refused.exit_code != 0
    assert sim.app.get("t1").status == "ACTIVE"
    started = run("pause-all", "--yes")
    assert started.exit_code == 0, started.output
    action = started.output.split()[-1]
    sim.advance(MINUTE)
    assert [sim.app.get(f"t{number}").status for number in range(3)] == ["PAUSED"] * 3
    assert run("restore", action, "--yes").exit_code == 0
    sim.advance(MINUTE)
    assert [sim.app.get(f"t{number}").status for number in range(3)] == ["PAUSED", "ACTIVE", "ACTIVE"]


def test_a_pause_of_everything_ends_by_itself_and_says_what_goes_on(world: tuple[Simulation, Run]) -> None:
    """What was paused before stays so; results are still delivered, which the question, the help and the task say."""
    sim, run = world
    wrong = {"yesterday": "--until", "2027-01-02T09:00": "give --timezone", "2000-01-01T00:00:00Z": "past"}
    for text, words in wrong.items():
        refused = run("pause-all", "--until", text, "--yes")
        assert refused.exit_code != 0
        assert words in refused.output + str(refused.exception)
    started = run("pause-all", "--until", "2027-01-02T13:00", "--timezone", "Europe/Paris", "--yes", "--json")
    assert started.exit_code == 0, started.output
    assert "still delivered" in started.output
    assert "still delivered" in run("pause-all", "--help").output.replace("\n  ", " ")
    sim.advance(MINUTE)
    assert [sim.app.get(f"t{number}").status for number in range(3)] == ["PAUSED"] * 3
    assert sim.app.get("t1").paused_until == datetime(2027, 1, 2, 12, tzinfo=UTC)
    sim.advance(2 * DAY)
    assert [sim.app.get(f"t{number}").status for number in range(3)] == ["PAUSED", "ACTIVE", "ACTIVE"]
