"""Find out which role this process has in a web server.

No server tells the code that it loads whether this process serves, only starts those that do, or does
neither. So the calls that have led here are read.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

SERVERS: Final = frozenset({"cheroot", "daphne", "granian", "gunicorn", "hypercorn", "uvicorn", "waitress"})
"""The packages of servers that load the web app in the process that serves it, or in one that forks those."""
_MASTER: Final = "gunicorn.arbiter"
_WORKERS: Final = "gunicorn.workers."


def is_loaded_by_server() -> bool:
    """Return whether a server of `SERVERS` loads the web app right now."""
    return any(_find_module(frame).partition(".")[0] in SERVERS for frame in _list_frames())


def is_master() -> bool:
    """Return whether gunicorn loads the web app before it forks its workers (``--preload``)."""
    modules = map(_find_module, _list_frames())
    first = next((name for name in modules if name == _MASTER or name.startswith(_WORKERS)), "")
    return first == _MASTER


def call_in_worker(begin: Callable[[], None]) -> None:
    """Make gunicorn call a function in a forked worker once it is ready and has dropped its privileges.

    This is for the forked process. It does nothing if something else has forked it.
    """
    for frame in _list_frames():
        worker = frame.f_locals.get("worker") if _find_module(frame) == _MASTER else None
        if worker is not None:
            worker.cfg.set("post_worker_init", _join(begin, worker.cfg.post_worker_init))
            return


def _join(begin: Callable[[], None], own: Callable[[Any], object]) -> Callable[[Any], None]:
    def call(worker: Any) -> None:  # noqa: ANN401 - gunicorn's
        begin()
        own(worker)

    return call


def _list_frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the calls that have led here
    while frame is not None:
        yield frame
        frame = frame.f_back


def _find_module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))
