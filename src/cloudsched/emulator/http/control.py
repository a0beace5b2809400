"""The control API, as JSON over HTTP: clock, attempts, faults, tokens. docs/reference/emulator.md lists it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from cloudsched.emulator.http.control_json import (
    InvalidControlRequest,
    read_duration,
    read_faults,
    read_instant,
    read_object,
    write_faults,
)
from cloudsched.emulator.http.rest import Reply
from cloudsched.emulator.runtime.dispatcher import DEFAULT_LIMIT, ClockBusy, Dispatcher, NotIdle
from cloudsched.emulator.runtime.history import format_rfc3339
from cloudsched.emulator.runtime.operations import ControlOperations, StillWaiting, UnknownTask
from cloudsched.emulator.runtime.tokens import TOKEN_MODES, TokenIssuer

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
        """Carry out a command. Return the new time and the number of delivered dispatches.

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


_MAX_WAIT_SECONDS: Final = 600.0
_Route = Callable[[Mapping[str, str], bytes], Awaitable[Mapping[str, Any]]]


class Control:
    """The control API.

    Args:
        operations: Carries out the requests.
        clock: Shows and moves the clock.
        tokens: The issuer whose keys are published and whose mode can be set.
    """

    def __init__(self, operations: ControlOperations, clock: ClockControl, tokens: TokenIssuer) -> None:
        self._operations = operations
        self._clock = clock
        self._tokens = tokens
        self._routes: dict[tuple[str, str], _Route] = {
            ("GET", "/healthz"): self._health,
            ("GET", "/clock"): self._show_clock,
            ("POST", "/clock"): self._move_clock,
            ("GET", "/attempts"): self._show_attempts,
            ("GET", "/tasks"): self._show_tasks,
            ("POST", "/wait"): self._wait,
            ("POST", "/reset"): self._reset,
            ("GET", "/faults"): self._show_faults,
            ("POST", "/faults"): self._set_faults,
            ("GET", "/tokens"): self._show_tokens,
            ("POST", "/tokens"): self._set_tokens,
            ("GET", "/oauth2/v3/certs"): self._show_jwks,
            ("GET", "/oauth2/v1/certs"): self._show_certificates,
        }

    async def handle(self, verb: str, path: str, query: Mapping[str, str], body: bytes) -> Reply | None:
        """Return the response to a request, or None if it is not one of the control API."""
        route = self._routes.get((verb, path))
        if route is None:
            return None
        try:
            return Reply(200, await route(query, body))
        except InvalidControlRequest as error:
            return _error_reply(400, str(error))
        except UnknownTask as error:
            return _error_reply(404, str(error))
        except ClockBusy as error:
            return _error_reply(409, str(error))

    async def _health(self, _query: Mapping[str, str], _body: bytes) -> Mapping[str, Any]:
        return {"status": "ok"}

    async def _show_clock(self, _query: Mapping[str, str], _body: bytes) -> Mapping[str, Any]:
        return self._clock.show()

    async def _move_clock(self, _query: Mapping[str, str], body: bytes) -> Mapping[str, Any]:
        return await self._clock.move(read_object(body))

    async def _show_attempts(self, query: Mapping[str, str], _body: bytes) -> Mapping[str, Any]:
        attempts = self._operations.parts.history.attempts(query.get("queue", ""), query.get("task", ""))
        return {"attempts": [attempt.to_json() for attempt in attempts]}

    async def _show_tasks(self, query: Mapping[str, str], _body: bytes) -> Mapping[str, Any]:
        if name := query.get("task"):
            explanation = self._operations.explain(name)
            return {"tasks": [] if explanation is None else [explanation.to_json()]}
        return {
            "tasks": [explanation.to_json() for explanation in self._operations.list_waiting(query.get("queue", ""))]
        }

    async def _wait(self, _query: Mapping[str, str], body: bytes) -> Mapping[str, Any]:
        command = read_object(body)
        name = command.get("task")
        if not isinstance(name, str) or not command.keys() <= {"task", "timeout"}:
            raise InvalidControlRequest('Give the full name of the task: {"task": "projects/...", "timeout": 10}.')
        seconds = min(read_duration(command.get("timeout", 10)).total_seconds(), _MAX_WAIT_SECONDS)
        try:
            attempts = await self._operations.wait(name, seconds)
        except StillWaiting as waiting:
            return {"done": False, "why": waiting.explanation.to_json()}
        return {"done": True, "attempts": [attempt.to_json() for attempt in attempts]}

    async def _reset(self, _query: Mapping[str, str], _body: bytes) -> Mapping[str, Any]:
        await self._operations.reset()
        return {}

    async def _show_faults(self, _query: Mapping[str, str], _body: bytes) -> Mapping[str, Any]:
        return write_faults(self._operations.parts.queues.faults)

    async def _set_faults(self, query: Mapping[str, str], body: bytes) -> Mapping[str, Any]:
        self._operations.parts.queues.set_faults(read_faults(read_object(body)))
        return await self._show_faults(query, body)

    async def _show_tokens(self, _query: Mapping[str, str], _body: bytes) -> Mapping[str, Any]:
        return {"mode": self._tokens.mode}

    async def _set_tokens(self, _query: Mapping[str, str], body: bytes) -> Mapping[str, Any]:
        mode = read_object(body).get("mode")
        if mode not in TOKEN_MODES:
            raise InvalidControlRequest(f"mode must be one of {', '.join(TOKEN_MODES)}, not {mode!r}.")
        self._tokens.mode = mode
        return {"mode": mode}

    async def _show_jwks(self, _query: Mapping[str, str], _body: bytes) -> Mapping[str, Any]:
        return self._tokens.jwks

    async def _show_certificates(self, _query: Mapping[str, str], _body: bytes) -> Mapping[str, Any]:
        return self._tokens.certificates


def _error_reply(status: int, message: str) -> Reply:
    return Reply(status, {"error": {"code": status, "message": message}})
