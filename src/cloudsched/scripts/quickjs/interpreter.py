"""The `Interpreter` over QuickJS (the optional package ``quickjs-ng``), each script in a process of its own.

QuickJS is written in C, and some of its built-ins ignore time limits: ``Array(2**32 - 1).join()`` runs for minutes. So
a script runs in a process that can be killed, that shares no memory, variables or files with this one, and that
`seccomp` confines. This process never imports QuickJS and trusts nothing that the other one outputs.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.ports.interpreter import Round, ScriptInput, ScriptRequest, ScriptResponse
from cloudsched.errors import (
    InterpreterUnavailable,
    InvalidInput,
    LimitExceeded,
    Misconfigured,
    MissingExtra,
    ScriptFailed,
)

_HOME = Path(__file__).parent
CHILD_CODE = """
import sys
package = type(sys)("cloudsched")
package.__path__ = [sys.argv[1]]
sys.modules["cloudsched"] = package
sys.path.append(sys.argv[2])
from cloudsched.scripts.quickjs.child import main
main(*sys.argv[3:])
"""
"""The process's first code. It skips the package's ``__init__``, which would take a third of the start."""
_BINDING = "_quickjs"
_PROTOCOL_OVERHEAD_BYTES = 1024
"""The bytes that the child's own protocol may take in addition to the script's output."""


class QuickJs:
    """Starts a process for each script.

    The limits are in bytes, and `time` is the processor's. By the clock a script gets twice that and a second.
    """

    def __init__(self, *, memory: int, time: timedelta, output: int, requires_filter: bool = True) -> None:
        binding = find_spec(_BINDING)
        if binding is None or binding.origin is None:
            raise MissingExtra("A script", "quickjs-ng", "sandbox")
        self._requires_filter = requires_filter
        self._limits = Limits(memory, time.total_seconds(), output)
        paths = (str(_HOME.parents[1]), str(Path(binding.origin).parent), str(_HOME / "glue.js"))
        limits = (str(memory), str(time.total_seconds()), str(output))
        self._command = (sys.executable, "-I", "-S", "-c", CHILD_CODE, *paths, *limits)

    def check(self, source: str) -> None:
        """Compile a script in a process of its own."""
        with self._start_process() as process:
            try:
                parse_round(process.exchange(_encode_line({"source": source, "tools": None})), source, self._limits)
            except ScriptFailed as error:
                where = "" if error.line is None else f"line {error.line}: "
                hint = "It has to be the body of an async function, in JavaScript."
                raise InvalidInput("source", f"{where}{error.problem}", hint) from error

    @contextmanager
    def run(self, script_input: ScriptInput) -> Iterator[_RunningScript]:
        """Start a process for a script, and end it with the context."""
        with self._start_process() as process:
            yield _RunningScript(process, script_input, self._limits)

    @contextmanager
    def _start_process(self) -> Iterator[ScriptProcess]:
        process = ScriptProcess(
            self._command, self._limits.seconds * 2 + 1, self._limits.output + _PROTOCOL_OVERHEAD_BYTES
        )
        try:
            process.wait_until_ready(requires_filter=self._requires_filter)
            yield process
        finally:
            process.close()


class _RunningScript:
    def __init__(self, process: ScriptProcess, script_input: ScriptInput, limits: Limits) -> None:
        self._process = process
        self._input = script_input
        self._limits = limits
        self._has_started = False

    def resume(self, responses: Sequence[ScriptResponse], now: datetime) -> Round:
        is_first = not self._has_started
        self._has_started = True
        message = encode_input(self._input, now, self._limits) if is_first else encode_responses(responses, now)
        outcome = parse_round(self._process.exchange(message), self._input.source, self._limits)
        if not outcome.asks and not outcome.has_ended:
            raise ScriptFailed("It waits for something that can never come: a promise that nothing settles.")
        return outcome


log = own_logger(__name__)

START_TIMEOUT_SECONDS = 60
"""The longest time until the process is ready. It does not count as the script's time."""
READY = b"ready\n"
READY_UNFILTERED = b"ready, system calls are not filtered\n"
_CHUNK_SIZE = 1 << 16
_SERVICE = "The interpreter of a script"
_PR_SET_DUMPABLE = 4
_CPU_LIMIT_EXIT_CODES = {-getattr(signal, name) for name in ("SIGXCPU",) if hasattr(signal, name)}


