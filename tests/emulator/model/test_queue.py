"""The queue model is pure, without clock and I/O: each rule is a property."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.instants import DAY, HOUR

from cloudsched.emulator.model.errors import Code, RpcError
from cloudsched.emulator.model.queue import DispatchAttempt, QueueConfig
from cloudsched.emulator.model.queues import Queues
from cloudsched.emulator.model.task import CloudTask, HttpResult, HttpTarget, RateLimits, RetryConfig
from cloudsched.emulator.model.token_bucket import TokenBucket

START = datetime(2027, 1, 1, tzinfo=UTC)
QUEUE = "projects/demo/locations/here/queues/q"
TARGET = HttpTarget("http://127.0.0.1/")
OK, FAILED = HttpResult(status=200), HttpResult(status=500)
SECOND = timedelta(seconds=1)


def make_queues(**config: object) -> Queues:
    board = Queues()
    board.create_queue(QUEUE, QueueConfig(**config), START)  # type: ignore[arg-type]
    return board


def add(board: Queues, task_id: str, at: datetime = START, now: datetime = START, **fields: object) -> CloudTask:
    task = CloudTask(task_id, TARGET, at, now, **fields)  # type: ignore[arg-type]
    board.create_task(QUEUE, task, now)
    return task


def run(board: Queues, until: datetime, answer: HttpResult = OK) -> list[DispatchAttempt]:
    """Advance the queues to an instant; each attempt gets its response immediately."""
    sent: list[DispatchAttempt] = []
    while (at := board.next_wake()) is not None and at <= until:
        for dispatch in board.take_due(at):
            sent.append(dispatch)
            board.finish_attempt(dispatch, answer, at)
    return sent


rates = st.floats(0.05, 500, allow_nan=False)
offsets = st.integers(0, 60_000_000).map(lambda us: timedelta(microseconds=us))


@given(rates, st.integers(1, 50), st.lists(offsets, min_size=1, max_size=80))
def test_no_period_has_more_dispatches_than_the_bucket_allows(rate: float, burst: int, due: list[timedelta]) -> None:
    """Between any two instants there are at most burst + rate x time dispatches."""
    board = make_queues(rate_limits=RateLimits(rate, 1000, burst))
    for number, offset in enumerate(due):
        add(board, f"t{number}", START + offset)
    sent = [dispatch.dispatch_at for dispatch in run(board, START + 2 * HOUR)]
    assert len(sent) == len(due)
    assert sent == sorted(sent)
    for first in range(len(sent)):
        for last in range(first, len(sent)):
            span = (sent[last] - sent[first]).total_seconds()
            assert last - first + 1 <= burst + rate * span + 1e-6


@given(st.integers(1, 5), st.lists(st.tuples(offsets, st.integers(1, 30)), min_size=1, max_size=40))
def test_concurrent_attempts_never_exceed_the_limit(most: int, tasks: list[tuple[timedelta, int]]) -> None:
    board = make_queues(rate_limits=RateLimits(500, most, 100))
    seconds = {}
    for number, (offset, length) in enumerate(tasks):
        add(board, f"t{number}", START + offset)
        seconds[f"t{number}"] = length * SECOND
    running: list[tuple[datetime, DispatchAttempt]] = []
    done = 0
    while done < len(tasks):
        now = min(at for at in (board.next_wake(), *(end for end, _ in running)) if at is not None)
        for end, dispatch in [item for item in running if item[0] <= now]:
            running.remove((end, dispatch))
            board.finish_attempt(dispatch, OK, now)
            done += 1
        running += [(now + seconds[dispatch.task.id], dispatch) for dispatch in board.take_due(now)]
        assert len(running) <= most
    assert board.queues[QUEUE].running_attempts == 0


operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9), offsets),
        st.tuples(st.just("delete"), st.integers(0, 9), offsets),
        st.tuples(st.just("run"), st.integers(0, 9), offsets),
        st.tuples(st.just("answer"), st.integers(0, 9), st.sampled_from([200, 204, 302, 404, 429, 500, 503])),
        st.tuples(st.sampled_from(["pause", "resume", "purge"]), st.just(0), offsets),
        st.tuples(st.just("pass"), st.just(0), offsets),
    ),
    max_size=60,
)


@settings(max_examples=200)
@given(operations, st.integers(1, 4), st.integers(1, 3))
def test_any_sequence_of_events_keeps_the_queue_consistent(  # noqa: C901, PLR0912 - one branch for each event
    steps: list[tuple[str, int, object]], attempts: int, concurrent: int
) -> None:
    """No task is lost or stuck, none is delivered after it ended, counters agree, and names stay taken."""
    board = make_queues(
        rate_limits=RateLimits(5, concurrent, 2), retry_config=RetryConfig(attempts, min_backoff=SECOND)
    )
    queue = board.queues[QUEUE]
    now, flying, dispatched = START, [], Counter[str]()
    ever: set[str] = set()
    codes: set[Code] = set()
    for verb, number, argument in steps:
        name = f"t{number}"
        if isinstance(argument, timedelta):
            now += argument
        try:
            if verb == "add":
                add(board, name, now + SECOND, now)
                ever.add(name)
            elif verb == "delete":
                board.find(QUEUE).remove(name, now)
            elif verb == "run":
                flying.append(board.find(QUEUE).run_now(name, now))
                dispatched[name] += 1
            elif verb == "answer" and flying:
                board.finish_attempt(flying.pop(number % len(flying)), HttpResult(status=int(str(argument))), now)
            elif verb in {"pause", "resume"}:
                board.pause_queue(QUEUE, paused=verb == "pause")
            elif verb == "purge":
                board.purge_queue(QUEUE, now)
        except RpcError as refused:
            codes.add(refused.code)
        for dispatch in board.take_due(now):
            assert not queue.paused
            assert dispatch.task.id in queue.tasks
            assert dispatch.schedule_at <= now
            dispatched[dispatch.task.id] += 1
            flying.append(dispatch)
        assert queue.running_attempts == len(flying)
        for task in queue.tasks.values():
            assert task.running_attempts or task.ticket
            assert task.dispatch_count == dispatched[task.id]
    board.pause_queue(QUEUE, paused=False)
    for dispatch in flying:
        board.finish_attempt(dispatch, OK, now)
    run(board, now + 2 * DAY)
    assert not queue.tasks
    assert board.next_wake() is None
    assert codes <= {Code.ALREADY_EXISTS, Code.NOT_FOUND}
    for name in ever:
        with pytest.raises(RpcError):
            add(board, name, now, now)


def test_a_name_stays_taken_for_a_day_after_its_task_ended() -> None:
    board = make_queues()
    add(board, "once")
    run(board, START)
    with pytest.raises(RpcError, match="Requested entity already exists"):
        add(board, "once", START, START + 24 * HOUR - SECOND)
    with pytest.raises(RpcError, match="existed recently"):
        board.find(QUEUE).get("once", START + SECOND)
    add(board, "once", START, START + 24 * HOUR)


def test_a_deleted_queues_name_stays_taken_for_a_week() -> None:
    board = make_queues()
    board.delete_queue(QUEUE, START)
    with pytest.raises(RpcError, match="existed too recently"):
        board.create_queue(QUEUE, QueueConfig(), START + 7 * DAY - SECOND)
    board.create_queue(QUEUE, QueueConfig(), START + 7 * DAY)


def test_a_task_is_dropped_after_the_attempts_of_its_own_or_its_queues_config() -> None:
    board = make_queues(retry_config=RetryConfig(max_attempts=5))
    add(board, "queue's")
    add(board, "own", retry_config=RetryConfig(max_attempts=2))
    sent = Counter(dispatch.task.id for dispatch in run(board, START + DAY, FAILED))
    assert sent == {"queue's": 5, "own": 2}


def test_unlimited_attempts_end_with_the_retention() -> None:
    board = make_queues(retry_config=RetryConfig(max_attempts=-1))
    add(board, "stubborn")
    sent = run(board, START + 40 * DAY, FAILED)
    assert len(sent) > 700
    assert sent[-1].dispatch_at < START + 31 * DAY
    assert not board.queues[QUEUE].tasks


def test_a_paused_queue_keeps_tasks_until_their_retention_ends() -> None:
    board = make_queues()
    board.pause_queue(QUEUE, paused=True)
    add(board, "waits")
    add(board, "forgotten")
    assert board.next_wake() is None
    with pytest.raises(RpcError, match="existed recently"):
        board.find(QUEUE).get("forgotten", START + 31 * DAY)
    board.pause_queue(QUEUE, paused=False)
    assert [dispatch.task.id for dispatch in board.take_due(START + 30 * DAY)] == ["waits"]


def test_run_task_ignores_pause_rate_and_schedule_and_backs_off() -> None:
    board = make_queues(rate_limits=RateLimits(0.001, 1, 1), retry_config=RetryConfig(min_backoff=10 * SECOND))
    add(board, "first")
    board.take_due(START)
    task = add(board, "later", START + 9 * DAY)
    board.pause_queue(QUEUE, paused=True)
    dispatch = board.find(QUEUE).run_now("later", START)
    assert dispatch.schedule_at == START
    board.finish_attempt(dispatch, FAILED, START + SECOND)
    assert task.schedule_at == START + 11 * SECOND


def test_429_and_503_slow_the_queue_and_success_restores_its_rate() -> None:
    bucket = TokenBucket.full(RateLimits(100), START)
    for second in range(4):
        bucket.on_response(HttpResult(status=503 if second % 2 else 429), START + second * SECOND)
    assert bucket.rate == pytest.approx(100 / 16)
    bucket.on_response(FAILED, START + 9 * SECOND)
    assert bucket.rate == pytest.approx(100 / 16)
    for _ in range(40):
        bucket.on_response(OK, START + 9 * SECOND)
    assert bucket.rate == 100


def test_a_clock_that_is_set_back_does_not_stop_the_queue() -> None:
    board = make_queues()
    add(board, "t1")
    run(board, START)
    earlier = START - 365 * DAY
    board.rewind(earlier)
    add(board, "t2", earlier, earlier)
    assert [dispatch.task.id for dispatch in board.take_due(earlier)] == ["t2"]
