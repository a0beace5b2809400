"""``cloudsched serve``: one process over one file, on the real clock, killed and started again."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.harness import WAIT_SECONDS, Process, process, request, wait_until
from tests.instants import HOUR, SECOND

from cloudsched.config import supervisor
from cloudsched.config.supervisor import Supervisor

PATIENT = """
from datetime import timedelta
from cloudsched.__main__ import main
from cloudsched.local import runner
runner.GRACE = timedelta(minutes=5)  # a test that waits is slower than this on a busy machine
main()
"""
SERVE = (sys.executable, "-c", PATIENT, "serve", "--port", "0", "--data", "data")
SLEEP = "import threading, time; time.sleep = lambda seconds: threading.Event().wait(seconds) and None"
"""Under libfaketime, Python 3.11 refuses each ``time.sleep`` (EINVAL) if only the wall clock is set."""
HANDLERS = """
import os, time
from cloudsched import App, Context

app = App()

@app.handler("note", access="users")
def note(ctx: Context, payload: dict[str, str]) -> str:
    while (awaited := payload.get("until")) and not os.path.exists(awaited):
        time.sleep(0.01)
    with open("ran.txt", "a") as file:
        file.write(ctx.task.id + "\\n")
    return ctx.task.id

@app.handler("durable", access="users")
def durable(ctx: Context, payload: dict[str, str]) -> str:
    def first() -> None:
        with open("steps.txt", "a") as file:
            file.write("first\\n")

    ctx.step("first", first)
    return ctx.step("second", lambda: note(ctx, payload))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "handlers.py").write_text(HANDLERS)
    return tmp_path


LEFTOVERS = """
import concurrent.futures, multiprocessing, threading
from datetime import timedelta
from cloudsched import App, Context, RetryPolicy

app, never, kept = App(), threading.Event(), []
forks = multiprocessing.get_context("fork")

@app.handler("leave", access="users")
def leave() -> None:
    pool = concurrent.futures.ThreadPoolExecutor(1, "left")
    pool.submit(never.wait)
    child = forks.Process(target=never.wait, name="child")
    child.start()
    kept.extend((pool, child))

@app.handler("hang", access="users", expected_duration=timedelta(seconds=1))
def hang() -> None:
    never.wait()

@app.handler("note", access="users")
def note(ctx: Context) -> str:
    return ctx.task.id

@app.handler("fork", access="users", retry=False)
def fork(ctx: Context) -> str:
    children = [forks.Process(target=create, args=(f"{ctx.task.id}-{number}",)) for number in range(6)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    return ",".join(str(child.exitcode) for child in children)

def create(task_id: str) -> None:
    app.create(id=task_id, owner="ada", handler="note")
"""
IMPATIENT = """
from cloudsched.__main__ import main
from cloudsched.engine.execution import running_handlers
from cloudsched.engine.sweep import due_work
from cloudsched.local import runner
runner.LOOK_SECONDS, due_work.STALL_SECONDS, running_handlers.MAX_HANGING = 0.1, 1.0, 1
runner.GRACE = runner.GRACE / 10
main()
"""


@contextmanager
def serve(folder: Path, *options: str, **variables: str) -> Iterator[tuple[Process, str]]:
    """Run the service; yield the process and the API's address."""
    names = {"K_SERVICE", "CLOUDSCHED_API_KEYS", "CLOUDSCHED_OPEN"}
    env = {name: value for name, value in os.environ.items() if name not in names}
    script = variables.pop("script", PATIENT)
    command = (sys.executable, "-c", script, *SERVE[3:], *options)
    with process(*command, env={**env, "CLOUDSCHED_OPEN": "on", **variables}, cwd=folder) as service:
        yield service, service.wait_for(r"API +(http://\S+)/v1/tasks")[1]


def create(url: str, task_id: str, due_in: float = 0, handler: str = "note", **payload: str) -> int:
    at = datetime.now(UTC) + timedelta(seconds=due_in)
    task = {"id": task_id, "owner": "ada", "handler": handler, "title": "Note", "payload": payload}
    return request(url, "POST", "/v1/tasks", {**task, "schedule": {"at": at.isoformat()}}).status


def statuses(url: str, task_id: str) -> list[str]:
    found = request(url, "GET", f"/v1/tasks/{task_id}/executions").body["executions"]
    return [execution["status"] for execution in found]


