"""The protocol between this process and a script's: lines of JSON. Everything received is treated as untrusted."""

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
"""A location in the script; the glue code around it begins beyond line 100,000."""
_MAX_SAFE_INTEGER = 2**53
"""Beyond it a JavaScript number is not an exact integer, even if its JSON looks like one."""
_MAX_SLEEP_SECONDS = 101 * 366 * 86_400
"""A generous upper bound on a sleep; the glue enforces the real limit."""
_MAX_TEXT_LENGTH = 2000
_UNBALANCED_MESSAGE = "it ends too early, or closes more than it opens"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one script: bytes of memory, seconds of processor time, and bytes of output."""

    memory: int
    seconds: float
    output: int

    def make_error(self, limit: object) -> LimitExceeded | ScriptFailed:
        """Return the error for an exceeded limit, by its name in the protocol."""
        problems = {
            "time": f"runs for more than {self.seconds:g} s",
            "memory": f"needs more than {self.memory / 2**20:g} MiB of memory",
            "null": f"throws null, or needs more than {self.memory / 2**20:g} MiB of memory, which looks the same",
            "output": f"outputs more than {self.output / 2**10:g} KiB: its result, its log and its tools' arguments",
            "stack": "nests its calls too deeply",
        }
        if isinstance(limit, str) and limit in problems:
            return LimitExceeded(f"The script {problems[limit]}, which is the limit.")
        return make_failure("It corrupted the code that runs it.")


def make_failure(problem: str, name: str = "", line: int | None = None) -> ScriptFailed:
    """Return the error for a script that failed."""
    return ScriptFailed(problem, name, line)


def encode_check(source: str) -> bytes:
    """Return the message that compiles a script without running it."""
    return _encode_line({"source": source, "tools": None})


def encode_input(script_input: ScriptInput, now: datetime, limits: Limits) -> bytes:
    """Return the message that starts a script."""
    message = {
        "source": script_input.source,
        "input": script_input.input,
        "task": dict(script_input.task),
        "tools": list(script_input.tools),
    }
    return _encode_line({**message, "seed": script_input.seed, "now": _to_milliseconds(now), "output": limits.output})


def encode_responses(responses: Sequence[ScriptResponse], now: datetime) -> bytes:
    """Return the message that resumes a script with the responses to its requests."""
    answers = [[each.number, each.failure, each.value] for each in responses]
    return _encode_line({"answers": answers, "now": _to_milliseconds(now)})


def parse_round(line: bytes | None, source: str, limits: Limits) -> Round:
    """Parse what a script did up to its end or next wait; a `line` of None means that it exceeded its time.

    Raises:
        ScriptFailed: It does not compile, or its process sent an invalid message.
        LimitExceeded: It exceeded a limit.
    """
    if line is None:
        raise limits.make_error("time")
    if len(line) > limits.output:
        raise limits.make_error("output")
    match _decode_line(line):
        case {"limit": limit}:
            raise limits.make_error(limit)
        case {"invalid": [str(name), str(message), str(stack)]}:
            if "'" in message and (_parse_line_number(stack) or 0) > _count_lines(source):
                message = _UNBALANCED_MESSAGE  # it quotes a bracket of the glue, which the author did not write
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
    if (name, message) == ("", "null"):  # QuickJS throws null if no memory is left for an error; a script may too
        return limits.make_error("null")
    return make_failure(message[:_MAX_TEXT_LENGTH], name[:_MAX_TEXT_LENGTH], _locate_in_script(stack, source))


def _parse_request(value: object) -> ScriptRequest:
    match value:
        case [int(number), None, int(seconds) | float(seconds)] if 0 <= seconds <= _MAX_SLEEP_SECONDS:
            return ScriptRequest(number, seconds=float(seconds))
        case [int(number), str(tool), payload]:
            return ScriptRequest(number, tool, payload=payload)
        case [int(number), [str(script)], payload]:
            return ScriptRequest(number, script=script, payload=payload)
        case _:
            return _raise_protocol_error()


def _parse_text(value: object) -> str:
    return value if isinstance(value, str) else _raise_protocol_error()


def _raise_protocol_error() -> NoReturn:
    raise make_failure("It corrupted its process, which sent an invalid message.")


def _locate_in_script(stack: str, source: str) -> int | None:
    """Return the line of the script that an error comes from; the last one if it lies beyond."""
    line = _parse_line_number(stack)
    return None if line is None else min(line, _count_lines(source))


def _parse_line_number(stack: str) -> int | None:
    location = _LOCATION.search(stack)
    return None if location is None else int(location[1])


def _count_lines(source: str) -> int:
    """Return the number of the last line that is not blank."""
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
