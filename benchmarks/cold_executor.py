"""New executor processes, each of which serves one dispatch of the functions that are deployed, and reports."""

from __future__ import annotations

import dataclasses
import json
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudsched import App, ExecutionStatus, Schedule, Task
from cloudsched.adapters.firestore.store import FirestoreStore

if TYPE_CHECKING:
    from benchmarks.local_services import Services

FUNCTIONS = Path(__file__).parents[1] / "functions"
PROCESS = Path(__file__).with_name("first_dispatch.py")
KEEPS_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""What is deployed is compiled when it is installed, so these processes may keep what they have compiled."""
TIMEOUT_SECONDS = 120


class ColdExecutor:
    """Starts new executor processes, and has a dispatch delivered to each."""

    def __init__(self, service: Services, python: str = sys.executable) -> None:
        self._python = python
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=8)
        address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        settings = dataclasses.replace(
            service.settings, store="firestore", firestore_emulator=service.firestore, executor_url=address
        )
        self._environment = {**settings.to_child_environment(), **KEEPS_BYTECODE}
        store = FirestoreStore(project=settings.project, emulator=service.firestore, deadline=timedelta(minutes=1))
        self._app = App(settings, store=store)

        @self._app.handler("remind")
        def remind(payload: dict[str, str]) -> None:
            """Stand for the deployed handler of that name, which the other process runs."""

    def create_task(self) -> Task:
        """Create a recurring task that is due in a few seconds, so that its dispatch waits at the socket."""
        due = self._app.container.clock.now().replace(microsecond=0) + timedelta(seconds=3)
        schedule = Schedule(rrule="FREQ=DAILY", dtstart=due.replace(tzinfo=None).isoformat(), timezone="UTC")
        return self._app.create(
            owner="ada", title="Water", handler="remind", payload={"text": "Water the plants"}, schedule=schedule
        )

    def run(self, task: Task) -> dict[str, Any]:
        """Start a process that answers the task's dispatch; return its report after checking that the task has run."""
        descriptor = self._listener.fileno()
        process = subprocess.run(  # noqa: S603 - our own interpreter, our own script
            (self._python, str(PROCESS), str(descriptor), str(FUNCTIONS / "main.py")),
            cwd=FUNCTIONS,
            env=self._environment,
            pass_fds=(descriptor,),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=TIMEOUT_SECONDS,
        )
        report: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
        (execution,) = self._app.executions(task.id).items
        if execution.status is not ExecutionStatus.SUCCEEDED or not report["status"].startswith("200"):
            raise AssertionError(f"The dispatch was not served: {report['status']}, {execution}")
        if self._app.get(task.id).next_execution_time == task.next_execution_time:
            raise AssertionError("The next occurrence was not planned.")
        self._app.cancel(task.id)
        return report

    def close(self) -> None:
        """Close the app and the socket."""
        self._app.close()
        self._listener.close()
