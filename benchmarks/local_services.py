"""The local counterparts of Google's services, each in a process of its own, reached over sockets as in production."""

from __future__ import annotations

import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import grpc  # type: ignore[import-untyped]  # grpcio ships no types

from cloudsched import Settings
from cloudsched.adapters.firestore.emulator import EmulatorNotFound, find_emulator

UNREACHABLE = "http://127.0.0.1:9"
"""The target of dispatches; none is meant to come due during a measurement."""


@dataclass(frozen=True, slots=True)
class Services:
    """The addresses of the emulators, and settings with a new project and queue."""

    firestore: str
    tasks: str
    settings: Settings

    @property
    def queue(self) -> str:
        """The queue's name."""
        return f"projects/{self.settings.project}/locations/{self.settings.location}/queues/{self.settings.queue}"


@contextmanager
def run_services() -> Iterator[Services]:
    """Run Google's Firestore emulator and the local Cloud Tasks; exit with a hint if the former is not installed."""
    google = find_emulator()
    if isinstance(google, EmulatorNotFound):
        sys.exit(f"No Firestore emulator: {google.reason}. {google.hint}")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    settings = Settings(
        project=f"demo-{uuid.uuid4().hex[:12]}",
        executor_url=UNREACHABLE,
        secret=uuid.uuid4().hex,
        tasks_emulator=f"127.0.0.1:{port}",
    )
    queue = f"projects/{settings.project}/locations/{settings.location}/queues/{settings.queue}"
    command = (sys.executable, "-m", "cloudsched", "emulator", f"--port={port}", f"--queue={queue}")
    with google:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
        try:
            channel = grpc.insecure_channel(f"127.0.0.1:{port}")
            grpc.channel_ready_future(channel).result(timeout=120)
            channel.close()
            yield Services(google.address, f"127.0.0.1:{port}", settings)
        finally:
            process.terminate()
            process.wait()
