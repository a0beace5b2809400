"""The local counterparts of Google's services, each in a process of its own, as a function would meet them."""

from __future__ import annotations

import socket
import subprocess
import sys
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc  # type: ignore[import-untyped]  # grpcio ships no types

from cloudsched import Settings
from cloudsched.adapters.firestore.emulator import EmulatorNotFound, find_emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = "http://127.0.0.1:9"
"""Where dispatches would go, if any came due while something is measured."""


@dataclass(frozen=True, slots=True)
class Services:
    """Where the emulators listen, and a project and a queue of their own."""

    firestore: str
    tasks: str
    settings: Settings

    @property
    def queue(self) -> str:
        """The queue's full name."""
        return f"projects/{self.settings.project}/locations/{self.settings.location}/queues/{self.settings.queue}"


@contextmanager
def services() -> Iterator[Services]:
    """Run Google's Firestore emulator and the local Cloud Tasks."""
    found = find_emulator()
    if isinstance(found, EmulatorNotFound):
        sys.exit(f"No Firestore emulator: {found.reason}. {found.hint}")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    settings = Settings(
        project=f"demo-{uuid.uuid4().hex[:12]}",
        executor_url=NOBODY,
        secret=uuid.uuid4().hex,
        tasks_emulator=f"127.0.0.1:{port}",
    )
    queue = f"projects/{settings.project}/locations/{settings.location}/queues/{settings.queue}"
    command = (sys.executable, "-m", "cloudsched", "emulator", f"--port={port}", f"--queue={queue}")
    with found:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
        try:
            channel = grpc.insecure_channel(f"127.0.0.1:{port}")
            grpc.channel_ready_future(channel).result(timeout=30)
            channel.close()
            yield Services(found.address, f"127.0.0.1:{port}", settings)
        finally:
            process.terminate()
            process.wait()
