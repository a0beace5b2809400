"""A deployment on one machine: functions in their own processes, a local Cloud Tasks between them, and a store."""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.harness import ROOT, START, Function, free_port, function

from cloudsched import App, Settings
from cloudsched.config.access import Access
from cloudsched.emulator import CloudTasksEmulator, MovableClock

HANDLERS = '''
import os, time
from datetime import timedelta
from pathlib import Path
from cloudsched import App, Context

app = App()
FOLDER = Path(os.environ["STORY"])


@app.handler("linger", expected_duration=timedelta(minutes=5))
def linger(ctx: Context) -> str:
    """Say that it has begun, and go on when it is told to."""
    (FOLDER / f"began-{ctx.attempt}").touch()
    give_up_at = time.monotonic() + 600
    while not (FOLDER / "go-on").exists():
        if time.monotonic() > give_up_at:
            raise TimeoutError("nobody says go on")
        time.sleep(0.01)
    ctx.notify("Lingered", f"attempt {ctx.attempt}")
    return f"attempt {ctx.attempt}"


@app.handler("greet")
def greet(ctx: Context) -> str:
    """Greet."""
    ctx.notify("Hello", "World")
    return "hello"


@app.handler("stumble", retry=1)
def stumble(ctx: Context) -> str:
    """Fail."""
    ctx.progress("about to fail")
    raise RuntimeError("it stumbled")
'''


@dataclass(frozen=True, slots=True)
class Deployment:
    """The addresses of the functions, and the settings by which they find each other."""

    settings: Settings
    emulator: CloudTasksEmulator
    folder: Path
    """Where the handlers leave their marks, and `main.py` lies."""
    port: int
    """The executor's."""

    def serve(self, target: str, settings: Settings | None = None) -> AbstractContextManager[Function]:
        """Serve one function, with these settings replaced."""
        env = (settings or self.settings).to_child_environment(STORY=str(self.folder))
        port = self.port if target == "execute" else free_port()
        return function(target, env, self.folder / "main.py", port)

    def answers(self) -> list[str]:
        """Return the functions' responses to the queue, for the message of a failed test."""
        answers = [(attempt.dispatch_at, attempt.answer) for attempt in self.emulator.attempts()]
        return [f"{at} {answer.status} {answer.failure or answer.body.decode()}" for at, answer in answers]

    @contextmanager
    def client(self) -> Iterator[App]:
        """Return an app in this process with handlers of the same names, on the same store and queue."""
        app = App(self.settings)
        for name in ("linger", "greet", "stumble"):
            app.handler(name)(_never)
        try:
            yield app
        finally:
            app.close()


@contextmanager
def run_deployment(base: Settings, folder: Path) -> Iterator[Deployment]:
    """Run everything except the functions; the clock is frozen."""
    shutil.copy(ROOT / "functions" / "main.py", folder)
    (folder / "handlers.py").write_text(HANDLERS)
    queue = f"projects/{base.project}/locations/{base.location}/queues/{base.queue}"
    port = free_port()
    with CloudTasksEmulator(clock=MovableClock(START, frozen=True), queues=[queue]) as emulator:
        settings = replace(
            base,
            executor_url=f"http://127.0.0.1:{port}",
            data=folder / "tasks.db" if base.store == "sqlite" else None,
            tasks_emulator=emulator.address,
            access=Access(open=True),
        )
        yield Deployment(settings, emulator, folder, port)


def _never() -> None:
    raise AssertionError("handlers run in the executor's process")
