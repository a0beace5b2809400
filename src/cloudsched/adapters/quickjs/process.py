"""The process that a script runs in, seen from outside: started, spoken to in lines, watched, and killed."""

from __future__ import annotations

import logging
import os
import select
import signal
import subprocess
import time
from functools import lru_cache
from typing import IO, TYPE_CHECKING, cast

from cloudsched.errors import InterpreterUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

log = logging.getLogger(__name__)

START_TIMEOUT_SECONDS = 60
"""How long the process may take to be ready. That is no part of the script's time."""
READY = b"ready\n"
READY_UNFILTERED = b"ready, system calls are not filtered\n"
_CHUNK_SIZE = 1 << 16
_SERVICE = "The interpreter of a script"
_CPU_LIMIT_EXIT_CODES = {-getattr(signal, name) for name in ("SIGXCPU",) if hasattr(signal, name)}


class ScriptProcess:
    """One process, for one script.

    Args:
        command: What to start. It sees none of this process's variables, and its errors go nowhere.
        seconds: How long it may take to answer, over all messages.
        output: How many bytes it may answer, over all messages.
    """

    def __init__(self, command: Sequence[str], seconds: float, output: int) -> None:
        self._seconds_left = seconds
        self._output = output
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own words
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is for this process, which may let its handlers finish
                env={"TZ": "UTC0"},  # the only thing that it is told: without it, it would look into the system's files
                cwd=os.path.abspath(os.sep),  # noqa: PTH100 - the root, whatever the platform calls it
            )
        except OSError as error:
            raise InterpreterUnavailable(_SERVICE, f"it did not start: {error.strerror}") from error
        self._in = cast("IO[bytes]", self._process.stdin)
        self._out = cast("IO[bytes]", self._process.stdout)
        os.set_blocking(self._in.fileno(), False)

    def wait_until_ready(self) -> None:
        """Return once its walls are closed.

        Raises:
            InterpreterUnavailable: It did not come that far.
        """
        said, _ = self._exchange(b"", START_TIMEOUT_SECONDS, len(READY_UNFILTERED))
        if said == READY_UNFILTERED:
            _warn_unfiltered()
        elif said != READY:
            raise InterpreterUnavailable(_SERVICE, f"it did not start ({self._kill()})")

    def exchange(self, message: bytes) -> bytes | None:
        """Send a line and return the line that answers it; None if its time was over first.

        One that says more than it may is cut off there.

        Raises:
            InterpreterUnavailable: It died.
        """
        began = time.monotonic()
        line, is_late = self._exchange(message, self._seconds_left, self._output + 1)
        self._seconds_left -= time.monotonic() - began
        self._output -= len(line)
        if line.endswith(b"\n") or self._output < 0:
            return line
        how = self._kill()
        if is_late or self._process.returncode in _CPU_LIMIT_EXIT_CODES:
            return None
        raise InterpreterUnavailable(_SERVICE, f"it died ({how})")

    def _exchange(self, message: bytes, seconds: float, max_bytes: int) -> tuple[bytes, bool]:
        """Write a message and read until a line or `max_bytes` bytes are there, or it has ended; say if time was over."""
        until = time.monotonic() + seconds
        rest = memoryview(message)
        said = bytearray()
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if rest:
            poll.register(self._in, select.POLLOUT)
        while len(said) < max_bytes and not said.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0:
                return bytes(said), True
            for descriptor, _ in poll.poll(left * 1000 + 1):
                if descriptor == self._out.fileno():
                    piece = os.read(descriptor, min(_CHUNK_SIZE, max_bytes - len(said)))
                    if not piece:
                        return bytes(said), False
                    said += piece
                else:
                    rest = rest[_write_some(descriptor, rest) :]
                    if not rest:
                        poll.unregister(descriptor)
        return bytes(said), False

    def close(self) -> None:
        """Kill it, if it still lives, and let go of it."""
        self._process.kill()
        self._process.wait()
        self._in.close()
        self._out.close()

    def _kill(self) -> str:
        """Return how it ended, killing it if it has not."""
        self._process.kill()
        code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit {code}"


def _write_some(descriptor: int, rest: memoryview) -> int:
    """Write as much as goes; a process that is not there any more takes all."""
    try:
        return os.write(descriptor, rest)
    except BrokenPipeError:
        return len(rest)


@lru_cache(maxsize=1)
def _warn_unfiltered() -> None:
    """Say it once: the other walls stand."""
    log.warning("scripts run without a filter of system calls", extra={"action": "unfiltered"})
