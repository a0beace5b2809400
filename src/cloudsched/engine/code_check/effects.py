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
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

_EFFECTS: Final = (
    "_thread.start",
    "builtins.input",
    "os.",
    "shutil.",
    "socket.",
    "sqlite3.connect",
    "subprocess.",
    "time.sleep",
)
"""How the events begin that are refused."""
_LOOKS: Final = frozenset(
    {"os.fwalk", "os.getxattr", "os.listdir", "os.listxattr", "os.scandir", "os.walk", "socket.gethostname"}
)
"""The events among them that change nothing."""
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


_refused: ContextVar[list[str] | None] = ContextVar("cloudsched_refused_effects", default=None)
"""What the code that runs in this context tried to do. None where nothing is refused."""


@contextmanager
def refuse_effects() -> Iterator[list[str]]:
    """Refuse effects of this thread and of the coroutines that it waits for, and yield what was refused."""
    _install_hook()
    writes_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    refused: list[str] = []
    token = _refused.set(refused)
    try:
        yield refused
    finally:
        _refused.reset(token)
        sys.dont_write_bytecode = writes_bytecode


def refuse(what: str) -> NoReturn:
    """Note an effect, and refuse it. The error is one that libraries expect of the system."""
    refused = _refused.get()
    if refused is not None:
        refused.append(what)
    raise PermissionError(f"{what} is refused while a journal is only looked at")


@cache
def _install_hook() -> None:
    sys.addaudithook(_audit)  # for as long as the process lives


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _refused.get() is None:
        return
    if event.startswith(_EFFECTS) and event not in _LOOKS:
        refuse(event)
    if event == "open" and arguments[2] & _WRITING:  # path, mode, flags
        refuse(f"writing the file {arguments[0]}")


class RefusedParts:
    """Stands in for the parts of an app: whatever is asked of them is refused."""

    def __getattr__(self, name: str) -> NoReturn:
        refuse(f"the use of the app ({name}) outside of a step")
