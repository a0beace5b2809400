"""Sends tasks when they are due, and advances the clock.

Everything here runs in one event loop. `Queues` says what to send and when the next task is due. The
dispatcher holds one timer for that and one for each attempt's deadline. While the clock is frozen there
are no timers: what is due at that instant is sent, and nothing else happens until the clock moves.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.emulator.model.faults import DROP_ANSWER, DUPLICATE, NONE, TIME_OUT
from cloudsched.emulator.model.task import HttpResult
from cloudsched.emulator.runtime.attempt_history import Attempt, History, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.emulator.model.queue import DispatchAttempt
    from cloudsched.emulator.model.queues import Queues
    from cloudsched.emulator.runtime.clock import MovableClock
    from cloudsched.emulator.runtime.http_sender import HttpSender

DEFAULT_TARGET_TIMEOUT: Final = timedelta(minutes=1)
DEFAULT_LIMIT: Final = 100_000


class ClockBusy(RuntimeError):
    """The clock is already being moved, and cannot be moved twice at once."""

    def __str__(self) -> str:
        return (
            "The clock is already being moved. A handler that is called while the clock moves must not move it as well."
        )


class NotIdle(RuntimeError):
    """The limit was reached and the queues are not idle.

    Attributes:
        delivered: The number of delivered dispatches.
    """

    def __init__(self, delivered: int) -> None:
        self.delivered = delivered
        super().__init__(delivered)

    def __str__(self) -> str:
        return (
            f"After {self.delivered} dispatches there are still tasks to deliver. If tasks keep creating tasks, "
            "the queues are never idle: advance by a duration instead, or raise the limit."
        )


@dataclass(slots=True, eq=False)
class _InFlight:
    dispatch: DispatchAttempt
    request: Request
    sending: asyncio.Future[HttpResult] | None = None
    timer: asyncio.TimerHandle | None = None
    is_overdue: bool = False
    """It has reached its deadline."""
    is_hung: bool = False
    """An advance of the clock no longer waits for it."""
    fault: str = NONE


class QueueDispatcher:
    """Sends tasks when they are due.

    The `target_timeout` is the real time that an advance of the clock waits for a target that does not
    respond, before the clock moves on to the attempt's deadline.
    """

    def __init__(
        self,
        queues: Queues,
        clock: MovableClock,
        sender: HttpSender,
        history: History,
        target_timeout: timedelta = DEFAULT_TARGET_TIMEOUT,
    ) -> None:
        self.queues = queues
        self._clock = clock
        self._sender = sender
        self._history = history
        self._target_timeout = target_timeout
        self._loop = asyncio.get_running_loop()

        self._in_flight: dict[asyncio.Task[None], _InFlight] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: datetime | None = None
        self._is_wake_scheduled = False
        self._attempt_finished = asyncio.Event()
        self.is_advancing: bool = False
        """True while the clock is being moved."""
        self._hung_count = 0
        self._last_now = clock.now()
        self._closed = False
        self._delivered = 0

    # Sending
    # -----------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Send due tasks soon. Call it after each change of the queues."""
        if not self._is_wake_scheduled and not self._closed:
            self._is_wake_scheduled = True
            self._loop.call_soon(self._send_due)

    def start(self, dispatch: DispatchAttempt) -> None:
        """Send one dispatch."""
        faults = self.queues.faults
        fault = faults.fault(dispatch.task.id, dispatch.attempt) if faults.any else NONE
        self._start_attempt(dispatch, fault)
        if fault == DUPLICATE:
            self._start_attempt(dispatch.queue.duplicate(dispatch), fault)

    def on_clock_changed(self) -> None:
        """Reset all timers after the clock was set, frozen or resumed."""
        self._cancel_timer()
        for flight in tuple(self._in_flight.values()):
            self._set_deadline_timer(flight)
        now = self._clock.now()
        if now < self._last_now:
            self.queues.rewind(now)
        self._last_now = now
        self.wake()

    async def close(self) -> None:
        """Abandon attempts in progress, and send nothing more."""
        self._closed = True
        self._cancel_timer()
        flights = list(self._in_flight)
        for task in flights:
            task.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    def _start_attempt(self, dispatch: DispatchAttempt, fault: str) -> None:
        flight = _InFlight(dispatch, self._sender.build_request(dispatch), fault=fault)
        task = self._loop.create_task(self._run_attempt(flight))
        self._in_flight[task] = flight
        task.add_done_callback(self._finish)

    def _send_due(self) -> None:
        self._is_wake_scheduled = False
        if self._closed:
            return
        for dispatch in self.queues.take_due(self._clock.now()):
            self.start(dispatch)
        self._set_timer()

    def _set_timer(self) -> None:
        at = self.queues.next_wake() if self._clock.mode == "running" else None
        if at == self._timer_at:
            return
        self._cancel_timer()
        if at is not None:
            wait = (at - self._clock.now()).total_seconds()
            self._timer_at = at
            self._timer = self._loop.call_later(max(0.0, wait), self._on_timer)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timer_at = None

    def _on_timer(self) -> None:
        self._timer = self._timer_at = None
        self._send_due()

    # One attempt
    # -------------------------------------------------------------------------------------------------

    async def _run_attempt(self, flight: _InFlight) -> None:
        began = self._loop.time()
        sending: asyncio.Future[HttpResult] = asyncio.ensure_future(self._sender.send(flight.request))
        flight.sending = sending
        self._set_deadline_timer(flight)

        try:
            result = await sending
            if flight.fault == DROP_ANSWER:
                result = HttpResult(failure="The response was dropped by an injected fault.")
            elif flight.fault == TIME_OUT:
                flight.sending = sending = self._loop.create_future()
                self._hung_count += not flight.is_hung
                flight.is_hung = True  # no response will come: the clock need not wait
                self._attempt_finished.set()
                result = await sending
        except asyncio.CancelledError:
            if not flight.is_overdue:
                raise
            reason = "The target did not respond by the dispatch deadline."
            result = HttpResult(timed_out=True, failure=reason)
        finally:
            if flight.timer is not None:
                flight.timer.cancel()

        now = self._clock.now()
        dispatch = flight.dispatch
        self._history.add(
            Attempt(
                queue=dispatch.queue.name,
                task=dispatch.task.id,
                attempt=dispatch.attempt,
                schedule_at=dispatch.schedule_at,
                dispatch_at=dispatch.dispatch_at,
                response_at=now,
                seconds=self._loop.time() - began,
                request=flight.request,
                answer=result,
                fault=flight.fault,
            )
        )

        self._delivered += 1
        self.queues.finish_attempt(dispatch, result, now)
        self.wake()

    def _set_deadline_timer(self, flight: _InFlight) -> None:
        if flight.timer is not None:
            flight.timer.cancel()
            flight.timer = None
        left = (flight.dispatch.deadline_at - self._clock.now()).total_seconds()
        if left <= 0:
            self._expire(flight)
        elif self._clock.mode == "running":
            flight.timer = self._loop.call_later(left, self._expire, flight)

    def _expire(self, flight: _InFlight) -> None:
        flight.is_overdue = True
        self._hung_count -= flight.is_hung
        flight.is_hung = False  # it finishes at once: wait for it
        if flight.sending is not None:
            flight.sending.cancel()

    def _finish(self, task: asyncio.Task[None]) -> None:
        flight = self._in_flight.pop(task)
        self._hung_count -= flight.is_hung
        self._attempt_finished.set()
        if not task.cancelled():
            task.result()

    # Advancing the clock
    # -----------------------------------------------------------------------------------------

    async def advance_to(self, instant: datetime) -> int:
        """Move the clock forward to an instant, and deliver what falls due on the way, each at its own instant."""
        if instant < self._clock.now():
            now = self._clock.now().isoformat()
            raise ValueError(f"{instant.isoformat()} is in the past; the clock shows {now}.")
        return await self._advance_clock(lambda _begin: instant, None)

    async def advance(self, by: timedelta) -> int:
        """Move the clock forward by a duration. See `advance_to`."""
        if by < timedelta(0):
            raise ValueError("The clock cannot be advanced into the past; freeze it at that instant instead.")
        return await self._advance_clock(lambda begin: begin + by, None)

    async def run_until_idle(self, limit: int = DEFAULT_LIMIT) -> int:
        """Move the clock from dispatch to dispatch until there is nothing left to deliver."""
        return await self._advance_clock(None, limit)

    async def _advance_clock(self, end: Callable[[datetime], datetime] | None, limit: int | None) -> int:
        if self.is_advancing:
            raise ClockBusy
        self.is_advancing = True
        before = self._delivered
        was_running = self._clock.mode == "running"

        try:
            self._clock.freeze()
            until = end(self._clock.now()) if end is not None else None
            while True:
                await self._wait_until_quiet()
                if limit is not None and self._delivered - before >= limit:
                    raise NotIdle(self._delivered - before)
                at = self._next_event()
                if at is None or (until is not None and at > until):
                    break
                self._clock.freeze(at)

            if until is not None:
                self._clock.freeze(max(until, self._clock.now()))
                await self._wait_until_quiet()
        finally:
            self.is_advancing = False
            for flight in self._in_flight.values():
                flight.is_hung = flight.is_hung and flight.fault == TIME_OUT
            self._hung_count = sum(flight.is_hung for flight in self._in_flight.values())
            if was_running:
                self._clock.resume()
        return self._delivered - before

    async def _wait_until_quiet(self) -> None:
        """Send what is due and wait for the responses, until nothing is due and nothing is in progress."""
        while True:
            self._send_due()
            if len(self._in_flight) == self._hung_count:
                return
            self._attempt_finished.clear()
            try:
                async with asyncio.timeout(self._target_timeout.total_seconds()):
                    await self._attempt_finished.wait()
            except TimeoutError:
                for flight in self._in_flight.values():
                    flight.is_hung = True
                self._hung_count = len(self._in_flight)

    def _next_event(self) -> datetime | None:
        instants = [flight.dispatch.deadline_at for flight in self._in_flight.values() if flight.is_hung]
        wake = self.queues.next_wake()
        if wake is not None:
            instants.append(wake)
        return min(instants, default=None)
