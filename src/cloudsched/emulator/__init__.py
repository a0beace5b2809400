"""A local Cloud Tasks that real clients cannot tell from the real one, with a clock that moves.

::

    with CloudTasksEmulator(queues=["projects/demo/locations/here/queues/default"]) as emulator:
        ...  # point any Cloud Tasks client at emulator.address
        emulator.advance(timedelta(days=30))
        print(emulator.attempts())

Usable alone: nothing in here imports the rest of cloudsched. To read it, begin with `queue.py` (one queue, pure) and
`board.py` (all queues, pure), then `runner.py` (what makes them move), `service.py` (the calls), `front.py` (the port)
and `server.py` (the whole).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cloudsched.emulator.clock import MovableClock
    from cloudsched.emulator.desk import StillWaiting, UnknownTask
    from cloudsched.emulator.explain import Explanation
    from cloudsched.emulator.faults import Faults
    from cloudsched.emulator.history import Attempt
    from cloudsched.emulator.journal import UnreadableData
    from cloudsched.emulator.queuesfile import BadQueue
    from cloudsched.emulator.runner import ClockBusy, NotIdle
    from cloudsched.emulator.server import CloudTasksEmulator

__all__ = [
    "Attempt",
    "BadQueue",
    "ClockBusy",
    "CloudTasksEmulator",
    "Explanation",
    "Faults",
    "MovableClock",
    "NotIdle",
    "StillWaiting",
    "UnknownTask",
    "UnreadableData",
]

_HOMES: Final = {
    "Attempt": "history",
    "BadQueue": "queuesfile",
    "ClockBusy": "runner",
    "CloudTasksEmulator": "server",
    "Explanation": "explain",
    "Faults": "faults",
    "MovableClock": "clock",
    "NotIdle": "runner",
    "StillWaiting": "desk",
    "UnknownTask": "desk",
    "UnreadableData": "journal",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name means
    """Import a name when it is first used: the server brings aiohttp and protobuf with it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only what is used is imported

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
