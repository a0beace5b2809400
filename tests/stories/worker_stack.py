"""A local stack whose work is fetched by workers in their own processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from tests.harness import SECRET, Process, process, wait_until

from cloudsched import App, Execution, Settings
from cloudsched.local.stack import Stack, run_stack

HANDLERS = '''
import os, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path  # noqa: TC003 - as elsewhere
from cloudsched import App, Context

app = App()
FOLDER = Path(os.environ["STORY"])


@app.handler("linger")
def linger(ctx: Context) -> str:
    """Say that it has begun, and go on when it is told to; until then talk without end."""
    (FOLDER / f"began-{ctx.attempt}").touch()
    while not (FOLDER / "go-on").exists():
        print("talks", flush=True)
        time.sleep(0.01)
    return f"attempt {ctx.attempt}"


@app.handler("note")
def note(ctx: Context) -> None:
    """Leave a line for each time that it runs."""
    with (FOLDER / "notes").open("a") as notes:
        notes.write(f"{ctx.task.id}\\n")


@app.handler("leave")
def leave() -> None:
    """Leave a thread behind that goes on for longer than any test."""
    ThreadPoolExecutor(1).submit(time.sleep, 3600)


@app.handler("meet")
def meet(ctx: Context) -> None:
    """Leave such a line, and wait for another process to do that as well."""
    note(ctx)
    (FOLDER / f"met-{os.getpid()}").touch()
    while len([*FOLDER.glob("met-*")]) < 2:
        time.sleep(0.01)
'''

HASTY = """
# As `python -m cloudsched`, but a worker repeats what fails at once, and gives threads that were left behind no time.
from cloudsched.cli import exit, main as cli
from cloudsched.worker import command as worker_command
from cloudsched.client import connection
from cloudsched.worker import slot, worker

connection.FIRST_PAUSE = 0.0
slot.INITIAL_BACKOFF = slot.MAX_BACKOFF = worker.PollBackoff.INITIAL_BACKOFF = worker.PollBackoff.MAX_BACKOFF = 0.05
worker_command.THREAD_EXIT_SECONDS = 0.0
exit.own_process()
cli.main()
"""


@dataclass
class WorkerStack:
    """A local stack, and what workers need to connect to it."""

    stack: Stack
    folder: Path
    kind: Literal["store", "api"]

    @contextmanager
    def worker(self, *options: str, url: str | None = None, start: str | None = None, **env: str) -> Iterator[Process]:
        """Run a worker of the queue ``gpu``; `start` is the code that does so."""
        where = self.stack.url if self.kind == "api" else ""
        around = self.stack.settings.to_child_environment(
            STORY=str(self.folder), CLOUDSCHED_URL=where if url is None else url, **env
        )
        program = ("-m", "cloudsched") if start is None else ("-c", start)
        command = (sys.executable, *program, "worker", "--queue", "gpu", "--poll", "0.1", *options)
        with process(*command, env=around, cwd=self.folder) as running_worker:
            yield running_worker

    def create(self, handler: str, **fields: Any) -> str:
        """Create a task for workers that is due now, and return its id."""
        usual = {"owner": "ada", "title": handler, "handler": handler, "pull": "gpu"}
        return self.stack.app.create(**{**usual, **fields}).id

    def offer(self, handler: str, **fields: Any) -> str:
        """Create a task and wait until it is offered; no worker must be free to take it meanwhile."""
        task_id = self.create(handler, **fields)
        wait_until(lambda: self.stack.app.get(task_id).offer, "it is offered")
        return task_id

    def record(self, task_id: str) -> Execution:
        (found,) = self.stack.app.executions(task_id).items
        return found

    def wait_for_status(self, task_id: str, status: str) -> None:
        """Wait until a task's execution has a status."""
        wait_until(lambda: [each.status for each in self.stack.app.executions(task_id).items] == [status], status)

    def wait_until_started(self, attempt: int = 1) -> None:
        wait_until((self.folder / f"began-{attempt}").exists, f"attempt {attempt} has begun")

    def finish_lingering(self) -> None:
        (self.folder / "go-on").touch()


@contextmanager
def open_worker_stack(
    folder: Path, kind: Literal["store", "api"], store: Literal["sqlite", "firestore"] = "sqlite", **settings: Any
) -> Iterator[WorkerStack]:
    """Start the stack in a folder, with handlers for the workers beside it."""
    (folder / "handlers.py").write_text(HANDLERS)
    base = Settings(secret=SECRET, default_lead=timedelta(0), **settings)
    with run_stack(App(), base=base, store=store, data=folder if store == "sqlite" else None) as stack:
        yield WorkerStack(stack, folder, kind)
