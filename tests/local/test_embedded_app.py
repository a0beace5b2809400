"""An app inside the user's own process: started and stopped with it, and nothing of the process is changed for good."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.harness import run_to_end, wait_until
from tests.instants import MINUTE, SECOND
from werkzeug.test import Client

import cloudsched
from cloudsched import App, Context, Schedule, Settings, TaskStatus
from cloudsched.config.access import Access
from cloudsched.errors import Misconfigured
from cloudsched.testing import Simulation

OPEN = Settings(access=Access(open=True))


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def app(ran: list[str]) -> App:
    app = App(Settings())

    @app.handler("note")
    def note(ctx: Context) -> None:
        ran.append(ctx.task.id)

    return app


@pytest.fixture(autouse=True)
def _leaves_the_process_as_it_was() -> Iterator[None]:
    """Each test ends with the signals and the logging with which it began, and leaves no thread.

    One that an earlier test began may end meanwhile.
    """
    threads, before = list_threads(), describe_process()
    yield
    wait_until(lambda: list_threads() <= threads and describe_process() == before, "it is as before")


def list_threads() -> set[str]:
    return {each.name for each in threading.enumerate() if each.is_alive()}


def describe_process() -> object:
    signals = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)]
    return signals, list(logging.getLogger().handlers), logging.getLogger().level


def test_it_runs_what_the_process_creates_and_serves_the_api(app: App, ran: list[str], tmp_path: Path) -> None:
    """Under the prefix where it is mounted; the executor and the sweep are called in this process alone."""
    with cloudsched.embedded(app, tmp_path / "data", settings=OPEN) as scheduler:
        assert scheduler.is_running
        app.create(id="a", handler="note")
        wait_until(lambda: ran == ["a"], "it has run")
        client = Client(scheduler)
        found = client.get("/v1/tasks/a", environ_overrides={"REMOTE_ADDR": "127.0.0.1"})
        assert dict(found.json or {})["id"] == "a"
        assert client.post("/v1/tasks/execute").status_code in {401, 404, 405}
        assert client.post("/v1/sweep").status_code in {401, 404, 405}
    assert not scheduler.is_running


def test_a_run_is_claimed_before_its_instant_and_its_handler_never_called_early(app: App, tmp_path: Path) -> None:
    """Three in a row begin at their very instants, which chance does not do, and a machine that stands still delays."""
    called: list[tuple[datetime, datetime]] = []

    @app.handler("tick")
    def tick(ctx: Context) -> None:
        called.append((ctx.scheduled_for, datetime.now(UTC)))

    def began_at_its_instant() -> bool:
        at = datetime.now(UTC) + timedelta(milliseconds=50)
        task = app.create(handler="tick", schedule=Schedule.once(at))
        wait_until(lambda: app.get(task.id).has_ended, "it has run")
        return app.executions(task.id).items[0].started_at == at

    with cloudsched.embedded(app, tmp_path / "data"):
        wait_until(lambda: all(began_at_its_instant() for _ in range(3)), "three have begun at their instants")
    assert all(at >= due for due, at in called)


@pytest.mark.parametrize("threads", [4, 1])
def test_a_handler_that_hangs_holds_up_no_other(threads: int, app: App, ran: list[str], tmp_path: Path) -> None:
    """Its runs begin one by one, however many wait, until one has ended in time; then all of them run."""
    is_over, hung = threading.Event(), list[str]()

    @app.handler("hang", expected_duration=SECOND, retry=0)
    def hang(ctx: Context) -> None:
        hung.append(ctx.task.id)
        is_over.wait()

    with cloudsched.embedded(app, tmp_path / "data", threads=threads):
        tasks = [app.create(handler="hang").id for _ in range(40)]
        for number in range(30):
            app.create(id=f"n-{number}", handler="note")
        wait_until(lambda: len(ran) == 30, "all others have run")
        begun = len(hung)
        is_over.set()
        wait_until(lambda: all(app.get(each).has_ended for each in tasks), "all of them have ended")
        statuses = [app.get(each).status for each in tasks]
    assert begun < 2 * threads + 4
    assert statuses.count(TaskStatus.FAILED) <= begun


def test_it_is_started_again_after_it_was_stopped(app: App, ran: list[str], tmp_path: Path) -> None:
    """As a server does that reloads, or a test: what waits is still there, and the secret is the same."""
    secrets = []
    for number in range(2):
        with cloudsched.embedded(app, tmp_path / "data", settings=OPEN):
            secrets.append(app.container.settings.secret)
            app.create(id=f"n-{number}", handler="note")
            wait_until(lambda number=number: len(ran) == number + 1, "it has run")  # type: ignore[misc]
            assert len(app.tasks().items) == number + 1
    assert secrets[0] == secrets[1]
    assert (tmp_path / "data/secret").stat().st_mode & 0o077 == 0


def test_stored_tasks_of_a_handler_that_is_gone_are_told(
    app: App, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each start over them says so."""
    app.handler("old")(lambda: None)
    with cloudsched.embedded(app, tmp_path / "data"):
        app.create(handler="old", schedule="daily at 9")
    with cloudsched.embedded(App(Settings()), tmp_path / "data"):
        wait_until(lambda: "'old' (handler): there is no handler of this name" in caplog.text, "it is told")


def test_an_app_and_a_folder_are_embedded_once_in_a_process(app: App, tmp_path: Path) -> None:
    """A second start is refused; several apps, each with a folder of its own, run side by side."""
    other = App(Settings())
    with cloudsched.embedded(app, tmp_path / "one") as scheduler:
        with pytest.raises(Misconfigured, match="started already"):
            scheduler.start()
        with pytest.raises(Misconfigured, match="This app is embedded"):
            cloudsched.embedded(app, tmp_path / "two").start()
        with pytest.raises(Misconfigured, match="a folder of its own"):
            cloudsched.embedded(other, tmp_path / "one").start()
        with cloudsched.embedded(other, tmp_path / "two") as second:
            assert scheduler.is_running
            assert second.is_running


