"""``cloudsched doctor`` against one API: what is well, what is wrong, and the exit status."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from tests.cli.conftest import CommandResult, serve_api_of
from tests.instants import HOUR, SECOND

from cloudsched import App, Schedule
from cloudsched.cli.doctor import api_checks
from cloudsched.config.access import Access
from cloudsched.domain.documents.run_counts import LATE
from cloudsched.engine.sweep.shard_sweeps import SweepNotes
from cloudsched.testing import Simulation
from cloudsched.web.api import service_operations
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role

Run = Callable[..., CommandResult]

CANARY = ("--handler", "greet", "--payload", '{"name": "Ada"}')


@pytest.fixture(autouse=True)
def _let_the_stack_run(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the doctor waits, the simulation runs what is due."""
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: sim.advance(SECOND))
    monkeypatch.setattr(api_checks, "time", clock)


def look(run_command: Run, url: str, *words: str) -> tuple[object, dict[str, dict[str, Any]]]:
    """Return the exit status and each finding, by its area."""
    done = run_command("doctor", "--url", url, "--json", *words)
    report = json.loads(done.out)
    assert report["isWell"] == (done.code == 0)
    return done.code, {each["area"]: each for each in report["findings"]}


def test_all_is_well(run_command: Run, url: str, sim: Simulation) -> None:
    """The exit status is 0, each line says so, and the canary's task is gone."""
    code, found = look(run_command, url, *CANARY)
    assert code == 0, found
    assert {area for area, each in found.items() if each["verdict"] != "ok"} == {"queues"}  # it has no Cloud Tasks
    assert set(found) == {"api", "version", "access", "sweep lag", "queues", "canary"}
    assert not [task for task in sim.app.tasks().items if task.deleted_at is None]


def test_a_canary_that_cannot_run(run_command: Run, url: str) -> None:
    """An unknown handler or a wrong payload is wrong; without `remind` none is chosen."""
    assert look(run_command, url, "--handler", "nope")[1]["canary"]["verdict"] == "wrong"
    assert look(run_command, url, "--handler", "greet")[1]["canary"]["verdict"] == "wrong"
    assert look(run_command, url)[1]["canary"]["verdict"] == "skipped"
    assert look(run_command, url, "--no-canary")[0] == 0


def test_a_canary_that_does_not_end(run_command: Run, url: str) -> None:
    """It is wrong after the timeout, and its task is deleted."""
    code, found = look(run_command, url, "--handler", "look-up", "--timeout", "1")
    assert code == 1
    assert "did not end" in found["canary"]["what"]


def test_handlers_that_hang_are_wrong(run_command: Run, url: str, sim: Simulation) -> None:
    """They are named to an admin, and only counted where anybody may ask."""
    SweepNotes(sim.app.container.store, sim.app.container.clock).run(sim.app.sweep)
    sim.app.container.hanging = "16 handlers hang: 'fetch' (16), since 2026-07-01 09:00:00 UTC"
    code, found = look(run_command, url, *CANARY)
    assert code == 1
    assert found["handlers"]["what"] == sim.app.container.hanging
    assert "timeout" in found["handlers"]["mend"]
    for path in ("/health", "/ready"):
        told = httpx.get(f"{url}{path}").text
        assert "16 handlers hang, since" in told
        assert "fetch" not in told


def test_a_process_that_cannot_do_its_work_is_to_be_restarted(
    run_command: Run, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = {"cloudsched-watch": "finds that due work has not started for a minute"}
    monkeypatch.setattr(service_operations, "find_faults", lambda: fault)
    _, found = look(run_command, url)
    assert "due work has not started" in found["api"]["what"]
    assert "restart" in found["api"]["mend"]


def test_another_version_is_wrong(run_command: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API runs other code than is installed here."""
    monkeypatch.setattr(api_checks, "version", lambda _: "9.9.9")
    assert look(run_command, url, *CANARY)[1]["version"]["verdict"] == "wrong"


def test_a_late_task_is_found(run_command: Run, url: str, sim: Simulation) -> None:
    """The doctor and `why` have the limit of all pages. What waits for its jitter is not late."""
    due = sim.now + HOUR
    for jitter in (0 * HOUR, 24 * HOUR):
        sim.app.create(
            id=f"t{jitter.days}", owner="ada", title="T", handler="shout", schedule=Schedule.once(due), jitter=jitter
        )
    for past, is_late in ((-SECOND, False), (SECOND, True)):
        sim.clock.move_to(due + LATE + past)
        code, found = look(run_command, url, "--no-canary")
        assert (code, found["sweep lag"].get("mend")) == ((1, "cloudsched tasks why t0") if is_late else (0, ""))
        assert ("it seems not to run" in run_command("tasks", "--url", url, "why", "t0").out) == is_late


def test_nothing_answers(run_command: Run) -> None:
    """It is wrong, and says how to start the stack."""
    code, found = look(run_command, "http://127.0.0.1:1")
    assert code == 1
    assert "cloudsched dev" in found["api"]["mend"]


def test_who_may_not_look(run_command: Run) -> None:
    """Without a key the API's health is seen, and it is said what is needed for the rest; a viewer runs no canary."""
    viewer, kept = create_key("a", Role.VIEWER)
    with Simulation(App(), access=Access(api_keys=(str(kept),))) as sim, serve_api_of(sim.app) as url:
        code, found = look(run_command, url)
        assert (code, found["access"]["verdict"]) == (1, "unknown")
        assert "--key" in found["access"]["mend"]
        _, found = look(run_command, url, "--key", viewer)
        assert (found["access"]["verdict"], found["canary"]["verdict"]) == ("ok", "unknown")
