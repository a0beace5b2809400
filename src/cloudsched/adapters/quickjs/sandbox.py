"""The sandbox around a script's process: what not even machine code in it can do.

It has two parts, where the platform has them. Resource limits: processor time, memory, no new descriptor, no process,
no byte written to any file. On Linux also a system call filter (docs.kernel.org/userspace-api/seccomp_filter.html):
every call is refused but those for memory, the clock, the existing pipes and the process's own end. The process cannot
undo either of them.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing is a fifth of the start
if TYPE_CHECKING:
    from collections.abc import Callable

ADDRESS_SPACE_OVERHEAD = 256 * 1024 * 1024
"""How many bytes of address space Python and QuickJS get in addition to the script's memory."""

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001
"""SECCOMP_RET_ALLOW; SECCOMP_RET_ERRNO with EPERM."""
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_MACHINES = {
    "x86_64": (0xC000003E, (0, 1, 9, 11, 12, 15, 24, 25, 28, 60, 96, 202, 228, 231, 318)),
    "aarch64": (0xC00000B7, (63, 64, 93, 94, 98, 113, 124, 139, 169, 214, 215, 216, 222, 233, 278)),
}
"""For each machine, the kernel's identifier and the numbers of these calls: read, write, mmap, munmap, brk,
rt_sigreturn, sched_yield, mremap, madvise, exit, gettimeofday, futex, clock_gettime, exit_group, getrandom."""


def enter_sandbox(memory: int, seconds: float) -> bool:
    """Confine this process for good; return whether the system call filter is active as well."""
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
        try:
            # A process that reaches both limits of processor time at once is killed without SIGXCPU, which says why.
            resource.setrlimit(which, (limit, limit + 1 if name == "RLIMIT_CPU" else limit))
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
    # If the call uses this machine's own numbering, allow what is in the list; refuse everything else.
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 0, len(calls) + 1, kind), (_LOAD, 0, 0, 0)]
    steps += [(_EQUAL, len(calls) - index, 0, call) for index, call in enumerate(calls)]
    steps += [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    prctl = ctypes.CDLL(None).prctl

    def install() -> bool:
        header = struct.pack("HP", len(steps), ctypes.addressof(program))
        done: tuple[int, ...] = (prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), prctl(_SET_SECCOMP, _FILTER, header, 0, 0))
        return done == (0, 0)

    return install
