"""An executor whose clock differs too much from the store's runs nothing: its leases would overlap those of others."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.harness import HOUR, MINUTE, SECOND, RecordingQueue
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.clocks import SystemClock
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.engine.ports.clock import MAX_SKEW, measure_skew
from cloudsched.errors import ClockSkewed
from cloudsched.web.functions import TOKEN_HEADER, serve_execute

LEAD = 8 * SECOND


class SkewedClock(SystemClock):
    """A machine's clock that is wrong from some moment on."""

    skew = timedelta(0)
    elapsed = 0
    """The seconds by which a clock that nobody sets is ahead."""

    def now(self) -> datetime:
        return super().now() + self.skew


class TimedStore(SqliteStore):
    """A store that returns its own time with each read, as Firestore does."""

    def load(self, task_id: str) -> VersionedTask | None:
        found = super().load(task_id)
        return found and replace(found, read_at=datetime.now(UTC))


def deployment(store: SqliteStore) -> tuple[App, SkewedClock, RecordingQueue, list[str]]:
    """Return an app whose task is due now, with its clock, its queue and the calls of its handler."""
    clock, queue, calls = SkewedClock(), RecordingQueue(), list[str]()
    settings = Settings(secret="the secret of this test", executor_url="http://executor")  # noqa: S106
    app = App(settings, store=store, dispatcher=queue, clock=clock)

    @app.handler("tick")
    def tick() -> None:
        calls.append("ran")

    app.create(
        id="t",
        handler="tick",
        schedule=Schedule.every(HOUR, start=(clock.now() + LEAD).replace(microsecond=0)),
    )
    clock.skew = LEAD
    return app, clock, queue, calls


@pytest.mark.parametrize("skew", [150 * SECOND, timedelta(seconds=-150), MAX_SKEW + SECOND, -MAX_SKEW - SECOND])
def test_a_delivery_to_an_executor_with_a_wrong_clock_is_answered_so_that_it_comes_again(skew: timedelta) -> None:
    """503, nothing committed, no handler called; another executor, whose clock is right, runs it."""
    app, clock, queue, calls = deployment(TimedStore())
    (sent,) = queue.sent
    before = app.container.store.load("t")
    clock.skew = skew
    with pytest.raises(ClockSkewed, match=r"This machine's clock is \d+ s (ahead of|behind) the store's"):
        app.deliver(sent.body, sent.token)
    headers = [(TOKEN_HEADER, sent.token)]
    request = Request(EnvironBuilder(method="POST", data=sent.body, headers=headers).get_environ())
    response = serve_execute(app, request)
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert "clock" in response.get_data(as_text=True)
    assert (app.container.store.load("t"), calls) == (before, [])
    clock.skew = LEAD
    app.deliver(sent.body, sent.token)
    assert calls == ["ran"]
    app.container.store.close()


def test_a_clock_that_is_set_after_it_was_compared_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim is of the time that was compared: no lease lasts longer, or has ended, because of the step."""
    app, _, queue, _ = deployment(TimedStore())
    store, commit, leases = app.container.store, app.container.store.commit, list[datetime]()
    reads = iter([timedelta(0)] * 3)  # for the dispatch, before the task is read, and after it

    def now(_: SkewedClock) -> datetime:
        return datetime.now(UTC) + LEAD + next(reads, HOUR)

    def note(change: Commit) -> VersionedTask:
        leases.extend(run.lease.until for run in change.task.runs if run.lease)
        return commit(change)

    monkeypatch.setattr(store, "commit", note)
    monkeypatch.setattr(SkewedClock, "now", now)
    queue.deliver_latest(app)
    assert leases[0] < datetime.now(UTC) + 50 * MINUTE
    app.container.store.close()


def test_a_slow_read_does_not_hide_a_wrong_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is four minutes ahead, and the first read takes six: the store's time lies between both readings."""
    app, _, queue, calls = deployment(TimedStore())
    readings = iter([-2, -2])  # in minutes, for the dispatch and before the task is read; it is read six minutes later

    def now(_: SkewedClock) -> datetime:
        return datetime.now(UTC) + timedelta(minutes=next(readings, 4))

    monkeypatch.setattr(SkewedClock, "now", now)
    with pytest.raises(ClockSkewed):
        queue.deliver_latest(app)
    assert calls == []
    app.container.store.close()


