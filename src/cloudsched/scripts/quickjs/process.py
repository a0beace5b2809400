"""The process of one script, as its parent sees it: started with nothing, talked to by lines, killed when late."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Final, cast

from cloudsched.domain.own_logger import own_logger
from cloudsched.errors import (
    InterpreterUnavailable,
    Misconfigured,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

log: Final = own_logger(__name__)
START_TIMEOUT_SECONDS = 60
"""The longest time until the process is ready, which the script's own time does not include."""
READY = b"ready\n"
READY_UNFILTERED = b"ready, system calls are not filtered\n"
_CHUNK_SIZE = 1 << 16
_SERVICE = "The interpreter of a script"
_PR_SET_DUMPABLE = 4
_CPU_LIMIT_EXIT_CODES = {-getattr(signal, name) for name in ("SIGXCPU",) if hasattr(signal, name)}


class ScriptProcess:
    """A process for one script, with an empty environment. The limits are for all responses together."""

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
        """Wait until the process has entered its sandbox."""
        line, _ = self._exchange(b"", START_TIMEOUT_SECONDS, len(READY_UNFILTERED))
        if line == READY_UNFILTERED:
            if requires_filter:
                raise Misconfigured(
                    "Scripts need a filter of system calls (seccomp), and this machine has none. On a "
                    "machine without secrets, CLOUDSCHED_SANDBOX_FILTER=best-effort runs them without it."
                )
            _warn_unfiltered()
        elif line != READY:
            raise InterpreterUnavailable(_SERVICE, f"it did not start ({self._kill()})")

    def exchange(self, message: bytes) -> bytes | None:
        """Send a line and return the response, or None if the time is up. One that is too long is cut off."""
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
        """Write a message and read a line of at most `max_bytes`. Return it, and whether time ran out."""
        until = time.monotonic() + seconds
        rest = memoryview(message)
        received = bytearray()
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if rest:
            poll.register(self._in, select.POLLOUT)

        # Both directions at once: a script that does not read its input must not stop this process from reading.
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

    Otherwise, a script that broke out of its process would find its parent's secrets in ``/proc``. Only a
    process with an administrator's rights can still read them. Core dumps and debuggers are denied as well
    (man7.org/linux/man-pages/man2/PR_SET_DUMPABLE.2const.html).
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


@lru_cache(maxsize=1)
def _warn_unfiltered() -> None:
    log.warning("scripts run without a filter of system calls", extra={"action": "seccomp_unavailable"})
