"""Assigned work that a worker refuses to run, and how the sources release it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from tests.worker.harness import WorkerHarness

from cloudsched import App, Schedule
from cloudsched.client.views import ClaimView
from cloudsched.errors import Forbidden, StoreUnavailable
from cloudsched.features.pull.work_queue import WorkerFilter
from cloudsched.testing import Simulation
from cloudsched.worker.api_source import ApiSource
from cloudsched.worker.source import ClaimedWork
from cloudsched.worker.store_source import StoreSource


@pytest.fixture(autouse=True)
def calls(app: App) -> list[str]:
    """Register the handlers of these tests, and return the list of those that have run."""
    done: list[str] = []

    @app.handler("act")
    def act() -> None:
        done.append("act")

    @app.handler("other")
    def other() -> None:
        done.append("other")

    return done


WRONG = [
    ({"pull": "cpu"}, "queue 'cpu'"),
    ({"pull": {"queue": "gpu", "skill": "fpga"}}, "skill 'fpga'"),
    ({"handler": "other"}, "no handler 'other'"),
    ({"owner": "mallory"}, "its owner is 'mallory'"),
    ({"pull": None}, "does not wait for a worker"),
]


class Wrong:
    """A source that assigns work meant for another worker, as a faulty or hostile server would."""

    def __init__(self, harness: WorkerHarness, queue: str) -> None:
        self._desk = harness.source("fpga", queue=queue)
        self.worker_filter = WorkerFilter("gpu", ("cuda",), {"act"}, "ada", "box-1")
        self.location = self._desk.location
        self.can_listen, self.listen, self.close = False, self._desk.listen, self._desk.close
        self.wait = timedelta(0)

    def claim(self, limit: int) -> Sequence[ClaimedWork]:
        return self._desk.claim(limit)


@pytest.mark.parametrize(("wrong", "why"), WRONG[:4], ids=str)
def test_mismatched_work_is_released(
    harness: WorkerHarness, calls: list[str], wrong: dict[str, Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A task of another queue, skill, handler or owner is never run: it is released, offered as before, and logged."""
    task = harness.offer(**{"handler": "act", **wrong})
    harness.worker(Wrong(harness, "cpu" if "cpu" in why else "gpu")).run(once=True)
    (run,) = harness.app.get(task.id).runs
    assert (calls, run.lease, run.attempt, run.attempts) == ([], None, 1, ())
    assert why in caplog.text


def test_work_beyond_the_limit_is_released(harness: WorkerHarness, calls: list[str]) -> None:
    """A source that returns more than the limit does not make a worker hold more than it can run."""
    tasks = [harness.offer("act") for _ in range(3)]
    desk: Any = harness.source()
    claim = desk.claim
    desk.claim = lambda _limit: claim(3)
    harness.worker(desk).run(once=True)
    assert calls == ["act"] * 3
    assert [len(harness.record(task).attempts) for task in tasks] == [1] * 3


CLAIM = {
    "executionId": "20270101T000000Z",
    "scheduledFor": "2027-01-01T00:00:00Z",
    "attempt": 1,
    "startedAt": "2027-01-01T00:00:00Z",
    "leaseToken": "token",
    "leaseUntil": "2027-01-01T00:05:00Z",
}


@pytest.mark.parametrize("harness", ["api"], indirect=True)
@pytest.mark.parametrize("garbage", [{"schedule": {"at": "soon"}}, {"expectedDuration": "x"}, {"owner": "a/b"}])
def test_work_that_cannot_be_parsed_is_released(
    harness: WorkerHarness, garbage: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """A task that this version cannot parse is released and logged, and the worker continues."""
    task = {**harness.offer("act").to_wire(), **garbage, "isRunning": True, "something": "new"}
    client = Mock()
    client.claim.side_effect = [[ClaimView.from_response({**CLAIM, "task": task})], []]
    desk = ApiSource(lambda: client, harness.app.container.registry, harness.source().worker_filter, "there")
    harness.worker(desk).run(once=True)
    assert client.release.call_count == 1
    assert "cannot be parsed" in caplog.text


@pytest.mark.parametrize("harness", ["store"], indirect=True)
@pytest.mark.parametrize("code", ["PERMISSION_DENIED", "UNAUTHENTICATED"])
def test_an_account_without_access_to_the_store_stops_the_worker(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """A refusal by Firestore is not treated as an outage: a retry would not cure it."""

    def refuse(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("Firestore", f"{code}: Missing or insufficient permissions.")

    monkeypatch.setattr(harness.app.container.store, "list_offers", refuse)
    with pytest.raises(Forbidden, match="Missing or insufficient permissions"):
        harness.worker().run()


@pytest.mark.parametrize(("off", "said"), [(-600, "600 s behind"), (600, "600 s ahead of"), (-9, ""), (9, "")])
def test_a_machine_whose_clock_is_wrong_claims_nothing_at_the_store(sim: Simulation, off: int, said: str) -> None:
    """Its leases would look expired to all others, or never expire. Once its clock is right, it works."""
    there = sim.now - timedelta(seconds=off)
    clocked = Mock(wraps=sim.app.container.store, check=lambda: there)
    sim.app.create(owner="ada", handler="act", pull="gpu", schedule=Schedule.once(sim.now))
    sim.advance(timedelta(0))
    with sim.app.override(sim.app.container.settings, store=clocked, dispatcher=sim.queue, clock=sim.clock):
        desk = StoreSource(sim.app, WorkerFilter("gpu"), "here")
        if said:
            with pytest.raises(StoreUnavailable, match=f"clock is {said} the store's"):
                desk.claim(1)
            there = sim.now
        assert len(desk.claim(1)) == 1
