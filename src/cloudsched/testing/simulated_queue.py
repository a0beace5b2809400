"""The queue of a simulation: the model of the local Cloud Tasks, without its threads and sockets."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from cloudsched.emulator.model.errors import Code, RpcError
from cloudsched.emulator.model.queue import CloudQueue, QueueConfig
from cloudsched.emulator.model.task import HORIZON, HttpResult, HttpTarget
from cloudsched.emulator.model.task import CloudTask as QueuedTask
from cloudsched.emulator.model.token_bucket import TokenBucket
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.errors import CloudschedError, InvalidInput, QueueUnavailable, Unauthenticated, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.adapters.clocks import ManualClock
    from cloudsched.domain.documents.policy import Priority
    from cloudsched.domain.transitions.claim import DeliveryResult

_TOKEN_HEADER: Final = "X-Cloudsched-Token"  # noqa: S105 - the name of a header, not a token


@dataclass(frozen=True, slots=True)
class Delivery:
    """One call of the queue that reached the executor."""

    at: datetime
    name: str
    body: bytes
    result: DeliveryResult | None
    error: Exception | None = None


class SimulatedQueue:
    """A `Dispatcher` over the local Cloud Tasks' queue model.

    It delivers when the simulation moves the clock.
    """

    def __init__(self, clock: ManualClock, deliver: Callable[[bytes, str], DeliveryResult]) -> None:
        config = QueueConfig()
        self._model = CloudQueue("simulated", config, TokenBucket.full(config.rate_limits, clock.at))
        self._clock = clock
        self.deliver = deliver
        """Called with the body and the token of each delivery. Replace it to wrap deliveries, as in a fault
        test."""
        self.is_down = False
        """Set it to True to make the queue unreachable. `create` then raises QueueUnavailable."""
        self.holds = False
        """Set it to True to pause the queue: it takes dispatches, and delivers nothing until it is False again."""
        self.deliveries: list[Delivery] = []
        """Everything that was delivered, in order."""

    def create(self, message: QueueMessage) -> None:
        """Enqueue a dispatch, with the limits of the real service."""
        if self.is_down:
            raise QueueUnavailable("The simulated queue", "the test has set `is_down`")
        now = self._clock.at
        if message.at > now + HORIZON:
            raise QueueUnavailable("The simulated queue", f"it accepts nothing more than {HORIZON.days} days ahead")
        target = HttpTarget("http://executor", headers={_TOKEN_HEADER: message.token}, body=message.body)
        try:
            self._model.add(QueuedTask(message.name, target, max(message.at, now), now), now)
        except RpcError as refused:
            if refused.code is not Code.ALREADY_EXISTS:
                raise QueueUnavailable("The simulated queue", str(refused)) from refused

    def find_paused(self, _priority: Priority) -> str | None:
        """Return its name if the test has paused it."""
        return "simulated" if self.holds else None

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def purge(self) -> None:
        """Delete all pending dispatches, as a purge of the real queue does."""
        self._model.purge(self._clock.at)

    def pending(self) -> list[QueueMessage]:
        """Return the dispatches that have not been delivered successfully yet, the earliest first."""
        tasks = sorted(self._model.tasks.values(), key=lambda each: (each.schedule_at, each.id))
        return [
            QueueMessage(each.id, each.schedule_at, each.target.body, each.target.headers[_TOKEN_HEADER])
            for each in tasks
        ]

    def wake_at(self) -> datetime | None:
        """Return the instant of the queue's next delivery, or None if nothing is pending, or it is paused."""
        return None if self.holds else self._model.wake_at()

    def deliver_due(self) -> None:
        """Deliver everything that is due. A failed delivery is retried with the queue's backoff."""
        while not self.holds and (sent := next(self._model.take_due(self._clock.at), None)) is not None:
            answer = self._attempt(sent.task)
            self._model.finish_attempt(sent, answer, self._clock.at)

    def _attempt(self, task: QueuedTask) -> HttpResult:
        body = task.target.body
        at = self._clock.at
        result: DeliveryResult | None = None
        error: CloudschedError | None = None
        status = HTTPStatus.NO_CONTENT
        try:
            result = self.deliver(body, task.target.headers[_TOKEN_HEADER])
        except (Unauthenticated, InvalidInput) as refused:
            error = refused
            status = HTTPStatus.BAD_REQUEST
        except Unavailable as refused:
            error = refused
            status = HTTPStatus.SERVICE_UNAVAILABLE
        self.deliveries.append(Delivery(at, task.id, body, result, error))
        return HttpResult(status=status)
