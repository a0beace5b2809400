"""A model of Cloud Tasks behind the real adapter: the emulator's queue model, driven by virtual time.

It answers CreateTask on the same protobuf messages, after that call's latency. Each queue has its rate, concurrency and
retries, as the deployment's scripts set them. All queues together may grow as fast as Cloud Tasks documents.
"""

from __future__ import annotations

import heapq
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from tests.scale.google_limits import QUEUE_API_CALLS_PER_SECOND, Ramp, RateWindows, Refusal, VirtualTime, to_seconds

from cloudsched.adapters.google.cloud_tasks import TOKEN_HEADER
from cloudsched.emulator.model.errors import Code, RpcError
from cloudsched.emulator.model.queue import Dispatch, Queue, QueueConfig
from cloudsched.emulator.model.task import HttpResult, HttpTarget, RateLimits, RetryConfig, Task
from cloudsched.emulator.model.token_bucket import TokenBucket
from cloudsched.testing import START

CREATE_SECONDS: Final = 0.020
PUSH_SECONDS: Final = 0.015
"""The median latency of CreateTask, and of the request that a queue makes: assumptions."""
RETRIES: Final = RetryConfig(
    max_attempts=100,
    max_retry_duration=timedelta(days=1),
    min_backoff=timedelta(seconds=1),
    max_backoff=timedelta(seconds=60),
    max_doublings=6,
)
"""What `infra/lib/project.sh` sets."""
_NUMBER = re.compile(r"-q(\d+)$")


@dataclass(frozen=True, slots=True)
class QueueSetup:
    """The queues of a deployment, and the part of them that is simulated.

    Attributes:
        count: How many queues each priority has.
        rate: The dispatches a second of each.
        concurrent: The concurrent dispatches of each.
        fraction: The part that is simulated: some queues, which together have that part of the rate of all.
    """

    count: int = 1
    rate: float = 200.0
    concurrent: int = 30
    fraction: float = 1.0

    @property
    def simulated(self) -> int:
        """How many queues are simulated."""
        return max(1, round(self.count * self.fraction))

    @property
    def limits(self) -> RateLimits:
        share = self.count * self.fraction / self.simulated
        whole = RateLimits(self.rate, self.concurrent)
        concurrent, burst = round(self.concurrent * share), round(whole.max_burst_size * share)
        return RateLimits(self.rate * share, max(1, concurrent), max(1, burst))


