"""One Firestore emulator for all processes of a run: xdist's controller starts it, so it ends with the run."""

from __future__ import annotations

import os

import pytest

from cloudsched.adapters.firestore.emulator import EmulatorNotFound, FirestoreEmulator, find_emulator

ADDRESS = "CLOUDSCHED_TEST_EMULATOR"
"""The environment variable with its address."""
_STATE = pytest.StashKey[FirestoreEmulator]()


def pytest_configure(config: pytest.Config) -> None:
    """Start it for the processes that xdist is about to start."""
    is_controller = not hasattr(config, "workerinput") and config.getoption("dist", "no") != "no"
    if not is_controller or config.option.collectonly or "FIRESTORE_EMULATOR_HOST" in os.environ:
        return
    found = find_emulator()
    if not isinstance(found, EmulatorNotFound):
        os.environ[ADDRESS] = found.start()
        config.stash[_STATE] = found


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End it, before what the run left behind is looked for."""
    emulator = session.config.stash.get(_STATE, None)
    if emulator is not None:
        del os.environ[ADDRESS], session.config.stash[_STATE]
        emulator.stop()
