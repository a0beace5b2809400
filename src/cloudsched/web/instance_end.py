"""Give up what still runs when Cloud Run stops an instance.

It costs no retry, and another instance goes on with it. Claims that wait for work are answered at once.

Cloud Run sends SIGTERM, and SIGKILL ten seconds later
(cloud.google.com/run/docs/container-contract#instance-shutdown). Functions run in gunicorn, which sets
its own handler of SIGTERM in each of its processes: it ends a process once all requests are answered.
This adds to that handler, in the hook that gunicorn has for it.
"""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from cloudsched.web.waiting_room import PROCESS_ROOM

if TYPE_CHECKING:
    from types import FrameType

    from cloudsched.engine.execution.executor import Executor

RELEASE_SECONDS: Final = 7.0
"""The seconds after SIGTERM in which handlers may still return. In the rest, they are given up."""
_executors: Final[WeakSet[Executor]] = WeakSet()


def release_at_end(executor: Executor) -> None:
    """Let an executor give up what it runs when the instance is stopped."""
    _executors.add(executor)


def watch_functions() -> None:
    """Prepare the processes of functions-framework, if this is to become one of them."""
    if "functions_framework" not in sys.modules:
        return
    with suppress(ImportError):  # on Windows
        from gunicorn.config import PostWorkerInit  # noqa: PLC0415 - functions-framework imports it, too

        PostWorkerInit.default = staticmethod(_watch)


def _watch(_worker: object) -> None:
    own = signal.getsignal(signal.SIGTERM)

    def stop(signum: int, frame: FrameType | None) -> None:
        timer = threading.Timer(RELEASE_SECONDS, _release)
        timer.daemon = True
        timer.start()
        PROCESS_ROOM.close()
        if callable(own):
            own(signum, frame)

    signal.signal(signal.SIGTERM, stop)


def _release() -> None:
    for executor in tuple(_executors):
        executor.release_all()
