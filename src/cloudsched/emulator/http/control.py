"""The control API, as JSON over HTTP: clock, attempts, faults, tokens (see docs/reference/resources.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from cloudsched.emulator.http.rest import Reply, refuse
from cloudsched.emulator.model.faults import Faults
from cloudsched.emulator.model.names import parse_duration, parse_instant
from cloudsched.emulator.runtime.attempt_history import History, format_rfc3339
from cloudsched.emulator.runtime.dispatcher import DEFAULT_LIMIT, ClockBusy, NotIdle, QueueDispatcher
from cloudsched.emulator.runtime.tokens import TOKEN_MODES, TokenIssuer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.emulator.model.queues import Queues
    from cloudsched.emulator.runtime.clock import MovableClock


_CLOCK_HELP: Final = (
    'Give exactly one of {"freeze": true}, {"freeze": "2027-01-01T00:00:00Z"}, {"resume": true}, '
    '{"advance": "P30D"}, {"advanceTo": "2027-01-01T00:00:00Z"} and {"runUntilIdle": true}, '
    f"or instead of the last true the maximum number of dispatches to deliver, up to {DEFAULT_LIMIT}."
)


class Control:
    """The control API."""

    def __init__(
        self,
        clock: MovableClock,
        dispatcher: QueueDispatcher,
        queues: Queues,
        history: History,
        tokens: TokenIssuer,
    ) -> None:
        self._clock = clock
        self._dispatcher = dispatcher
        self._queues = queues
        self._history = history
        self._tokens = tokens

    async def handle(  # noqa: C901 - one case for each route
        self, verb: str, path: str, query: Mapping[str, str], body: bytes
    ) -> Reply | None:
        """Return the response to a request, or None if it is not one of the control API."""
        content: Mapping[str, Any] = {}

        try:
            match verb, path:
                case "GET", "/healthz":
                    content = {"status": "ok"}
                case "GET", "/clock":
                    content = self._show_clock()
                case "POST", "/clock":
                    content = await self._move_clock(_read_object(body))
                case "GET", "/attempts":
                    attempts = self._history.attempts(query.get("queue", ""), query.get("task", ""))
                    content = {"attempts": [attempt.to_json() for attempt in attempts]}
                case "POST", "/faults":
                    self._queues.set_faults(Faults.from_json(_read_object(body)))
                case "POST", "/tokens":
                    self._set_tokens(_read_object(body))
                case "GET", "/oauth2/v1/certs":
                    content = self._tokens.certificates
                case "GET", "/oauth2/v3/certs":
                    content = self._tokens.jwks
                case _:
                    return None
        except (ValueError, OverflowError) as error:
            return refuse(400, str(error))
        except ClockBusy as error:
            return refuse(409, str(error))
        return Reply(200, content)

    def _show_clock(self) -> dict[str, Any]:
        return {"now": format_rfc3339(self._clock.now()), "mode": self._clock.mode}

    async def _move_clock(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out a command. Return the new time and the number of delivered dispatches."""
        if self._dispatcher.is_advancing:
            raise ClockBusy
        if len(command) != 1:
            raise ValueError(_CLOCK_HELP)
        delivered = 0
        more: dict[str, Any] = {}

        match command:
            case {"freeze": True}:
                self._clock.freeze()
            case {"freeze": str(at)}:
                self._clock.freeze(parse_instant(at))
            case {"resume": True}:
                self._clock.resume()
            case {"advance": by}:
                delivered = await self._dispatcher.advance(parse_duration(by))
            case {"advanceTo": str(at)}:
                delivered = await self._dispatcher.advance_to(parse_instant(at))
            case {"runUntilIdle": int(limit)} if 0 < limit <= DEFAULT_LIMIT:
                most = DEFAULT_LIMIT if limit is True else limit
                try:
                    delivered = await self._dispatcher.run_until_idle(most)
                    more = {"idle": True}
                except NotIdle as error:
                    delivered = error.delivered
                    more = {"idle": False}
            case _:
                raise ValueError(_CLOCK_HELP)
        return {**self._show_clock(), "delivered": delivered, **more}

    def _set_tokens(self, command: dict[str, Any]) -> None:
        mode = command.get("mode")
        if mode not in TOKEN_MODES:
            raise ValueError(f"mode must be one of {', '.join(TOKEN_MODES)}, not {mode!r}.")
        self._tokens.mode = mode


def _read_object(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The body is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError("The body must be a JSON object.")  # noqa: TRY004 - of the request, not of an argument
    return content