class Load:
    """Clients that create tasks, each due in a second, until they are told to stop or the server is gone."""

    def __init__(self, url: str, name: str) -> None:
        self.acknowledged: list[str] = []
        self._url = url
        self._stop = threading.Event()
        self._clients = [threading.Thread(target=self._work, args=(f"{name}-{n}",)) for n in range(4)]
        for client in self._clients:
            client.start()

    def end(self) -> list[str]:
        """Stop; return the ids of the tasks whose creation was acknowledged."""
        self._stop.set()
        for client in self._clients:
            client.join()
        return self.acknowledged

    def _work(self, client: str) -> None:
        with suppress(OSError, HTTPException):  # an answer that a kill cut off acknowledges nothing
            for number in range(10_000):
                if self._stop.is_set():
                    return
                if create(self._url, name := f"{client}-{number}", due_in=1) == 201:
                    self.acknowledged.append(name)


def test_nothing_acknowledged_is_lost_when_it_is_killed_under_load(folder: Path) -> None:
    """Tasks are created while the process is killed, twice; each that was acknowledged has one record.

    What a kill interrupted goes on at once.
    """
    acknowledged: list[str] = []
    for life in range(2):
        with serve(folder) as (service, url):
            load = Load(url, str(life))
            wait_until(lambda load=load: len(load.acknowledged) >= 60, "tasks are created")  # type: ignore[misc]
            service.kill()
            acknowledged += load.end()
    with serve(folder) as (_, url):
        for name in acknowledged:
            wait_until(lambda name=name: statuses(url, name) == ["SUCCEEDED"], f"{name} has run")  # type: ignore[misc]


def test_what_was_running_goes_on_after_a_kill(folder: Path) -> None:
    """The leases of the dead process, which last for minutes, are over: durable work continues, the rest starts again.

    A worker's claim is left alone, since the worker is alive.
    """
    names = ("note", "durable")
    with serve(folder) as (service, url):
        for name in names:
            assert create(url, name, due_in=3600, handler=name, until="go") == 201
            assert request(url, "POST", f"/v1/tasks/{name}/trigger").status == 200
        task = {"id": "workers", "owner": "ada", "handler": "note", "title": "Note", "payload": {}, "pull": "q"}
        assert request(url, "POST", "/v1/tasks", task).status == 201
        claim = {"worker": "w", "handlers": ["note"]}
        wait_until(lambda: request(url, "POST", "/v1/queues/q/claim", claim).body["claims"], "a worker has it")
        for name in names:
            wait_until(lambda name=name: statuses(url, name) == ["RUNNING"], f"{name} runs")  # type: ignore[misc]
        wait_until((folder / "steps.txt").exists, "the first step is taken")
        service.kill()
    with serve(folder) as (_, url):
        (folder / "go").touch()
        for name in names:
            wait_until(lambda name=name: statuses(url, name) == ["SUCCEEDED"], f"{name} has run")  # type: ignore[misc]
            (record,) = request(url, "GET", f"/v1/tasks/{name}/executions").body["executions"]
            lost, done = record["attempts"]
            assert (lost["status"], lost["error"]["type"], done["status"]) == ("TIMED_OUT", "ProcessEnded", "SUCCEEDED")
        assert statuses(url, "workers") == ["RUNNING"]
    assert (folder / "steps.txt").read_text() == "first\n"


def test_waiting_tasks_come_back_without_an_edit(folder: Path) -> None:
    """After a kill a task that waits has the same revision and edit time, and runs on its second."""
    with serve(folder) as (service, url):
        assert create(url, "soon", due_in=3) == 201
        assert create(url, "later", due_in=3600) == 201
        before = request(url, "GET", "/v1/tasks/later").body
        service.kill()
    with serve(folder) as (_, url):
        back_at = datetime.now(UTC)
        after = request(url, "GET", "/v1/tasks/later").body
        assert (after["revision"], after["updatedAt"]) == (before["revision"], before["updatedAt"])
        wait_until(lambda: statuses(url, "soon") == ["SUCCEEDED"], "it has run")
        (record,) = request(url, "GET", "/v1/tasks/soon/executions").body["executions"]
        due = datetime.fromisoformat(record["scheduledFor"])
        started = datetime.fromisoformat(record["startedAt"])
        assert due <= started < max(due, back_at) + 20 * SECOND, "sent by the load, not repaired by a sweep"


@pytest.fixture
def fake_time(tmp_path: Path) -> dict[str, str]:
    """The variables with which libfaketime sets a process's wall clock, and nothing else, as a file says."""
    found = [*Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), *Path("/usr/local/lib").glob("faketime/*MT*")]
    if not found:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("There is no libfaketime. Install Debian's faketime.")
    (tmp_path / "clock").write_text("+0")
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "sitecustomize.py").write_text(SLEEP)
    return {
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "path"), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "LD_PRELOAD": str(found[0]),
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # or each wait for the interpreter's lock is over at once, and begins anew
        "NO_FAKE_STAT": "1",
        "FAKETIME_TIMESTAMP_FILE": str(tmp_path / "clock"),
        "FAKETIME_CACHE_DURATION": "1",
    }


