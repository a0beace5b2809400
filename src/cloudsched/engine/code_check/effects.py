"""Refuse what reaches outside of this process, while a handler's code is replayed only to look at it.

Python reports opened files, connections and new processes to audit hooks
(docs.python.org/3/library/audit_events.html), which may refuse them. A library in C that opens connections
itself, such as gRPC, reports none.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

_EFFECTS: Final = frozenset(
    {
        "builtins.input",
        "os.chmod",
        "os.chown",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.kill",
        "os.killpg",
        "os.link",
        "os.mkdir",
        "os.posix_spawn",
        "os.putenv",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.spawn",
        "os.symlink",
        "os.system",
        "os.truncate",
        "os.unsetenv",
        "os.utime",
        "shutil.move",
        "shutil.rmtree",
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.sendmsg",
        "socket.sendto",
        "sqlite3.connect",
        "subprocess.Popen",
        "time.sleep",
    }
)
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class RefusedEffects:
    """What the replayed code tried to do, and was refused."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.is_stuck = False
        """True if the code did not end, and goes on in a thread that nobody waits for."""

    def refuse(self, what: str) -> NoReturn:
        """Note an effect, and refuse it. The error is one that libraries expect of the system."""
        self.refused.append(what)
        raise PermissionError(f"{what} is refused while a journal is only looked at")


_current: RefusedEffects | None = None
_own: ContextVar[RefusedEffects | None] = ContextVar("cloudsched_effects", default=None)
"""What holds for a thread and its coroutines for as long as they go on."""
_is_installed = False


@contextmanager
def refuse_effects(effects: RefusedEffects) -> Iterator[None]:
    """Refuse effects in all threads of this process until the block ends. One block at a time."""
    global _current, _is_installed  # noqa: PLW0603 - audit hooks are those of the process, and are never removed
    if not _is_installed:
        sys.addaudithook(_audit)
        _is_installed = True
    writes_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    _current = effects
    try:
        yield
    finally:
        _current = None
        sys.dont_write_bytecode = writes_bytecode


def refuse_for_good(effects: RefusedEffects) -> None:
    """Refuse effects in this thread and its coroutines until they end, also after the block."""
    _own.set(effects)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _EFFECTS and event != "open":
        return
    effects = _current or _own.get()
    if effects is None:
        return
    if event in _EFFECTS:
        effects.refuse(event)
    if _opens_for_writing(*arguments):
        effects.refuse(f"writing the file {arguments[0]}")


def _opens_for_writing(path: object, mode: str | None, flags: int) -> bool:
    is_file = isinstance(path, str | bytes | os.PathLike)
    return is_file and (bool(flags & _WRITING) if mode is None else not {*"wax+"}.isdisjoint(mode))


class RefusedParts:
    """Stands in for the parts of an app: whatever is asked of them is refused."""

    def __getattr__(self, name: str) -> NoReturn:
        effects = _current or _own.get() or RefusedEffects()
        effects.refuse(f"the use of the app ({name}) outside of a step")
