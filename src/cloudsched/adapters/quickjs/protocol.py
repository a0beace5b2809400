"""What is said to a script's process and by it: lines of JSON. What it says is read as a stranger's word."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from cloudsched.engine.ports.interpreter import Round, ScriptRequest
from cloudsched.errors import LimitExceeded, ScriptFailed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.engine.ports.interpreter import ScriptInput, ScriptResponse

_LOCATION = re.compile(r"<input>:([0-9]{1,5}):")
"""A place in the script: what surrounds it is beyond line 100,000."""
_MAX_SAFE_INTEGER = 2**53
"""Beyond it, JavaScript's numbers are no integers any more, though JSON writes some of them as such."""
_MAX_SLEEP_SECONDS = 101 * 366 * 86_400
"""How many seconds a sleep may have, a little generously: the glue says what it really may have."""
_MAX_TEXT_LENGTH = 2000
_UNBALANCED_MESSAGE = "it ends too early, or closes more than it opens"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one script may use: bytes of memory, seconds, and bytes that it says."""

    memory: int
    seconds: float
    output: int

    def make_error(self, limit: object) -> LimitExceeded | ScriptFailed:
        """Return the error that names a limit."""
        most = {
            "time": f"runs for more than {self.seconds:g} s",
            "memory": f"needs more than {self.memory / 2**20:g} MiB of memory",
            "null": f"throws null, or needs more than {self.memory / 2**20:g} MiB of memory, which looks the same",
            "output": f"says more than {self.output / 2**10:g} KiB: its result, its log and what it gives to tools",
            "stack": "nests its calls too deep",
        }
        if isinstance(limit, str) and limit in most:
            return LimitExceeded(f"The script {most[limit]}. That is the most here.")
        return make_failure("It has broken what surrounds it.")


def make_failure(problem: str, name: str = "", line: int | None = None) -> ScriptFailed:
    """Return the error of a script."""
    return ScriptFailed(problem, name, line)


def encode_check(source: str) -> bytes:
    """Return what asks for a script to be compiled."""
    return _encode_line({"source": source, "tools": None})


def encode_input(script_input: ScriptInput, now: datetime, limits: Limits) -> bytes:
    """Return what begins a script."""
    given = {
        "source": script_input.source,
        "input": script_input.input,
        "task": dict(script_input.task),
        "tools": list(script_input.tools),
    }
    return _encode_line({**given, "seed": script_input.seed, "now": _to_milliseconds(now), "output": limits.output})


def encode_responses(responses: Sequence[ScriptResponse], now: datetime) -> bytes:
    """Return what lets a script go on."""
    said = [[each.number, each.failure, each.value] for each in responses]
    return _encode_line({"answers": said, "now": _to_milliseconds(now)})


def parse_round(line: bytes | None, source: str, limits: Limits) -> Round:
    """Return what a script did, as its process says; None says that its time was over.

    Raises:
        ScriptFailed: It does not compile, or it has broken its process.
        LimitExceeded: It asked for more than it may have.
    """
    if line is None:
        raise limits.make_error("time")
    if len(line) > limits.output:
        raise limits.make_error("output")
    said = _decode_line(line)
    match said:
        case {"limit": limit}:
            raise limits.make_error(limit)
        case {"invalid": [str(name), str(message), str(stack)]}:
            if "'" in message and (_parse_line_number(stack) or 0) > _count_lines(source):
                message = _UNBALANCED_MESSAGE  # what it quotes is a bracket of the glue, which its author did not write
            raise _parse_exception(name, message, stack, source, limits)
        case {"thrown": [str(name), str(message), str(stack)], "asks": list(asks), "log": list(log)}:
            error = _parse_exception(name, message, stack, source, limits)
            if isinstance(error, LimitExceeded):
                raise error
            return Round(tuple(map(_parse_request, asks)), tuple(map(_parse_text, log)), has_ended=True, failure=error)
        case {"ended": bool(has_ended), "result": result, "asks": list(asks), "log": list(log)}:
            return Round(tuple(map(_parse_request, asks)), tuple(map(_parse_text, log)), has_ended, result)
        case _:
            return _raise_protocol_error()


def _parse_exception(name: str, message: str, stack: str, source: str, limits: Limits) -> LimitExceeded | ScriptFailed:
    if (name, message) == ("InternalError", "out of memory"):
        return limits.make_error("memory")
    if (name, message) == ("", "null"):  # QuickJS throws null where no memory is left for an error; so may a script
        return limits.make_error("null")
    return make_failure(message[:_MAX_TEXT_LENGTH], name[:_MAX_TEXT_LENGTH], _locate_in_script(stack, source))


def _parse_request(said: object) -> ScriptRequest:
    match said:
        case [int(number), None, int(seconds) | float(seconds)] if 0 <= seconds <= _MAX_SLEEP_SECONDS:
            return ScriptRequest(number, seconds=float(seconds))
        case [int(number), str(tool), payload]:
            return ScriptRequest(number, tool, payload)
        case _:
            return _raise_protocol_error()


def _parse_text(said: object) -> str:
    return said if isinstance(said, str) else _raise_protocol_error()


def _raise_protocol_error() -> NoReturn:
    raise make_failure("It has broken its process, which says what makes no sense.")


def _locate_in_script(stack: str, source: str) -> int | None:
    """Return which line of the script an error comes from; its end, if that is behind it."""
    line = _parse_line_number(stack)
    return None if line is None else min(line, _count_lines(source))


def _parse_line_number(stack: str) -> int | None:
    found = _LOCATION.search(stack)
    return None if found is None else int(found[1])


def _count_lines(source: str) -> int:
    """Return the number of its last line that is not blank."""
    return source.rstrip().count("\n") + 1


def _encode_line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _decode_line(line: bytes) -> object:
    try:
        return json.loads(line, parse_int=_parse_number, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return None


def _parse_number(text: str) -> int | float:
    value = int(text)
    return value if -_MAX_SAFE_INTEGER <= value <= _MAX_SAFE_INTEGER else float(text)


def _reject_constant(_: str) -> NoReturn:
    raise ValueError


def _to_milliseconds(now: datetime) -> int:
    return int(now.timestamp() * 1000)