def test_a_store_without_a_clock_is_not_compared() -> None:
    """A file is used by the processes of one machine, which share one clock."""
    app, clock, queue, calls = deployment(SqliteStore())
    clock.skew = 150 * SECOND
    queue.deliver_latest(app)
    assert calls == ["ran"]
    app.container.store.close()


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[tuple[App, SkewedClock, RecordingQueue, list[str], list[str]]]:
    """Return a deployment that has run its task once, and what it reads from then on; another run is requested."""
    reads = list[str]()

    class CountingStore(TimedStore):
        def load(self, task_id: str) -> VersionedTask | None:
            reads.append(task_id)
            return super().load(task_id)

    app, clock, queue, calls = deployment(CountingStore(tmp_path / "tasks.db"))
    vars(app.container)["_monotonic"] = lambda: time.monotonic() + clock.elapsed
    queue.deliver_latest(app)
    app.trigger("t")
    reads.clear()
    yield app, clock, queue, calls, reads
    app.container.store.close()


Warm: TypeAlias = tuple[App, SkewedClock, RecordingQueue, list[str], list[str]]


def test_what_this_process_stored_last_is_claimed_without_a_read(warm: Warm) -> None:
    app, _, queue, calls, reads = warm
    queue.deliver_latest(app)
    assert (calls, reads) == (["ran"] * 2, [])
    queue.deliver_latest(app)
    assert calls == ["ran"] * 2
    assert reads, "that nothing is to be run is known from the store alone"


def test_a_run_leaves_nothing_to_the_garbage_collector(warm: Warm) -> None:
    """With thousands of runs a second, searches for cycles would take a good part of the processor's time."""
    app, _, queue, calls, _ = warm
    gc.collect()
    gc.freeze()  # what other tests have left may become garbage at any time, and is not the run's
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        queue.deliver_latest(app)
        gc.collect()
        assert not [each for each in gc.garbage if str(getattr(each, "__module__", "")).startswith("cloudsched.")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert calls == ["ran"] * 2


def test_what_another_process_has_changed_meanwhile_counts(warm: Warm, tmp_path: Path) -> None:
    """What is known here is older: nothing is decided by it."""
    app, clock, queue, calls, _ = warm
    settings = Settings(secret="the secret of this test")  # noqa: S106
    there = App(settings, store=TimedStore(tmp_path / "tasks.db"), dispatcher=RecordingQueue(), clock=clock)
    there.handler("tick")(lambda: None)
    there.pause("t")
    queue.deliver_latest(app)
    assert calls == ["ran"]
    there.resume("t")
    there.delete("t")
    queue.deliver_latest(app)
    assert (calls, app.container.store.load("t")) == (["ran"], None)
    there.container.store.close()


@pytest.mark.parametrize(("step", "elapsed"), [(60, 0), (-60, 0), (0, 60), (700, 700)])
def test_a_clock_that_was_set_or_compared_long_ago_is_compared_again(warm: Warm, step: int, elapsed: int) -> None:
    app, clock, queue, calls, reads = warm
    clock.skew += step * SECOND
    clock.elapsed = elapsed
    with nullcontext() if step == 0 else pytest.raises(ClockSkewed):
        queue.deliver_latest(app)
    assert reads
    assert calls == ["ran"] * (1 + (step == 0))


@given(st.integers(-500, 500), st.integers(0, 100), st.integers(0, 100))
def test_what_the_round_trip_may_have_taken_is_no_difference(skew: int, there: int, back: int) -> None:
    """The difference that is found is at most the true one, in its direction, and less by no more than the trip."""
    store_time = datetime(2027, 1, 1, tzinfo=UTC)
    at = store_time + skew * SECOND
    found = measure_skew(at - there * SECOND, store_time, at + back * SECOND) / SECOND
    assert found == max(0, skew - there) if skew >= 0 else found == min(0, skew + back)
