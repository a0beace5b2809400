"""One Firestore emulator for all processes of a run: the first test that asks for it starts it.

xdist's controller owns it, so it ends with the run, whichever process ends first. Without xdist, and where
FIRESTORE_EMULATOR_HOST names one, there is nothing to share.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from threading import Thread

import pytest

from cloudsched.adapters.firestore.emulator import EmulatorNotFound, FirestoreEmulator, find_emulator
from cloudsched.errors import StoreUnavailable

ASK_AT = "CLOUDSCHED_TEST_EMULATOR"
"""The environment variable with the controller's port, which names the emulator's address to those who connect."""
_STATE = pytest.StashKey["SharedEmulator"]()


class SharedEmulator:
    """Answers with the address of an emulator that it starts once; with nothing if there is none to start."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._emulator: FirestoreEmulator | None = None
        self._thread = Thread(target=self._answer, name="shared-emulator", daemon=True)
        self._thread.start()

    def _answer(self) -> None:
        with suppress(OSError):  # the server was closed
            while True:
                connection, _ = self._server.accept()
                with connection, suppress(StoreUnavailable, OSError):
                    connection.sendall(self._start().encode())

    def _start(self) -> str:
        if self._emulator is None:
            found = find_emulator()
            if isinstance(found, EmulatorNotFound):
                return ""
            found.start()
            self._emulator = found
        return self._emulator.address

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._server.close()
        self._thread.join()
        if self._emulator is not None:
            self._emulator.stop()


def find_address() -> str | None:
    """Return the address of the emulator that this run shares or was given, if any."""
    port = os.environ.get(ASK_AT)
    given = os.environ.get("FIRESTORE_EMULATOR_HOST")
    if given or port is None:
        return given
    with suppress(OSError), socket.create_connection(("127.0.0.1", int(port))) as controller:
        return controller.makefile().read() or None
    return None


def pytest_configure(config: pytest.Config) -> None:
    """Offer an emulator to the processes that xdist is about to start."""
    is_controller = not hasattr(config, "workerinput") and config.getoption("dist", "no") != "no"
    if is_controller and not config.option.collectonly:
        config.stash[_STATE] = SharedEmulator()
        os.environ[ASK_AT] = str(config.stash[_STATE].port)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End it, before what the run left behind is looked for."""
    state = session.config.stash.get(_STATE, None)
    if state is not None:
        del os.environ[ASK_AT], session.config.stash[_STATE]
        state.close()