@pytest.mark.parametrize("hours", [2, -2])
def test_it_goes_on_when_the_clock_is_set(folder: Path, fake_time: dict[str, str], hours: int) -> None:
    """The wall clock of the process jumps and its monotonic clock does not, as when a machine wakes up or NTP corrects.

    What comes due then runs, and so does what was due in the time that was skipped; what has run stays as it is.
    """
    with serve(folder, **fake_time) as (_, url):

        def read_clock() -> datetime:
            return datetime.fromisoformat(request(url, "GET", "/v1/caller").body["now"])

        def create_due(task_id: str, due_in: timedelta) -> None:
            schedule = {"at": (read_clock() + due_in).isoformat()}
            task = {"id": task_id, "owner": "ada", "handler": "note", "title": "Note", "payload": {}}
            assert request(url, "POST", "/v1/tasks", {**task, "schedule": schedule}).status == 201

        began = read_clock()
        create_due("before", SECOND)
        create_due("in-an-hour", HOUR)
        wait_until(lambda: statuses(url, "before") == ["SUCCEEDED"], "it runs")
        (folder / "clock").write_text(f"{hours:+}h")
        wait_until(lambda: abs(read_clock() - began) > 1.5 * HOUR, "the clock is set")
        create_due("after", 2 * SECOND)
        wait_until(lambda: statuses(url, "after") == ["SUCCEEDED"], "what comes due runs")
        if hours > 0:
            wait_until(lambda: statuses(url, "in-an-hour") == ["SUCCEEDED"], "what was skipped runs")
        wait_until(lambda: request(url, "GET", "/ready").status == 200, "all threads do their work")
    assert sorted((folder / "ran.txt").read_text().split()) == sorted(
        {"before", "after"} | ({"in-an-hour"} if hours > 0 else set())
    )


def test_one_process_at_a_time_uses_a_folder(folder: Path) -> None:
    """A second one is refused, names the first, and takes nothing from it."""
    with serve(folder) as (service, url):
        with process(*SERVE, env={**os.environ, "CLOUDSCHED_OPEN": "on"}, cwd=folder) as second:
            assert second.wait() == 2
            assert f"in use by process {min(service.family())}" in second.output
        assert create(url, "a", due_in=60) == 201


def test_handlers_that_hang_hold_up_nothing_else_and_are_named(folder: Path) -> None:
    """The tasks of a handler of which too many hang are held back: `/ready`, `/health` and the explanation say why."""
    (folder / "handlers.py").write_text(LEFTOVERS)
    with serve(folder, "--threads", "1", script=IMPATIENT) as (service, url):
        assert create(url, "first", handler="hang") == 201
        wait_until(lambda: "hanging" in request(url, "GET", "/health").body, "it hangs")
        assert request(url, "GET", "/ready").status == 200
        assert create(url, "second", handler="hang") == 201
        assert create(url, "other") == 201
        wait_until(lambda: statuses(url, "other") == ["SUCCEEDED"], "the other has run")
        wait_until(lambda: request(url, "GET", "/ready").status == 503, "nobody starts the second")
        assert "1 handler hangs, since 20" in request(url, "GET", "/ready").body["detail"]
        assert "due work has not started" in request(url, "GET", "/health").body["faults"]["cloudsched-watch"]
        assert statuses(url, "second") == []
        service.signal(signal.SIGTERM)
        assert service.wait() == 0
        assert "1 handler hangs: 'hang'" in service.output


@pytest.mark.skipif(sys.platform == "win32", reason="it has no fork")
def test_processes_that_a_handler_forks_create_tasks_at_once(folder: Path) -> None:
    (folder / "handlers.py").write_text(LEFTOVERS)
    with serve(folder) as (_, url):
        assert create(url, "parent", handler="fork") == 201
        wait_until(lambda: statuses(url, "parent") == ["SUCCEEDED"], "all its children have ended")
        for number in range(6):
            name = f"parent-{number}"
            wait_until(lambda name=name: statuses(url, name) == ["SUCCEEDED"], f"{name} has run", 20)  # type: ignore[misc]
        assert create(url, "after") == 201
        wait_until(lambda: statuses(url, "after") == ["SUCCEEDED"], "the parent goes on")


