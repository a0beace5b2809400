"""How a worker polls: for as many runs as it has free slots, when it has a reason to, and through outages."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.engine.harness import SECOND
from tests.harness import wait_until
from tests.worker.harness import NEVER, Gate, WorkerHarness

from cloudsched import App
from cloudsched.errors import (
    CloudschedError,
    Forbidden,
    InvalidInput,
    Misconfigured,
    NotAllowed,
    NotFound,
    QuotaExceeded,
    StoreUnavailable,
    Unauthenticated,
)
from cloudsched.worker.source import ClaimedWork
from cloudsched.worker.worker import MAX_RETRY_AFTER, PollBackoff


@pytest.fixture
def _waiting_handler(app: App, gate: Gate) -> None:
    @app.handler("wait")
    def wait() -> None:
        gate.wait()


@pytest.mark.usefixtures("_waiting_handler")
def test_no_more_is_claimed_than_can_run(harness: WorkerHarness, gate: Gate) -> None:
    """With two slots two tasks are claimed, the others stay available; in the end all have run, two at a time."""
    tasks = [harness.offer("wait") for _ in range(5)]
    with harness.run_beside(harness.worker(concurrency=2)):
        gate.wait_until_inside(2)
        held = [run for task in tasks for run in harness.app.get(task.id).runs if run.lease]
        assert len(held) == 2
        gate.open()
        harness.wait_for_outcomes(*["succeeded"] * 5)
    assert gate.most == 2


class Bell:
    """A `Listener` that a test rings by hand."""

    def __init__(self) -> None:
        self.lanes: Sequence[str] = ()
        self.ring: Callable[[], None] | None = None

    @contextmanager
    def listen(self, queue_keys: Sequence[str], owner: str | None, notify: Callable[[], None]) -> Iterator[None]:
        self.lanes, self.ring = (*queue_keys, owner or ""), notify
        yield
        self.ring = None


@pytest.mark.parametrize("harness", ["store"], indirect=True)
def test_a_notification_triggers_a_poll(harness: WorkerHarness, app: App) -> None:
    """A worker that polls once an hour claims new work at once if the store's listener notifies it."""
    bell = Bell()
    app.container.replace(listener=bell)

    @app.handler("act")
    def act() -> None: ...

    with harness.run_beside(harness.worker(harness.source("cuda", owner="ada"), poll=NEVER)):
        wait_until(lambda: bell.ring, "it listens")
        assert bell.lanes == ("gpu", "gpu/cuda", "ada")
        for count in (1, 2):
            harness.offer("act")
            assert bell.ring is not None
            bell.ring()
            harness.wait_for_outcomes(*["succeeded"] * count)
    assert bell.ring is None


@pytest.mark.parametrize("harness", ["api"], indirect=True)
def test_a_poll_that_waits_gets_what_comes(harness: WorkerHarness, app: App) -> None:
    """A worker that polls once an hour runs one task after the other as they come, if its polls wait at the API."""

    @app.handler("act")
    def act() -> None: ...

    source = harness.source()
    source.wait = SECOND
    with harness.run_beside(harness.worker(source, poll=NEVER, concurrency=2)) as thread:
        for count in (1, 2, 3):
            harness.offer("act")
            harness.wait_for_outcomes(*["succeeded"] * count)
        assert thread.is_alive()


class FailingSource:
    """A source that is unreachable as often as the test says."""

    def __init__(self, harness: WorkerHarness, *errors: Exception) -> None:
        self._desk = harness.source()
        self._errors = list(errors)
        self.worker_filter, self.location = self._desk.worker_filter, self._desk.location
        self.can_listen, self.listen, self.close = False, self._desk.listen, self._desk.close
        self.wait = timedelta(0)

    def claim(self, limit: int) -> Sequence[ClaimedWork]:
        if self._errors:
            raise self._errors.pop(0)
        return self._desk.claim(limit)


