"""`/clock`: read and move the clock."""

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
    """Carries out clock commands.

    Args:
        clock: The clock to show and move.
        dispatcher: Advances the clock and delivers what falls due on the way.
    """

    def __init__(self, clock: MovableClock, dispatcher: Dispatcher) -> None:
        self._clock = clock
        self._dispatcher = dispatcher
        self._commands: dict[str, _ClockCall] = {
            "freeze": self._freeze,
            "advance": self._advance,
            "advanceTo": self._advance_to,
            "resume": self._resume,
            "runUntilIdle": self._run_until_idle,
        }

    def show(self) -> dict[str, Any]:
        """Return the time and the clock's mode."""
        return {"now": format_rfc3339(self._clock.now()), "mode": self._clock.mode}

    async def move(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out a command; return the new time and how many dispatches were delivered.

        Raises:
            InvalidControlRequest: if it is not a valid command.
            ClockBusy: if the clock is already being moved.
        """
        if len(command) != 1 or not command.keys() <= self._commands.keys():
            raise InvalidControlRequest(
                f'Give exactly one of {", ".join(self._commands)}, for example {{"advance": "P30D"}}.'
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
            raise InvalidControlRequest('freeze takes true or an instant, for example "2027-01-01T00:00:00Z".')
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
            raise InvalidControlRequest("The result would lie beyond the year 9999.") from None

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
            f"runUntilIdle takes true, or the maximum number of dispatches to deliver, up to {DEFAULT_LIMIT}."
        )
