"""The messages between a script's process and its parent: JSON, a line each way. What comes back is not trusted."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from cloudsched.engine.ports.interpreter import Round, ScriptInput, ScriptRequest, ScriptResponse
from cloudsched.errors import (
    LimitExceeded,
    ScriptFailed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

_LOCATION = re.compile(r"<input>:([0-9]{1,5}):")
"""A location in the script. The glue code around it begins beyond line 100,000."""
_MAX_SAFE_INTEGER = 2**53
"""Beyond it a JavaScript number is not an exact integer, even if its JSON looks like one."""
_MAX_SLEEP_SECONDS = 101 * 366 * 86_400
"""A generous upper bound on a sleep. The glue enforces the real limit."""
_MAX_TEXT_LENGTH = 2000
_UNBALANCED_MESSAGE = "it ends too early, or closes more than it opens"


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    """The limits of one script: bytes of memory, seconds of processor time, and bytes of output."""

    memory: int
    seconds: float
    output: int

    def make_error(self, limit: object) -> LimitExceeded | ScriptFailed:
        """Return the error for an exceeded limit, by its name in the protocol."""
        memory = f"{self.memory / 2**20:g} MiB of memory"
        output = f"{self.output / 2**10:g} KiB"
        problems = {
            "time": f"runs for more than {self.seconds:g} s",
            "memory": f"needs more than {memory}",
            "null": f"throws null, or needs more than {memory}, which looks the same",
            "output": f"outputs more than {output}: its result, its log and its tools' arguments",
            "stack": "nests its calls too deeply",
        }
        if isinstance(limit, str) and limit in problems:
            return LimitExceeded(f"The script {problems[limit]}, which is the limit.")
        return ScriptFailed("It corrupted the code that runs it.")


def encode_input(script_input: ScriptInput, now: datetime, limits: ScriptLimits) -> bytes:
    """Return the message that starts a script."""
    message = {
        "source": script_input.source,
        "input": script_input.input,
        "task": dict(script_input.task),
        "tools": list(script_input.tools),
        "seed": script_input.seed,
        "now": _to_milliseconds(now),
        "output": limits.output,
    }
    return encode_line(message)


def encode_responses(responses: Sequence[ScriptResponse], now: datetime) -> bytes:
    """Return the message that resumes a script with the responses to its requests."""
    answers = [[each.number, each.failure, each.value] for each in responses]
    return encode_line({"answers": answers, "now": _to_milliseconds(now)})


def parse_round(line: bytes | None, source: str, limits: ScriptLimits) -> Round:
    """Parse what a script did up to its end or its next wait. A `line` of None means that its time was up."""
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
            requests = tuple(map(_parse_request, asks))
            return Round(requests, tuple(map(_parse_text, log)), has_ended=True, failure=error)
        case {"ended": bool(has_ended), "result": result, "asks": list(asks), "log": list(log)}:
            requests = tuple(map(_parse_request, asks))
            return Round(requests, tuple(map(_parse_text, log)), has_ended, result)
        case _:
            return _raise_protocol_error()


def _parse_exception(
    name: str,
    message: str,
    stack: str,
    source: str,
    limits: ScriptLimits,
) -> LimitExceeded | ScriptFailed:
    if (name, message) == ("InternalError", "out of memory"):
        return limits.make_error("memory")
    # QuickJS throws null if no memory is left for an error. A script may do so, too.
    if (name, message) == ("", "null"):
        return limits.make_error("null")
    line = _parse_line_number(stack)
    if line is not None:
        line = min(line, _count_lines(source))  # a line of the glue is shown as the script's last one
    return ScriptFailed(message[:_MAX_TEXT_LENGTH], name[:_MAX_TEXT_LENGTH], line)


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
    raise ScriptFailed("It corrupted its process, which sent an invalid message.")


def _parse_line_number(stack: str) -> int | None:
    location = _LOCATION.search(stack)
    return None if location is None else int(location[1])


def _count_lines(source: str) -> int:
    """Return the number of the last line that is not blank."""
    return source.rstrip().count("\n") + 1


def encode_line(message: dict[str, Any]) -> bytes:
    """Return a message as a line of JSON."""
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
