"""A local Cloud Tasks service for unchanged clients, with a clock that tests can move.

::

    with CloudTasksEmulator(queues=["projects/demo/locations/here/queues/default"]) as emulator:
        ...  # point any Cloud Tasks client at emulator.address
        emulator.advance(timedelta(days=30))
        print(emulator.attempts())

Usable alone: it imports nothing else of cloudsched. To read it, begin with `model/queue.py` (one queue,
pure) and `model/queues.py` (all queues, pure), then `runtime/dispatcher.py` (sends what is due),
`api/tasks_service.py` (the RPCs), `http/server.py` (the port) and `emulator.py` (puts the parts
together).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cloudsched.emulator.emulator import CloudTasksEmulator
    from cloudsched.emulator.model.faults import Faults
    from cloudsched.emulator.model.queues import BadQueue
    from cloudsched.emulator.runtime.attempt_history import Attempt
    from cloudsched.emulator.runtime.clock import MovableClock
    from cloudsched.emulator.runtime.dispatcher import ClockBusy, NotIdle

__all__ = [
    "Attempt",
    "BadQueue",
    "ClockBusy",
    "CloudTasksEmulator",
    "Faults",
    "MovableClock",
    "NotIdle",
]

_HOMES: Final = {
    "Attempt": "runtime.attempt_history",
    "BadQueue": "model.queues",
    "ClockBusy": "runtime.dispatcher",
    "CloudTasksEmulator": "emulator",
    "Faults": "model.faults",
    "MovableClock": "runtime.clock",
    "NotIdle": "runtime.dispatcher",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the names have different types
    """Import a name on first use: the server needs aiohttp and protobuf, which the extra ``dev`` brings."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        package = (error.name or "cloudsched").partition(".")[0]
        if package == "cloudsched":
            raise
        message = f"The emulator needs {package}, which is not installed: install cloudsched with its extra dev"
        raise ModuleNotFoundError(message, name=error.name) from error
    return getattr(module, name)