class ScriptProcess:
    """One process, for one script. It has an empty environment. The limits are for all responses together."""

    def __init__(self, command: Sequence[str], seconds: float, output: int) -> None:
        deny_inspection()
        self._seconds_left = seconds
        self._output = output
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a command of our own
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is for this process, which lets its handlers finish
                env={},
                cwd=os.path.abspath(os.sep),  # noqa: PTH100 - the root, whatever the platform calls it
            )
        except OSError as error:
            raise InterpreterUnavailable(_SERVICE, f"it did not start: {error.strerror}") from error
        self._in = cast("IO[bytes]", self._process.stdin)
        self._out = cast("IO[bytes]", self._process.stdout)
        os.set_blocking(self._in.fileno(), False)

    def wait_until_ready(self, *, requires_filter: bool) -> None:
        """Return once it has entered its sandbox."""
        line, _ = self._exchange(b"", START_TIMEOUT_SECONDS, len(READY_UNFILTERED))
        if line == READY_UNFILTERED:
            if requires_filter:
                raise Misconfigured(
                    "Scripts need a filter of system calls (seccomp), and this machine has none. On a machine without "
                    "secrets, CLOUDSCHED_SANDBOX_FILTER=best-effort runs them without it."
                )
            _warn_unfiltered()
        elif line != READY:
            raise InterpreterUnavailable(_SERVICE, f"it did not start ({self._kill()})")

    def exchange(self, message: bytes) -> bytes | None:
        """Send a line and return the response, None if the time is up.

        A response that is too long is cut off.
        """
        began = time.monotonic()
        line, is_late = self._exchange(message, self._seconds_left, self._output + 1)
        self._seconds_left -= time.monotonic() - began
        self._output -= len(line)
        if line.endswith(b"\n") or self._output < 0:
            return line
        ending = self._kill()
        if is_late or self._process.returncode in _CPU_LIMIT_EXIT_CODES:
            return None
        raise InterpreterUnavailable(_SERVICE, f"it died ({ending})")

    def _exchange(self, message: bytes, seconds: float, max_bytes: int) -> tuple[bytes, bool]:
        """Write a message, and read a line of at most `max_bytes`. Return what was read, and whether time ran out."""
        until = time.monotonic() + seconds
        rest = memoryview(message)
        received = bytearray()
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if rest:
            poll.register(self._in, select.POLLOUT)
        while len(received) < max_bytes and not received.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0:
                return bytes(received), True
            for descriptor, _ in poll.poll(left * 1000 + 1):
                if descriptor == self._out.fileno():
                    piece = os.read(descriptor, min(_CHUNK_SIZE, max_bytes - len(received)))
                    if not piece:
                        return bytes(received), False
                    received += piece
                else:
                    rest = rest[_write_some(descriptor, rest) :]
                    if not rest:
                        poll.unregister(descriptor)
        return bytes(received), False

    def close(self) -> None:
        """Kill the process if it still runs, and close its pipes."""
        self._process.kill()
        self._process.wait()
        self._in.close()
        self._out.close()

    def _kill(self) -> str:
        self._process.kill()
        code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit {code}"


def _write_some(descriptor: int, rest: memoryview) -> int:
    """Write as much as the pipe takes. Bytes for a dead process count as written."""
    try:
        return os.write(descriptor, rest)
    except BrokenPipeError:
        return len(rest)


@lru_cache(maxsize=1)
def deny_inspection() -> None:
    """Keep other processes of this user from reading this one's memory, variables and descriptors (Linux).

    A script that broke out of its process would find the secrets of its parent in ``/proc`` otherwise. Only a process
    with the rights of the system's administrator can still read them. Core dumps and debuggers are denied as well
    (man7.org/linux/man-pages/man2/PR_SET_DUMPABLE.2const.html).
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


@lru_cache(maxsize=1)
def _warn_unfiltered() -> None:
    log.warning("scripts run without a filter of system calls", extra={"action": "seccomp_unavailable"})


_LOCATION = re.compile(r"<input>:([0-9]{1,5}):")
"""A location in the script. The glue code around it begins beyond line 100,000."""
_MAX_SAFE_INTEGER = 2**53
"""Beyond it a JavaScript number is not an exact integer, even if its JSON looks like one."""
_MAX_SLEEP_SECONDS = 101 * 366 * 86_400
"""A generous upper bound on a sleep. The glue enforces the real limit."""
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
        return ScriptFailed("It corrupted the code that runs it.")


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
    """Parse what a script did up to its end or next wait. A `line` of None means that it exceeded its time."""
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
    line = _parse_line_number(stack)
    shown = None if line is None else min(line, _count_lines(source))  # the last one if it lies in the glue
    return ScriptFailed(message[:_MAX_TEXT_LENGTH], name[:_MAX_TEXT_LENGTH], shown)


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