def test_an_app_that_nobody_has_started_says_how(app: App, tmp_path: Path) -> None:
    """Before it is started and after it was stopped: the lifespan is what was forgotten, and not a store."""
    scheduler = cloudsched.embedded(app, tmp_path / "data")
    for _ in range(2):
        with pytest.raises(Misconfigured, match=r"FastAPI\(lifespan=scheduler\.lifespan\)"):
            app.create(handler="note")
        with scheduler:
            assert app.create(handler="note").status is TaskStatus.ACTIVE
    with pytest.raises(Misconfigured, match="No store is set"):
        App(Settings()).create(handler="note")


def test_another_app_on_the_folder_is_refused_and_other_handlers_are_told(
    app: App, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What it creates would fail where it runs; during a deployment, some handlers may be new."""
    another, newer = App(Settings()), App(Settings())
    another.handler("send")(lambda: None)
    newer.handler("note")(lambda: None)
    newer.handler("send")(lambda: None)
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM, tmp_path / "data", "waits"], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "runs\n"
        with pytest.raises(Misconfigured, match=f"Process {other.pid} .* no handler send: .* with note"):
            cloudsched.embedded(another, tmp_path / "data").start()
        with cloudsched.embedded(app, tmp_path / "data"):
            assert "no handler" not in caplog.text
        with cloudsched.embedded(newer, tmp_path / "data"):
            assert f"Process {other.pid} runs the tasks" in caplog.text
        other.kill()


def test_a_service_that_is_started_in_a_simulation_is_refused(app: App, ran: list[str], tmp_path: Path) -> None:
    """What its test creates would be stored in the real folder, and run there: the test would see nothing of it."""
    scheduler = cloudsched.embedded(app, tmp_path / "data", settings=OPEN)
    with Simulation(app) as sim:
        with pytest.raises(Misconfigured, match="in a Simulation"):
            scheduler.start()
        assert not (tmp_path / "data").exists()
        app.create(id="a", handler="note")
        sim.advance(MINUTE)
        assert ran == ["a"]
    with scheduler:
        app.create(id="b", handler="note")
        wait_until(lambda: ran == ["a", "b"], "it has run")


def test_a_folder_with_a_long_path_will_do(app: App, ran: list[str], tmp_path: Path) -> None:
    """The paths of sockets are short, those of folders are not."""
    with cloudsched.embedded(app, tmp_path / ("long" * 30)):
        app.create(id="a", handler="note")
        wait_until(lambda: ran == ["a"], "it has run")


def test_a_fork_after_the_start_is_told(app: App, ran: list[str], tmp_path: Path) -> None:
    """The forked process is told at its first use, and its parent goes on."""
    with cloudsched.embedded(app, tmp_path / "data"):
        child = os.fork()
        if child == 0:  # pragma: no cover - in another process
            try:
                app.create(id="b", handler="note")
            except Misconfigured as error:
                os._exit(0 if "after the fork" in str(error) else 1)
            os._exit(2)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        app.create(id="a", handler="note")
        wait_until(lambda: ran == ["a"], "the parent runs it")


PROGRAM = """
import os, sys, time
import cloudsched
app = cloudsched.App(cloudsched.Settings())

@app.handler("note")
def note():
    os.write(1, b"runs\\n")  # whole, whatever another thread writes

cloudsched.embedded(app, sys.argv[1]).start()
app.create(id="a", handler="note")
if sys.argv[2] == "waits":
    time.sleep(60)
elif sys.argv[2] == "forks and dies":
    if (child := os.fork()) == 0:
        time.sleep(60)
    os.write(1, b"%d\\n" % child)
    os.kill(os.getpid(), 9)
"""


def test_the_process_ends_when_its_own_work_does(tmp_path: Path) -> None:
    """Nothing that is started keeps it from its exit, although nobody stops it."""
    done = run_to_end([sys.executable, "-c", PROGRAM, tmp_path / "data", "ends"])
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_process_does_not_keep_the_folder_locked(app: App, tmp_path: Path) -> None:
    """The lock ends with the process that was started, although a child of it lives on, such as one of a pool."""
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM, tmp_path / "data", "forks and dies"], stdout=subprocess.PIPE, text=True
    ) as dying:
        assert dying.stdout is not None
        child = int(next(line for line in iter(dying.stdout.readline, "") if line != "runs\n"))
    try:
        with cloudsched.embedded(app, tmp_path / "data") as scheduler:
            wait_until(lambda: scheduler.is_running, "it runs the tasks, although the child lives")
    finally:
        os.kill(child, signal.SIGKILL)


def test_another_process_takes_over_when_the_one_that_runs_dies(app: App, ran: list[str], tmp_path: Path) -> None:
    """It creates meanwhile, and hands over; what waited in the dead process runs here."""
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM, tmp_path / "data", "waits"], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "runs\n"
        with cloudsched.embedded(app, tmp_path / "data") as scheduler:
            assert not scheduler.is_running
            app.create(id="b", handler="note")
            assert other.stdout.readline() == "runs\n"
            ended = [TaskStatus.COMPLETED] * 2
            wait_until(lambda: [app.get(each).status for each in "ab"] == ended, "the results of both are stored")
            app.create(id="c", handler="note", schedule="in 3 seconds")
            other.kill()
            wait_until(lambda: scheduler.is_running, "it has taken over")
            wait_until(lambda: ran == ["c"], "it has run here")
