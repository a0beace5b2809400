"""What the emulator offers beside Cloud Tasks, as JSON over HTTP: the clock, and whether it is alive."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.emulator.history import rfc3339
from cloudsched.emulator.rest import Reply
from cloudsched.emulator.runner import DEFAULT_LIMIT, ClockBusy, NotIdle, Runner

if TYPE_CHECKING:
    from cloudsched.emulator.clock import MovableClock

_DURATION: Final = re.compile(
    r"P(?:(?P<weeks>\d+(?:\.\d+)?)W)?(?:(?P<days>\d+(?:\.\d+)?)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+(?:\.\d+)?)H)?(?:(?P<minutes>\d+(?:\.\d+)?)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_ClockCall = Callable[[Any], Awaitable[int]]


class BadRequest(ValueError):
    """The request cannot be understood; the message says what would be."""


class Control:
    """The control interface.

    Args:
        clock: The clock that is shown and moved.
        runner: What moves it.
    """

    def __init__(self, clock: MovableClock, runner: Runner) -> None:
        self._clock = clock
        self._runner = runner
        self._routes: dict[tuple[str, str], Callable[[Mapping[str, str], bytes], Awaitable[Reply]]] = {
            ("GET", "/healthz"): self._health,
            ("GET", "/clock"): self._show_clock,
            ("POST", "/clock"): self._move_clock,
        }
        self._moves: dict[str, _ClockCall] = {
            "freeze": self._freeze,
            "advance": self._advance,
            "advanceTo": self._advance_to,
            "resume": self._resume,
            "runUntilIdle": self._run_until_idle,
        }

    async def answer(self, verb: str, path: str, query: Mapping[str, str], body: bytes) -> Reply | None:
        """The reply to a request, or None if it is not for the control interface."""
        route = self._routes.get((verb, path))
        if route is None:
            return None
        try:
            return await route(query, body)
        except BadRequest as error:
            return _problem(400, str(error))
        except ClockBusy as error:
            return _problem(409, str(error))

    async def _health(self, _query: Mapping[str, str], _body: bytes) -> Reply:
        return Reply(200, {"status": "ok"})

    async def _show_clock(self, _query: Mapping[str, str], _body: bytes) -> Reply:
        return Reply(200, self._clock_state())

    async def _move_clock(self, _query: Mapping[str, str], body: bytes) -> Reply:
        command = read_object(body)
        if len(command) != 1 or not command.keys() <= self._moves.keys():
            raise BadRequest(f'Say exactly one of {", ".join(self._moves)}, such as {{"advance": "P30D"}}.')
        ((verb, argument),) = command.items()
        delivered, idle = 0, True
        try:
            delivered = await self._moves[verb](argument)
        except NotIdle as error:
            delivered, idle = error.delivered, False
        state = {**self._clock_state(), "delivered": delivered}
        return Reply(200, {**state, "idle": idle} if verb == "runUntilIdle" else state)

    def _clock_state(self) -> dict[str, Any]:
        return {"now": rfc3339(self._clock.now()), "mode": self._clock.mode}

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
            return await self._runner.advance_to(self._clock.now() + span)
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


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body.

    Raises:
        BadRequest: if there is none.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"The body is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise BadRequest("The body must be a JSON object.")
    return content


def read_instant(text: object) -> datetime:
    """An RFC 3339 instant.

    Raises:
        BadRequest: if it is none, or has no offset from UTC.
    """
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
        at = at.astimezone(UTC) if at is not None and at.tzinfo is not None else None
    except (ValueError, OverflowError):
        at = None
    if at is None:
        raise BadRequest(f"{text!r} is not an instant with a time zone, such as 2027-01-01T00:00:00Z.")
    return at


def read_span(value: object) -> timedelta:
    """A length of time: an ISO 8601 duration in weeks, days, hours, minutes and seconds, or a number of seconds.

    Raises:
        BadRequest: if it is none, or negative.
    """
    problem = BadRequest(f'{value!r} is not a length of time, such as "P30D", "PT1H30M" or 90 (seconds).')
    try:
        if isinstance(value, str) and len(value) > 1 and (match := _DURATION.fullmatch(value)):
            return timedelta(**{unit: float(number) for unit, number in match.groupdict(default="0").items()})
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return timedelta(seconds=value)
    except (OverflowError, ValueError):
        raise problem from None
    raise problem


def _problem(status: int, message: str) -> Reply:
    return Reply(status, {"error": {"code": status, "message": message}})
