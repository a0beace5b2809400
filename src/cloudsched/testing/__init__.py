"""Tests of your own schedules: ``from cloudsched.testing import Simulation``, and a pytest plugin.

May import the app, everything below it, and the emulator's model, which is the simulation's queue.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.testing.simulation import START, Delivery, SimulatedQueue, Simulation

__all__ = ["START", "Delivery", "SimulatedQueue", "Simulation"]


def __getattr__(name: str) -> object:
    """Import a name when it is first used, because pytest imports the plugin in this package in every run."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("cloudsched.testing.simulation"), name)
    globals()[name] = value
    return value
