"""The walls around a script's process: what not even machine code in it could do.

Two of them, where the platform has them. The resource limits: processor time, memory, no new descriptor, no process, no
byte in any file. On Linux, besides, a filter of system calls (docs.kernel.org/userspace-api/seccomp_filter.html): but
for memory, the clock, the pipes that it has and its own end, every call is refused. Nothing inside can undo either.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing is a fifth of the start
if TYPE_CHECKING:
    from collections.abc import Callable

ADDRESS_SPACE_OVERHEAD = 256 * 1024 * 1024
"""How many bytes of address space Python and QuickJS have besides the script's memory."""

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001
"""SECCOMP_RET_ALLOW; SECCOMP_RET_ERRNO with EPERM."""
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_MACHINES = {
    "x86_64": (0xC000003E, (0, 1, 9, 11, 12, 15, 24, 25, 28, 60, 96, 202, 228, 231, 318)),
    "aarch64": (0xC00000B7, (63, 64, 93, 94, 98, 113, 124, 139, 169, 214, 215, 216, 222, 233, 278)),
}
"""What the kernel calls each machine, and there the numbers of: read, write, mmap, munmap, brk, rt_sigreturn,
sched_yield, mremap, madvise, exit, gettimeofday, futex, clock_gettime, exit_group, getrandom."""


def enter_sandbox(memory: int, seconds: float) -> bool:
    """Close them for this process, for good; return whether system calls are filtered, too."""
    close_filter = _prepare_filter() if sys.platform == "linux" else None  # imports, which the limits forbid
    _set_resource_limits(memory, seconds)
    return close_filter is not None and close_filter()


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
        "RLIMIT_NOFILE": 3,  # those that it has
    }
    for name, most in limits.items():
        which = getattr(resource, name, None)
        if which is None:
            continue
        try:
            # Linux kills what is at both limits of the processor's time at once, and then nobody sees why it ended.
            resource.setrlimit(which, (most, most + 1 if name == "RLIMIT_CPU" else most))
        except (ValueError, OSError):
            continue  # it is lower already, or this platform knows it by name only


def _prepare_filter() -> Callable[[], bool] | None:
    """Return what lets this process make no system call from then on but those listed above."""
    try:
        import ctypes  # noqa: PLC0415 - only Linux pays for it
    except ImportError:  # a Python that was built without it
        return None
    import posix  # noqa: PLC0415 - the same
    import struct  # noqa: PLC0415 - the same

    machine = _MACHINES.get(posix.uname().machine)
    if machine is None or sys.maxsize < 2**32:
        return None
    kind, calls = machine
    # Is it this machine's own numbering? Then allow what is in the list, and refuse the rest.
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 0, len(calls) + 1, kind), (_LOAD, 0, 0, 0)]
    steps += [(_EQUAL, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    steps += [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    prctl = ctypes.CDLL(None).prctl

    def close() -> bool:
        header = struct.pack("HP", len(steps), ctypes.addressof(program))
        done: tuple[int, ...] = (prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), prctl(_SET_SECCOMP, _FILTER, header, 0, 0))
        return done == (0, 0)

    return close
