"""`/clock`: what time it is, and moving it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from cloudsched.emulator.http.control_json import BadRequest, read_instant, read_span
from cloudsched.emulator.runtime.dispatcher import DEFAULT_LIMIT, ClockBusy, NotIdle, Runner
from cloudsched.emulator.runtime.history import rfc3339

if TYPE_CHECKING:
    from cloudsched.emulator.runtime.clock import MovableClock

_ClockCall = Callable[[Any], Awaitable[int]]


class ClockControl:
    """Reads and carries out commands to the clock.

    Args:
        clock: The clock that is shown and moved.
        runner: What walks it.
    """

    def __init__(self, clock: MovableClock, runner: Runner) -> None:
        self._clock = clock
        self._runner = runner
        self._moves: dict[str, _ClockCall] = {
            "freeze": self._freeze,
            "advance": self._advance,
            "advanceTo": self._advance_to,
            "resume": self._resume,
            "runUntilIdle": self._run_until_idle,
        }

    def show(self) -> dict[str, Any]:
        """What time it is."""
        return {"now": rfc3339(self._clock.now()), "mode": self._clock.mode}

    async def move(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what a command says; returns, when it is done, what time it is and how many dispatches were delivered.

        Raises:
            BadRequest: if it is none.
            ClockBusy: if the clock is being moved already.
        """
        if len(command) != 1 or not command.keys() <= self._moves.keys():
            raise BadRequest(f'Say exactly one of {", ".join(self._moves)}, such as {{"advance": "P30D"}}.')
        if self._runner.walking:
            raise ClockBusy
        ((verb, argument),) = command.items()
        delivered, idle = 0, True
        try:
            delivered = await self._moves[verb](argument)
        except NotIdle as error:
            delivered, idle = error.delivered, False
        state = {**self.show(), "delivered": delivered}
        return {**state, "idle": idle} if verb == "runUntilIdle" else state

    async def _freeze(self, argument: object) -> int:
        if argument is True:
            self._clock.freeze()
        elif isinstance(argument, str):
            self._clock.freeze(read_instant(argument))
        else:
            raise BadRequest('freeze takes true or an instant, such as "2027-01-01T00:00:00Z".')
        return 0

    async def _resume(self, argument: object) -> int:
        if argument is not True:
            raise BadRequest("resume takes true.")
        self._clock.resume()
        return 0

    async def _advance(self, argument: object) -> int:
        span = read_span(argument)
        try:
            return await self._runner.advance(span)
        except OverflowError:
            raise BadRequest("That is beyond the year 9999.") from None

    async def _advance_to(self, argument: object) -> int:
        try:
            return await self._runner.advance_to(read_instant(argument))
        except BadRequest:
            raise
        except ValueError as error:
            raise BadRequest(str(error)) from None

    async def _run_until_idle(self, argument: object) -> int:
        if argument is True:
            return await self._runner.run_until_idle()
        if isinstance(argument, int) and 0 < argument <= DEFAULT_LIMIT:
            return await self._runner.run_until_idle(argument)
        raise BadRequest(f"runUntilIdle takes true, or the most dispatches to deliver, up to {DEFAULT_LIMIT}.")
