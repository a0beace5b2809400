"""The process in which one script runs: QuickJS, inside a sandbox that is entered before the script is read.

`interpreter.py` starts it with an empty environment. It reads messages from its standard input, one per
line, answers each with one line, and ends when its input does. It imports only what it needs, since every
script pays for the start. The parent does not trust its output.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from posix import putenv, read, write

import _quickjs  # type: ignore[import-not-found]  # it ships no types

TYPE_CHECKING = False  # typing is a fifth of the start

ADDRESS_SPACE_OVERHEAD = 256 * 1024 * 1024
"""The bytes of address space that Python and QuickJS get in addition to the script's memory."""

# Instructions of the filter's language (BPF), and what it returns: SECCOMP_RET_ALLOW, or SECCOMP_RET_ERRNO with EPERM.
_LOAD = 0x20
_EQUAL = 0x15
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050001

# Arguments of prctl.
_NO_NEW_PRIVILEGES = 38
_SET_SECCOMP = 22
_FILTER = 2
_MACHINES = {
    "x86_64": (0xC000003E, (0, 1, 9, 11, 12, 15, 24, 25, 28, 60, 96, 202, 228, 231, 318)),
    "aarch64": (0xC00000B7, (63, 64, 93, 94, 98, 113, 124, 139, 169, 214, 215, 216, 222, 233, 278)),
}
"""For each machine, the kernel's identifier and the numbers of these calls: read, write, mmap, munmap, brk,
rt_sigreturn, sched_yield, mremap, madvise, exit, gettimeofday, futex, clock_gettime, exit_group, getrandom."""


def enter_sandbox(memory: int, seconds: float) -> bool:
    """Confine this process for good. Return whether the system call filter is active as well."""
    install_filter = _prepare_filter() if sys.platform == "linux" else None  # imports need files
    _set_resource_limits(memory, seconds)
    return install_filter is not None and install_filter()


def _set_resource_limits(memory: int, seconds: float) -> None:
    try:
        import resource  # noqa: PLC0415 - not every platform has it
    except ImportError:
        return

    limits = {
        "RLIMIT_CPU": int(seconds) + 2,
        "RLIMIT_AS": memory + ADDRESS_SPACE_OVERHEAD,
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NPROC": 0,
        "RLIMIT_NOFILE": 0,  # the open ones stay; closing one makes no room for another
    }
    for name, limit in limits.items():
        which = getattr(resource, name, None)
        if which is None:
            continue
        # A process that reaches both limits of processor time at once is killed without SIGXCPU, which says why.
        hard = limit + 1 if name == "RLIMIT_CPU" else limit
        try:
            resource.setrlimit(which, (limit, hard))
        except (ValueError, OSError):
            continue  # it is lower already, or this platform does not support it


def _prepare_filter() -> Callable[[], bool] | None:
    """Return a function that limits this process to the system calls listed above."""
    try:
        import ctypes  # noqa: PLC0415 - only Linux pays for it
    except ImportError:  # Python was built without it
        return None
    import posix  # noqa: PLC0415 - the same
    import struct  # noqa: PLC0415 - the same

    machine = _MACHINES.get(posix.uname().machine)
    if machine is None or sys.maxsize < 2**32:
        return None
    kind, calls = machine

    # If the call uses this machine's own numbering, allow what is in the list, and refuse everything else.
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 0, len(calls) + 1, kind), (_LOAD, 0, 0, 0)]
    steps += [(_EQUAL, len(calls) - index, 0, call) for index, call in enumerate(calls)]
    steps += [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))

    prctl = ctypes.CDLL(None).prctl

    def install() -> bool:
        header = struct.pack("HP", len(steps), ctypes.addressof(program))
        done: tuple[int, ...] = (
            prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0),
            prctl(_SET_SECCOMP, _FILTER, header, 0, 0),
        )
        return done == (0, 0)

    return install


STACK_BYTES = 512 * 1024
READY = b"ready\n"
READY_UNFILTERED = b"ready, system calls are not filtered\n"
TIME_EXCEEDED = b'{"limit":"time"}\n'
MEMORY_EXCEEDED = b'{"limit":"memory"}\n'
STACK_EXCEEDED = b'{"limit":"stack"}\n'
OUTPUT_EXCEEDED = b'{"limit":"output"}\n'
GLUE_BROKEN = b'{"limit":"sense"}\n'
"""The script has broken the code that surrounds it."""
GLUE_FIRST_LINE = 100_000
"""The number of the glue's first line: in an error, smaller line numbers are the script's."""
_CHUNK_SIZE = 1 << 16


class _ScriptRuntime:
    def __init__(self, glue: str, memory: int, seconds: float, output: int) -> None:
        self._context = _quickjs.Context()
        self._context.set_max_stack_size(STACK_BYTES)
        self._context.set_memory_limit(memory)
        self._exchange = self._context.eval("\n" * GLUE_FIRST_LINE + glue)
        self._seconds = seconds
        self._started_at = time.process_time()
        self._output = output

    def exchange(self, message: str) -> bytes:
        """Pass a message to the script, run it until no job is left, and return its output."""
        try:
            self._apply_time_limit()
            self._exchange(message)
            self._apply_time_limit()
            while self._context.execute_pending_job():
                self._apply_time_limit()
            output: str = self._exchange()
        except _quickjs.StackOverflow:
            return STACK_EXCEEDED
        except _quickjs.JSException as error:
            return _name_limit(str(error)[:60])
        except TimeoutError:
            return TIME_EXCEEDED
        except MemoryError:
            return MEMORY_EXCEEDED
        except (TypeError, ValueError):  # not a string
            return GLUE_BROKEN

        line = output.encode("utf-8", "replace") + b"\n"
        self._output -= len(line)
        return OUTPUT_EXCEEDED if self._output < 0 else line

    def _apply_time_limit(self) -> None:
        left = self._seconds - (time.process_time() - self._started_at)
        if left <= 0:
            raise TimeoutError
        self._context.set_time_limit(left)


def _name_limit(reason: str) -> bytes:
    """Return the limit that an exception of QuickJS means."""
    if "interrupted" in reason:
        return TIME_EXCEEDED
    if "out of memory" in reason:
        return MEMORY_EXCEEDED
    return GLUE_BROKEN


def main(glue: str, memory: str, seconds: str, output: str) -> None:
    """Serve one script. The limits are in bytes, and in seconds of processor time."""
    sys.stdin.close()
    putenv("TZ", "UTC0")  # without it, dates would be in this machine's time zone
    time.tzset()
    with open(glue, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is a third of the start
        script = _ScriptRuntime(file.read(), int(memory), float(seconds), int(output))
    is_filtered = enter_sandbox(int(memory), float(seconds))
    write(1, READY if is_filtered else READY_UNFILTERED)
    message = bytearray()
    while piece := read(0, _CHUNK_SIZE):
        message += piece
        if piece.endswith(b"\n"):  # the next message comes after the response to this one
            _write_line(script.exchange(message.decode()))
            message.clear()


def _write_line(line: bytes) -> None:
    while line:
        line = line[write(1, line) :]
