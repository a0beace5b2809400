"""The servers of the benchmarks, each in a process of its own, reached over sockets as in production."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from tests.harness import Process, free_port, process

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
def serve(folder: Path) -> Iterator[tuple[Process, str]]:
    """Run `cloudsched serve` with the code of a folder, which keeps the data; yield the process and its address."""
    names = {"K_SERVICE", "CLOUDSCHED_API_KEYS"}
    env = {name: value for name, value in os.environ.items() if name not in names}
    command = (sys.executable, "-m", "cloudsched", "serve", "--port", "0", "--data", "data")
    with process(*command, env={**env, "CLOUDSCHED_OPEN": "on"}, cwd=folder) as service:
        yield service, service.wait_for(r"API +(http://\S+)/v1/tasks")[1]


@contextmanager
def run_firestore() -> Iterator[str]:
    """Run Google's Firestore emulator and yield its address; exit with a hint if it is not installed."""
    google = find_emulator()
    if isinstance(google, EmulatorNotFound):
        sys.exit(f"No Firestore emulator: {google.reason}. {google.hint}")
    with google:
        yield google.address


@contextmanager
def run_services() -> Iterator[Services]:
    """Run Google's Firestore emulator and the local Cloud Tasks."""
    port = free_port()
    settings = Settings(
        project=f"demo-{uuid.uuid4().hex[:12]}",
        executor_url=UNREACHABLE,
        secret=uuid.uuid4().hex,
        tasks_emulator=f"127.0.0.1:{port}",
    )
    queue = f"projects/{settings.project}/locations/{settings.location}/queues/{settings.queue}"
    command = (sys.executable, "-m", "cloudsched", "emulator", f"--port={port}", f"--queue={queue}")
    with run_firestore() as firestore:
        emulator = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
        try:
            channel = grpc.insecure_channel(f"127.0.0.1:{port}")
            grpc.channel_ready_future(channel).result(timeout=120)
            channel.close()
            yield Services(firestore, f"127.0.0.1:{port}", settings)
        finally:
            emulator.terminate()
            emulator.wait()
