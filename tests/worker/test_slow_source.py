"""A slow response of the store or the API to one attempt holds up no other attempt."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest
from tests.harness import wait_until
from tests.worker.harness import BRIEF, Gate, WorkerHarness

from cloudsched import App
from cloudsched.domain.documents.execution import ProgressNote
from cloudsched.engine.handlers.context import LeaseRenewal
from cloudsched.worker import source

OTHERS = 10


@pytest.fixture
def answer() -> Iterator[threading.Event]:
    """When it is set, the slow response comes."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(params=["plain", "async"])
def _handlers(request: pytest.FixtureRequest, app: App, gate: Gate) -> None:
    """A handler that waits at the gate, with a brief lease."""

    def wait() -> None:
        gate.wait()

    async def wait_on_loop() -> None:
        await gate.wait_on_loop()

    app.handler("wait", expected_duration=BRIEF)(wait if request.param == "plain" else wait_on_loop)


@pytest.mark.usefixtures("_handlers")
def test_a_slow_heartbeat_holds_up_nobody_else(
    harness: WorkerHarness, gate: Gate, monkeypatch: pytest.MonkeyPatch, answer: threading.Event
) -> None:
    """The other leases are renewed twice more while one heartbeat is not answered, and the other results are stored."""
    stuck = list[source.LeaseKeeper]()
    renewals = dict[int, int]()
    renew = source.LeaseKeeper.renew

    def renew_slowly(keeper: source.LeaseKeeper, progress: Sequence[ProgressNote]) -> LeaseRenewal:
        if not stuck:
            stuck.append(keeper)
            assert answer.wait(60)
        renewals[id(keeper)] = renewals.get(id(keeper), 0) + 1
        return renew(keeper, progress)

    monkeypatch.setattr(source.LeaseKeeper, "renew", renew_slowly)
    for _ in range(1 + OTHERS):
        harness.offer("wait")
    with harness.run_beside(harness.worker(concurrency=1 + OTHERS)):
        gate.wait_until_inside(1 + OTHERS)
        wait_until(lambda: sum(count > 1 for count in renewals.values()) == OTHERS, "the other leases are renewed")
        gate.open()
        wait_until(lambda: harness.statuses() == ["succeeded"] * OTHERS, "all others end")
        answer.set()
        harness.wait_for_outcomes(*["succeeded"] * (1 + OTHERS))
