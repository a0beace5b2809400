"""The moving part: sends what is due when it is due, and walks the clock.

Everything here runs in one event loop. The board says what is to be sent and when it next has something; the runner
holds one timer for that, and one for each attempt's deadline. While the clock stands still there are no timers: what
is due at that instant is sent, and nothing else happens until the clock moves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.emulator.model.faults import DROP_ANSWER, DUPLICATE, NONE, TIME_OUT
from cloudsched.emulator.model.queue import Dispatch
from cloudsched.emulator.model.task import Answer
from cloudsched.emulator.runtime.history import Attempt, History, Request

if TYPE_CHECKING:
    from cloudsched.emulator.model.queues import Board
    from cloudsched.emulator.runtime.clock import MovableClock

DEFAULT_PATIENCE: Final = timedelta(minutes=1)
DEFAULT_LIMIT: Final = 100_000

Send = Callable[[Request], Awaitable[Answer]]
Plan = Callable[[Dispatch], Request]


class ClockBusy(RuntimeError):
    """The clock is being walked already; two walks at once have no meaning."""

    def __init__(self) -> None:
        super().__init__(
            "The clock is being moved already. A handler that was called while it moves must not move it as well."
        )


class NotIdle(RuntimeError):
    """The limit was reached before the queues were idle.

    Attributes:
        delivered: How many dispatches were delivered.
    """

    def __init__(self, delivered: int) -> None:
        self.delivered = delivered
        super().__init__(
            f"After {delivered} dispatches there are still tasks to deliver. A task that always schedules another "
            "never leaves the queue idle; advance by a span of time instead, or raise the limit."
        )


@dataclass(slots=True, eq=False)
class _Flight:
    """An attempt that has no answer yet."""

    dispatch: Dispatch
    request: Request
    sending: asyncio.Future[Answer] | None = None
    timer: asyncio.TimerHandle | None = None
    overdue: bool = False
    """It reached its deadline."""
    hung: bool = False
    """A walk has waited for it long enough, and goes on without it."""
    fault: str = NONE


class Runner:
    """Sends what is due.

    Args:
        board: What is to be sent.
        clock: When it is.
        plan: Makes the request of a dispatch.
        send: Sends a request and returns the answer, whatever happens.
        history: Keeps the attempts.
        patience: For how much real time a walk waits for a silent target before it lets the clock go on without it,
            up to the attempt's deadline.
    """

    def __init__(
        self,
        board: Board,
        clock: MovableClock,
        plan: Plan,
        send: Send,
        history: History,
        patience: timedelta = DEFAULT_PATIENCE,
    ) -> None:
        self._board = board
        self._clock = clock
        self._plan = plan
        self._send = send
        self._history = history
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._flights: dict[asyncio.Task[None], _Flight] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: datetime | None = None
        self._kicked = False
        self._landed = asyncio.Event()
        self._walking = False
        self._hung = 0
        self._seen_at = clock.now()
        self._closed = False
        self.delivered = 0

    # Now -------------------------------------------------------------------------------------------------------

    def kick(self) -> None:
        """Look for due work soon; to be called after each change of the board."""
        if not self._kicked and not self._closed:
            self._kicked = True
            self._loop.call_soon(self._kick)

    def start(self, dispatch: Dispatch) -> None:
        """Send one dispatch."""
        fault = self._board.faults.fault(dispatch.task.id, dispatch.attempt) if self._board.faults.any else NONE
        self._launch(dispatch, fault)
        if fault == DUPLICATE:
            self._launch(dispatch.queue.twice(dispatch), fault)

    def clock_changed(self) -> None:
        """Put all timers right after the clock was set, frozen or resumed."""
        self._cancel_timer()
        for flight in tuple(self._flights.values()):
            self._time(flight)
        now = self._clock.now()
        if now < self._seen_at:
            self._board.set_back(now)
        self._seen_at = now
        self.kick()

    async def close(self) -> None:
        """Give up what is under way, and send nothing more."""
        self._closed = True
        await self.abandon()

    async def abandon(self) -> None:
        """Give up what is under way."""
        self._cancel_timer()
        flights = list(self._flights)
        for task in flights:
            task.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    @property
    def walking(self) -> bool:
        """Whether the clock is being moved."""
        return self._walking

    def _launch(self, dispatch: Dispatch, fault: str) -> None:
        flight = _Flight(dispatch, self._plan(dispatch), fault=fault)
        task = self._loop.create_task(self._fly(flight))
        self._flights[task] = flight
        task.add_done_callback(self._land)

    def _kick(self) -> None:
        self._kicked = False
        if self._closed:
            return
        for dispatch in self._board.due(self._clock.now()):
            self.start(dispatch)
        self._set_timer()

    def _set_timer(self) -> None:
        at = self._board.next_wake() if self._clock.mode == "running" else None
        if at == self._timer_at:
            return
        self._cancel_timer()
        if at is not None:
            wait = (at - self._clock.now()).total_seconds()
            self._timer_at = at
            self._timer = self._loop.call_later(max(0.0, wait), self._ring)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timer_at = None

    def _ring(self) -> None:
        self._timer = self._timer_at = None
        self._kick()

    # One attempt -----------------------------------------------------------------------------------------------

    async def _fly(self, flight: _Flight) -> None:
        began = self._loop.time()
        sending: asyncio.Future[Answer] = asyncio.ensure_future(self._send(flight.request))
        flight.sending = sending
        self._time(flight)
        try:
            answer = await sending
            if flight.fault == DROP_ANSWER:
                answer = Answer(failure="The answer was dropped, on purpose.")
            elif flight.fault == TIME_OUT:
                flight.sending = sending = self._loop.create_future()
                self._hung += not flight.hung
                flight.hung = True  # a walk need not wait for what will not come
                self._landed.set()
                answer = await sending
        except asyncio.CancelledError:
            if not flight.overdue:
                raise
            answer = Answer(timed_out=True, failure="The target did not answer by the dispatch deadline.")
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
                answer=answer,
                fault=flight.fault,
            )
        )
        self.delivered += 1
        self._board.answered(dispatch, answer, now)
        self.kick()

    def _time(self, flight: _Flight) -> None:
        if flight.timer is not None:
            flight.timer.cancel()
            flight.timer = None
        left = (flight.dispatch.deadline_at - self._clock.now()).total_seconds()
        if left <= 0:
            self._expire(flight)
        elif self._clock.mode == "running":
            flight.timer = self._loop.call_later(left, self._expire, flight)

    def _expire(self, flight: _Flight) -> None:
        flight.overdue = True
        self._hung -= flight.hung
        flight.hung = False  # it lands at once: a walk waits for that
        if flight.sending is not None:
            flight.sending.cancel()

    def _land(self, task: asyncio.Task[None]) -> None:
        flight = self._flights.pop(task)
        self._hung -= flight.hung
        self._landed.set()
        if not task.cancelled():
            task.result()

    # The walk --------------------------------------------------------------------------------------------------

    async def advance_to(self, instant: datetime) -> int:
        """Move the clock forward to an instant, delivering all that is due on the way, each at its own instant.

        Returns:
            How many dispatches were delivered.

        Raises:
            ValueError: if the instant is past.
            ClockBusy: if the clock is being moved already.
        """
        if instant < self._clock.now():
            raise ValueError(f"{instant.isoformat()} is past; it is {self._clock.now().isoformat()} now.")
        return await self._walk(lambda _begin: instant, None)

    async def advance(self, by: timedelta) -> int:
        """Move the clock forward by a span; see `advance_to`.

        Raises:
            ValueError: if the span is negative.
            OverflowError: if it ends beyond the year 9999.
            ClockBusy: if the clock is being moved already.
        """
        if by < timedelta(0):
            raise ValueError("The clock cannot be advanced into the past; freeze it there instead.")
        return await self._walk(lambda begin: begin + by, None)

    async def run_until_idle(self, limit: int = DEFAULT_LIMIT) -> int:
        """Move the clock from dispatch to dispatch until nothing is left that could be delivered.

        Returns:
            How many dispatches were delivered.

        Raises:
            NotIdle: if that many dispatches were delivered and there are still more.
            ClockBusy: if the clock is being moved already.
        """
        return await self._walk(None, limit)

    async def _walk(self, end: Callable[[datetime], datetime] | None, limit: int | None) -> int:
        if self._walking:
            raise ClockBusy
        self._walking = True
        before = self.delivered
        was_running = self._clock.mode == "running"
        try:
            self._clock.freeze()
            until = end(self._clock.now()) if end is not None else None
            while True:
                await self._settle()
                if limit is not None and self.delivered - before >= limit:
                    raise NotIdle(self.delivered - before)
                at = self._next_event()
                if at is None or (until is not None and at > until):
                    break
                self._clock.freeze(at)
            if until is not None:
                self._clock.freeze(max(until, self._clock.now()))
                await self._settle()
        finally:
            self._walking = False
            for flight in self._flights.values():
                flight.hung = flight.hung and flight.fault == TIME_OUT
            self._hung = sum(flight.hung for flight in self._flights.values())
            if was_running:
                self._clock.resume()
        return self.delivered - before

    async def _settle(self) -> None:
        """Send what is due now, and wait until all that is under way has been answered, until nothing is left."""
        while True:
            self._kick()
            if len(self._flights) == self._hung:
                return
            self._landed.clear()
            try:
                async with asyncio.timeout(self._patience.total_seconds()):
                    await self._landed.wait()
            except TimeoutError:
                for flight in self._flights.values():
                    flight.hung = True
                self._hung = len(self._flights)

    def _next_event(self) -> datetime | None:
        deadlines = [flight.dispatch.deadline_at for flight in self._flights.values() if flight.hung]
        wake = self._board.next_wake()
        return min([*deadlines, wake] if wake is not None else deadlines, default=None)
