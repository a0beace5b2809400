"""The model of Cloud Tasks dispatches as many a second as a queue may, and no more."""

from __future__ import annotations

import random
from collections.abc import Callable

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.cloud.tasks_v2.types import cloudtasks
from tests.scale.cloud_tasks_model import QueueSetup, QueuesModel
from tests.scale.google_limits import Ramp, Refusal, VirtualTime

from cloudsched.testing import START


def make_queues(setup: QueueSetup, deliver: Callable[[VirtualTime], int]) -> tuple[QueuesModel, VirtualTime]:
    """Return queues, and their time."""
    time = VirtualTime(random.Random(0))  # noqa: S311 - a test is to be repeatable
    return QueuesModel(time, setup, lambda _body, _token: deliver(time)), time


def create(queues: QueuesModel, time: VirtualTime, count: int, queue: str = "q") -> int:
    """Create tasks that are due at once; return how many were taken."""
    call = queues.unary_unary("/google.cloud.tasks.v2.CloudTasks/CreateTask")
    codes = []
    for number in range(count):
        request = cloudtasks.CreateTaskRequest.pb()(parent=f"x/queues/{queue}")
        request.task.name = f"x/queues/{queue}/tasks/t{queue}-{number}"
        request.task.schedule_time.FromDatetime(START)
        time.seconds = 0.0
        try:
            call(request)
        except Refusal as refused:
            codes.append(refused.code())
            continue
        codes.append(grpc.StatusCode.OK)
    assert set(codes) <= {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
    return codes.count(grpc.StatusCode.OK)


def test_a_queue_dispatches_at_its_rate() -> None:
    """A burst of a fifth of its rate, then its rate."""
    queues, time = make_queues(QueueSetup(rate=50, concurrent=1_000), lambda _: 204)
    create(queues, time, 1_000)
    queues.run(10.0)
    assert abs(queues.counts["dispatched"] - (10 + 500)) <= 2
    queues.run(40.0)
    assert queues.counts["dispatched"] == 1_000
    assert queues.pending == 0


def test_queues_of_a_priority_have_a_rate_each() -> None:
    """Two of them dispatch twice as much; a part of several that are simulated has that part of their rate."""
    queues, time = make_queues(QueueSetup(count=2, rate=50, concurrent=1_000), lambda _: 204)
    create(queues, time, 600, "q")
    create(queues, time, 600, "q-q2")
    queues.run(5.0)
    assert abs(queues.counts["dispatched"] - 2 * (10 + 250)) <= 4
    part = QueueSetup(count=100, rate=500, fraction=0.002)
    assert (part.simulated, part.limits.max_dispatches_per_second) == (1, 100.0)


def test_no_more_run_at_a_time_than_a_queue_may_send() -> None:
    """Deliveries of ten seconds each: five at a time are half a dispatch a second."""

    def take_long(time: VirtualTime) -> int:
        time.sleep(10.0)
        return 204

    queues, time = make_queues(QueueSetup(rate=500, concurrent=5), take_long)
    create(queues, time, 100)
    queues.run(39.0)
    assert queues.counts["dispatched"] == 20


def test_what_is_refused_comes_again() -> None:
    """With pauses that grow; a name is taken once."""
    answers = iter([503, 503, 204])
    queues, time = make_queues(QueueSetup(), lambda _: next(answers))
    create(queues, time, 1)
    queues.run(60.0)
    assert (queues.counts["dispatched"], queues.pending) == (3, 0)


def test_tasks_are_created_as_fast_as_a_ramp_allows() -> None:
    """Above it CreateTask answers RESOURCE_EXHAUSTED."""
    queues, time = make_queues(QueueSetup(), lambda _: 204)
    queues.ramp = Ramp(level=20.0)
    assert create(queues, time, 100) == 20
