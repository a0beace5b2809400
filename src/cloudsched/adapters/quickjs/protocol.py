"""What is said to a script's process and by it: lines of JSON. What it says is read as a stranger's word."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from cloudsched.engine.ports.interpreter import Ask, Round
from cloudsched.errors import LimitExceeded, ScriptFailed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.engine.ports.interpreter import Answer, Brief

_PLACE = re.compile(r"<input>:([0-9]{1,5}):")
"""A place in the script: what surrounds it is beyond line 100,000."""
_EXACT = 2**53
"""Beyond it, JavaScript's numbers are no integers any more, though JSON writes some of them as such."""
_LONGEST = 101 * 366 * 86_400
"""How many seconds a sleep may have, a little generously: the glue says what it really may have."""
_TEXT = 2000
_UNBALANCED = "it ends too early, or closes more than it opens"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one script may use: bytes of memory, seconds, and bytes that it says."""

    memory: int
    seconds: float
    output: int

    def exceeded(self, limit: object) -> LimitExceeded | ScriptFailed:
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
        return failure("It has broken what surrounds it.")


def failure(problem: str, name: str = "", line: int | None = None) -> ScriptFailed:
    """Return the error of a script."""
    return ScriptFailed(problem, name, line)


def check_message(source: str) -> bytes:
    """Return what asks for a script to be compiled."""
    return _line({"source": source, "tools": None})


def brief_message(brief: Brief, now: datetime, limits: Limits) -> bytes:
    """Return what begins a script."""
    given = {"source": brief.source, "input": brief.input, "task": dict(brief.task), "tools": list(brief.tools)}
    return _line({**given, "seed": brief.seed, "now": _milliseconds(now), "output": limits.output})


def answers_message(answers: Sequence[Answer], now: datetime) -> bytes:
    """Return what lets a script go on."""
    said = [[each.number, each.failure, each.value] for each in answers]
    return _line({"answers": said, "now": _milliseconds(now)})


def reached(line: bytes | None, source: str, limits: Limits) -> Round:
    """Return what a script did, as its process says; None says that its time was over.

    Raises:
        ScriptFailed: It does not compile, or it has broken its process.
        LimitExceeded: It asked for more than it may have.
    """
    if line is None:
        raise limits.exceeded("time")
    if len(line) > limits.output:
        raise limits.exceeded("output")
    said = _read(line)
    match said:
        case {"limit": limit}:
            raise limits.exceeded(limit)
        case {"invalid": [str(name), str(message), str(stack)]}:
            if "'" in message and (_line_of(stack) or 0) > _lines(source):
                message = _UNBALANCED  # what it quotes is a bracket of the glue, which its author did not write
            raise _thrown(name, message, stack, source, limits)
        case {"thrown": [str(name), str(message), str(stack)], "asks": list(asks), "log": list(log)}:
            error = _thrown(name, message, stack, source, limits)
            if isinstance(error, LimitExceeded):
                raise error
            return Round(tuple(map(_ask, asks)), tuple(map(_text, log)), has_ended=True, failure=error)
        case {"ended": bool(has_ended), "result": result, "asks": list(asks), "log": list(log)}:
            return Round(tuple(map(_ask, asks)), tuple(map(_text, log)), has_ended, result)
        case _:
            return _refuse()


def _thrown(name: str, message: str, stack: str, source: str, limits: Limits) -> LimitExceeded | ScriptFailed:
    if (name, message) == ("InternalError", "out of memory"):
        return limits.exceeded("memory")
    if (name, message) == ("", "null"):  # QuickJS throws null where no memory is left for an error; so may a script
        return limits.exceeded("null")
    return failure(message[:_TEXT], name[:_TEXT], _place(stack, source))


def _ask(said: object) -> Ask:
    match said:
        case [int(number), None, int(seconds) | float(seconds)] if 0 <= seconds <= _LONGEST:
            return Ask(number, seconds=float(seconds))
        case [int(number), str(tool), payload]:
            return Ask(number, tool, payload)
        case _:
            return _refuse()


def _text(said: object) -> str:
    return said if isinstance(said, str) else _refuse()


def _refuse() -> NoReturn:
    raise failure("It has broken its process, which says what makes no sense.")


def _place(stack: str, source: str) -> int | None:
    """Return which line of the script an error comes from; its end, if that is behind it."""
    line = _line_of(stack)
    return None if line is None else min(line, _lines(source))


def _line_of(stack: str) -> int | None:
    found = _PLACE.search(stack)
    return None if found is None else int(found[1])


def _lines(source: str) -> int:
    """Return the number of its last line that is not blank."""
    return source.rstrip().count("\n") + 1


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _read(line: bytes) -> object:
    try:
        return json.loads(line, parse_int=_number, parse_constant=_constant)
    except (ValueError, RecursionError):
        return None


def _number(text: str) -> int | float:
    value = int(text)
    return value if -_EXACT <= value <= _EXACT else float(text)


def _constant(_: str) -> NoReturn:
    raise ValueError


def _milliseconds(now: datetime) -> int:
    return int(now.timestamp() * 1000)
