"""`/clock`: what time it is, and moving it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from cloudsched.emulator.http.control_json import InvalidControlRequest, read_duration, read_instant
from cloudsched.emulator.runtime.dispatcher import DEFAULT_LIMIT, ClockBusy, Dispatcher, NotIdle
from cloudsched.emulator.runtime.history import format_rfc3339

if TYPE_CHECKING:
    from cloudsched.emulator.runtime.clock import MovableClock

_ClockCall = Callable[[Any], Awaitable[int]]


class ClockControl:
    """Reads and carries out commands to the clock.

    Args:
        clock: The clock that is shown and moved.
        runner: What walks it.
    """

    def __init__(self, clock: MovableClock, runner: Dispatcher) -> None:
        self._clock = clock
        self._dispatcher = runner
        self._commands: dict[str, _ClockCall] = {
            "freeze": self._freeze,
            "advance": self._advance,
            "advanceTo": self._advance_to,
            "resume": self._resume,
            "runUntilIdle": self._run_until_idle,
        }

    def show(self) -> dict[str, Any]:
        """What time it is."""
        return {"now": format_rfc3339(self._clock.now()), "mode": self._clock.mode}

    async def move(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what a command says; returns, when it is done, what time it is and how many dispatches were delivered.

        Raises:
            BadRequest: if it is none.
            ClockBusy: if the clock is being moved already.
        """
        if len(command) != 1 or not command.keys() <= self._commands.keys():
            raise InvalidControlRequest(
                f'Say exactly one of {", ".join(self._commands)}, such as {{"advance": "P30D"}}.'
            )
        if self._dispatcher.is_advancing:
            raise ClockBusy
        ((verb, argument),) = command.items()
        delivered, idle = 0, True
        try:
            delivered = await self._commands[verb](argument)
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
            raise InvalidControlRequest('freeze takes true or an instant, such as "2027-01-01T00:00:00Z".')
        return 0

    async def _resume(self, argument: object) -> int:
        if argument is not True:
            raise InvalidControlRequest("resume takes true.")
        self._clock.resume()
        return 0

    async def _advance(self, argument: object) -> int:
        span = read_duration(argument)
        try:
            return await self._dispatcher.advance(span)
        except OverflowError:
            raise InvalidControlRequest("That is beyond the year 9999.") from None

    async def _advance_to(self, argument: object) -> int:
        try:
            return await self._dispatcher.advance_to(read_instant(argument))
        except InvalidControlRequest:
            raise
        except ValueError as error:
            raise InvalidControlRequest(str(error)) from None

    async def _run_until_idle(self, argument: object) -> int:
        if argument is True:
            return await self._dispatcher.run_until_idle()
        if isinstance(argument, int) and 0 < argument <= DEFAULT_LIMIT:
            return await self._dispatcher.run_until_idle(argument)
        raise InvalidControlRequest(
            f"runUntilIdle takes true, or the most dispatches to deliver, up to {DEFAULT_LIMIT}."
        )