class QueuesModel:
    """All queues, their channel, and what happens next.

    Args:
        time: The virtual time.
        setup: The queues of the NORMAL priority; the others have the same.
        deliver: Gets a body and its token, and returns the HTTP status; it lets time pass.
    """

    def __init__(self, time: VirtualTime, setup: QueueSetup, deliver: Callable[[bytes, str], int]) -> None:
        self.setup = setup
        self.is_enforced = True
        """Whether creating too many tasks a second is refused."""
        self.ramp: Ramp | None = None
        self.counts: Counter[str] = Counter()
        self.dispatched: defaultdict[str, Counter[int]] = defaultdict(Counter)
        """How many each queue dispatched, by second."""
        self.busy_seconds = 0.0
        """How long all deliveries together took."""
        self._time = time
        self._deliver = deliver
        self._queues: dict[str, Queue] = {}
        self._calls = RateWindows(QUEUE_API_CALLS_PER_SECOND * setup.fraction)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._present = 0.0
        """The time of the event that happens at the moment; what it does may be ahead of that."""
        self._pumps: dict[str, float] = {}

    # ── The channel ──────────────────────────────────────────────────────────────────────────────────────────────

    def unary_unary(self, method: str, **_codec: Any) -> Callable[..., Any]:
        assert method.endswith("/CreateTask"), method
        return lambda request, **_options: self._create(request)

    def close(self) -> None:
        """Do nothing."""

    def _create(self, request: Any) -> bytes:  # noqa: ANN401 - a protobuf message
        self._time.pass_latency(CREATE_SECONDS)
        at = self._time.seconds
        if self.is_enforced:
            if not self._calls.has_room("calls", at) or (self.ramp is not None and not self.ramp.take(at)):
                self.counts["refused"] += 1
                raise Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many tasks are created")
            self._calls.add("calls", at)
        self.counts["created"] += 1
        self._add(request.parent.rpartition("/")[2], request.task)
        return b""

    def _add(self, queue_id: str, task: Any) -> None:  # noqa: ANN401 - a protobuf message
        name = self._fold(queue_id)
        queue = self._queues.get(name) or self._queues.setdefault(name, self._make(name))
        now = self._time.now()
        stamp = task.schedule_time
        at = START + timedelta(seconds=stamp.seconds - int(START.timestamp()), microseconds=stamp.nanos // 1_000)
        target = HttpTarget("", headers={TOKEN_HEADER: task.http_request.headers[TOKEN_HEADER]})
        target = replace(target, body=task.http_request.body)
        try:
            queue.add(Task(task.name.rpartition("/")[2], target, max(at, now), now), now)
        except RpcError as error:
            if error.code is not Code.ALREADY_EXISTS:
                raise
            raise Refusal(grpc.StatusCode.ALREADY_EXISTS, "") from error
        self._plan_pump(name)

    def _fold(self, queue_id: str) -> str:
        """Return the simulated queue that stands for a queue."""
        found = _NUMBER.search(queue_id)
        number = int(found[1]) if found else 1
        return f"{_NUMBER.sub('', queue_id)}-q{(number - 1) % self.setup.simulated + 1}"

    def _make(self, name: str) -> Queue:
        config = QueueConfig(rate_limits=self.setup.limits, retry_config=RETRIES)
        return Queue(name, config, TokenBucket.full(config.rate_limits, self._time.now()))

    # ── What happens ─────────────────────────────────────────────────────────────────────────────────────────────

    def at(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(seconds, self._present), next(self._numbers), act))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            at, _, act = heapq.heappop(self._events)
            self._time.seconds = self._present = at
            act()
        self._time.seconds = self._present = until

    def purge(self) -> int:
        """Delete everything that waits in all queues; return how much that was."""
        lost = sum(len(queue.tasks) for queue in self._queues.values())
        for queue in self._queues.values():
            queue.purge(self._time.now())
        return lost

    @property
    def pending(self) -> int:
        return sum(len(queue.tasks) for queue in self._queues.values())

    def find_use(self, since: float, until: float) -> float:
        """Return which part of its rate the busiest queue used between two times."""
        seconds = range(int(since), max(int(until), int(since) + 1))
        rates = [sum(each[second] for second in seconds) / len(seconds) for each in self.dispatched.values()]
        return max(rates, default=0.0) / self.setup.limits.max_dispatches_per_second

    def _plan_pump(self, name: str) -> None:
        """Have a queue dispatch when it can next, and not before what happens at the moment."""
        at = self._queues[name].wake_at()
        if at is None:
            return
        seconds = max(to_seconds(at), self._present)
        if seconds < self._pumps.get(name, float("inf")):
            self._pumps[name] = seconds
            self.at(seconds, lambda: self._pump(name, seconds))

    def _pump(self, name: str, planned: float) -> None:
        if self._pumps.get(name) == planned:
            del self._pumps[name]
        for dispatch in self._queues[name].take_due(self._time.now()):
            self._start(name, dispatch)
            self._time.seconds = self._present
        self._plan_pump(name)

    def _start(self, name: str, dispatch: Dispatch) -> None:
        begin = self._time.seconds
        self.counts["dispatched"] += 1
        self.dispatched[name][int(begin)] += 1
        self._time.pass_latency(PUSH_SECONDS)
        target = dispatch.target
        assert isinstance(target, HttpTarget)
        status = self._deliver(target.body, target.headers[TOKEN_HEADER])
        end = self._time.seconds
        self.busy_seconds += end - begin
        self.at(end, lambda: self._finish(name, dispatch, status))

    def _finish(self, name: str, dispatch: Dispatch, status: int) -> None:
        self._queues[name].finish_attempt(dispatch, HttpResult(status=status), self._time.now())
        self._plan_pump(name)