@pytest.mark.skipif(sys.platform == "win32", reason="it has no fork")
def test_it_ends_whatever_its_handlers_leave_behind_and_says_what(folder: Path) -> None:
    """Python itself would wait for them for ever. The folder is free for the next process."""
    (folder / "handlers.py").write_text(LEFTOVERS)
    with serve(folder) as (service, url):
        assert create(url, "leaver", handler="leave") == 201
        wait_until(lambda: statuses(url, "leaver") == ["SUCCEEDED"], "it has run")
        service.signal(signal.SIGTERM)
        assert service.wait(20) == 0
        assert "thread 'left_0'" in service.output
        assert "(child), which is ended" in service.output
    with serve(folder) as (_, url):
        assert statuses(url, "leaver") == ["SUCCEEDED"]


def test_a_signal_lets_the_running_handler_finish(folder: Path) -> None:
    """What runs when the process is told to stop is recorded as a success: after Ctrl-C and after SIGTERM."""
    signals = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM}
    for name, signum in signals.items():
        with serve(folder) as (service, url):
            assert create(url, name, due_in=3600, until=f"after-{name}") == 201
            assert request(url, "POST", f"/v1/tasks/{name}/trigger").status == 200
            wait_until(lambda name=name, url=url: statuses(url, name) == ["RUNNING"], "it runs")  # type: ignore[misc]
            service.signal(signum)
            wait_until(lambda url=url: not is_served(url), f"it has heard {signum}")  # type: ignore[misc]
            (folder / f"after-{name}").touch()
            assert service.wait() == 0, service.output
            assert "Stopped." in service.output
    with serve(folder) as (_, url):
        assert [statuses(url, name) for name in signals] == [["SUCCEEDED"]] * 2
    assert (folder / "ran.txt").read_text().split() == [*signals]


def is_served(url: str) -> bool:
    with suppress(OSError, HTTPException):
        return request(url, "GET", "/v1/tasks").status == 200
    return False


def test_callers_need_a_key_if_there_are_any(folder: Path) -> None:
    """It takes only the keys that it knows. The executor is not served."""
    with serve(folder, CLOUDSCHED_API_KEYS=f"ops:admin:{'0' * 64}") as (_, url):
        assert create(url, "a") == 401
        for path in ("/v1/tasks/execute", "/v1/sweep"):
            assert request(url, "POST", path, {}).status in {401, 404, 405}, path


def test_systemd_is_told_when_it_is_ready_alive_and_stopping(folder: Path) -> None:
    """By the datagrams of sd_notify(3); life is told as long as requests are answered."""
    address = folder / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(address))
        listener.settimeout(WAIT_SECONDS)
        with serve(folder, NOTIFY_SOCKET=str(address), WATCHDOG_USEC="100000") as (service, url):
            assert listener.recv(1000).decode() == f"READY=1\nSTATUS=Serving {url}"
            assert request(url, "GET", "/ready").status == 200
            assert [listener.recv(1000) for _ in range(3)] == [b"WATCHDOG=1"] * 3
            service.signal(signal.SIGTERM)
            while (told := listener.recv(1000)) == b"WATCHDOG=1":
                pass
            assert told == b"STOPPING=1"


def test_no_life_is_told_without_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose requests nobody answers is started again; another process's watchdog is left alone."""
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(address))
        listener.setblocking(False)  # noqa: FBT003
        monkeypatch.setenv("NOTIFY_SOCKET", str(address))
        monkeypatch.setenv("WATCHDOG_USEC", "2000")
        asked: list[str] = []
        pauses = iter([False, False, True])
        monkeypatch.setattr(supervisor, "_answers", asked.append)
        monkeypatch.setattr(threading, "Event", lambda: SimpleNamespace(wait=lambda _seconds: next(pauses)))
        Supervisor().wait("http://127.0.0.1:1")
        assert asked == ["http://127.0.0.1:1/health"] * 2
        with pytest.raises(BlockingIOError):
            listener.recv(1000)
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert Supervisor().interval is None
    Supervisor().tell("READY=1")


def test_systemd_is_told_of_trouble_once_and_when_it_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(address))
        listener.setblocking(False)  # noqa: FBT003
        monkeypatch.setenv("NOTIFY_SOCKET", str(address))
        pauses, troubles = iter([False] * 4 + [True]), iter(["", "1 handler hangs", "1 handler hangs", ""])
        monkeypatch.setattr(threading, "Event", lambda: SimpleNamespace(wait=lambda _seconds: next(pauses)))
        Supervisor().wait("http://127.0.0.1:1", lambda: next(troubles))
        told = [listener.recv(1000) for _ in range(2)]
        assert told == [b"STATUS=1 handler hangs", b"STATUS=Serving http://127.0.0.1:1"]
        with pytest.raises(BlockingIOError):
            listener.recv(1000)