def test_an_outage_is_logged_once_and_survived(
    harness: WorkerHarness, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a claim raises, the worker continues; the log has one line when the outage starts and one at its end."""

    @app.handler("act")
    def act() -> None: ...

    harness.offer("act")
    outage: list[Exception] = [StoreUnavailable("The store", "away"), OSError("worse"), RuntimeError("a bug")]
    caplog.set_level(logging.WARNING, "cloudsched.worker.worker")
    with harness.run_beside(harness.worker(FailingSource(harness, *outage))):
        harness.wait_for_outcomes("succeeded")
        lines = [record.getMessage() for record in caplog.records if record.name == "cloudsched.worker.worker"]
    assert len(lines) == 2
    assert "The store cannot be reached: away" in lines[0]
    assert "claiming works again" in lines[1]


REFUSALS: list[CloudschedError] = [
    Unauthenticated("The API key is not known."),
    Forbidden("no"),
    Misconfigured("no"),
    NotFound("page", "x"),
    InvalidInput("x", "no"),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda error: type(error).__name__)
def test_a_refused_claim_stops_the_worker(harness: WorkerHarness, refusal: CloudschedError) -> None:
    """An error that a retry cannot cure is raised to the caller of `run`."""
    with pytest.raises(type(refusal)):
        harness.worker(FailingSource(harness, refusal)).run()


@pytest.mark.parametrize("harness", ["store"], indirect=True)
@pytest.mark.usefixtures("_waiting_handler")
def test_a_refused_claim_lets_running_tasks_finish(
    harness: WorkerHarness, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that is revoked while a task runs stops the worker, but only after that task has finished."""
    harness.offer("wait")
    source = harness.source()
    worker = harness.worker(source, concurrency=2, poll=0.02 * SECOND)

    def refuse(_limit: int) -> None:
        gate.open()
        raise Forbidden("no")

    def run_worker() -> None:
        with harness.run_beside(worker) as thread:
            gate.wait_until_inside()
            monkeypatch.setattr(source, "claim", refuse)
            harness.wait_for_outcomes("succeeded")
            wait_until(lambda: not thread.is_alive(), "it ends by itself")

    with pytest.raises(Forbidden):
        run_worker()


def test_an_exhausted_quota_is_waited_for(
    harness: WorkerHarness, app: App, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 429 response does not stop the worker: it pauses for as long as the API asks, up to a limit."""
    asked: list[float] = []
    pace = PollBackoff.next_delay

    def note_and_pause(self: PollBackoff, found: int | None, asked_for: float = 0.0) -> float:
        asked.append(asked_for)
        return pace(self, found)

    @app.handler("act")
    def act() -> None: ...

    harness.offer("act")
    monkeypatch.setattr(PollBackoff, "next_delay", note_and_pause)
    full = [QuotaExceeded("requests", 1, "Come back later.", seconds) for seconds in (7, None, 10**9)]
    with harness.run_beside(harness.worker(FailingSource(harness, *full))):
        harness.wait_for_outcomes("succeeded")
    assert asked[:3] == [7, 0, MAX_RETRY_AFTER]
    lines = [record for record in caplog.records if "cannot claim work" in record.getMessage()]
    assert [line.exc_info for line in lines] == [None]
    assert pace(PollBackoff(NEVER, can_listen=False), None, 60) == 60


def test_a_worker_runs_the_one_task_that_was_chosen(harness: WorkerHarness, app: App) -> None:
    """It ends then, and what was due before waits on. What can no longer be had is refused with the reason."""
    app.handler("act")(lambda: None)
    first, chosen = harness.offer("act"), harness.offer("act")
    source = harness.source()
    source.worker_filter = replace(source.worker_filter, task_id=chosen.id)
    harness.work(desk=source, concurrency=2)
    assert [app.get(each.id).status for each in (first, chosen)] == ["ACTIVE", "COMPLETED"]
    with pytest.raises(NotAllowed, match="COMPLETED"):
        harness.work(desk=source)


def test_once_raises_an_outage(harness: WorkerHarness) -> None:
    """A worker that is to run the available tasks once raises the error if it cannot claim any."""
    with pytest.raises(StoreUnavailable):
        harness.worker(FailingSource(harness, StoreUnavailable("The store", "away"))).run(once=True)


def test_poll_intervals_and_outage_pauses_grow_separately() -> None:
    """Idle waits grow up to a limit and reset after work; pauses grow separately; all have jitter."""
    chance = random.Random(1)  # noqa: S311 - a test's
    for listens, longest in ((False, 5), (True, 20)):
        pace = PollBackoff(SECOND, can_listen=listens, chance=chance)
        idle = [pace.next_delay(0) for _ in range(20)]
        assert idle[0] < idle[3] < idle[6]
        assert longest * 0.75 <= idle[-1] <= longest * 1.25
        assert len({round(wait, 3) for wait in idle[-5:]}) > 1
        assert pace.next_delay(1) <= 1.25
        assert pace.next_delay(0) <= 1.5 * 1.25
