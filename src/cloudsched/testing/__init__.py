"""Tests of your own schedules: ``from cloudsched.testing import Simulation``, and a pytest plugin.

May import the app, everything below it, and the emulator's model, which is the simulation's queue.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.testing.simulated_queue import Delivery, SimulatedQueue
    from cloudsched.testing.simulation import START, Simulation

__all__ = ["START", "Delivery", "SimulatedQueue", "Simulation"]
_QUEUE = ("Delivery", "SimulatedQueue")


def __getattr__(name: str) -> object:
    """Import a name when it is first used, because pytest imports the plugin in this package in every run."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "simulated_queue" if name in _QUEUE else "simulation"
    value = getattr(import_module(f"cloudsched.testing.{module}"), name)
    globals()[name] = value
    return value
